"""What is verified in full, and what is said not to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from localsmooth.baselines import Cohen
from localsmooth.bounds import Bonferroni, CandidateWeights, JointAndBonferroni, JointCount, KFamilywise
from localsmooth.certificates import GaussianScores
from localsmooth.cli.app import app
from localsmooth.evidence import DoesNotHoldError, export_certificate, verify_run
from localsmooth.execution import NoProgress, Until
from localsmooth.layout import GridLayout
from localsmooth.noise import Uniform
from localsmooth.runs import DirectoryStore, SamplingPlan, Stage
from localsmooth.tasks import StopWhenDecided, Weighted
from localsmooth.tasks.arrays import PerPosition

from .runs import SHAPE, chunk_files, images, make_run, scoring_model

ISOTROPIC = GridLayout((1, 1), 0.3, 0.3)


def partly_ignored() -> list[np.ndarray]:
    label = (images()[0][0] > 0.5).astype(np.int64)
    label[0, :3] = 9
    return [label]


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": Uniform(), "budgets": [0.0, 0.1, 0.3]},
        {"simultaneous": JointCount(), "targets": ["ratio", "balanced"]},
        {"simultaneous": JointAndBonferroni(), "targets": ["ratio", "balanced"]},
        {"simultaneous": CandidateWeights(), "budgets": [0.0, 0.1]},
        {"simultaneous": KFamilywise(2), "targets": ["balanced"], "bounds": ["lp", "exact"]},
        {"labels": partly_ignored(), "ignore_label": 9, "simultaneous": JointCount(), "targets": ["ratio", "accuracy"]},
        {"labels": None, "count": 2, "layout": ISOTROPIC},
        {"layout": GridLayout((2, 2), 0.2, 0.5, window_margin=1)},
        {"simultaneous": JointCount(), "plan": SamplingPlan(20, 300, 0, 100, StopWhenDecided())},
    ],
    ids=["uniform", "joint", "both", "weights", "k", "ignored", "several", "windows", "stopping"],
)
def test_these_runs_are_verified_in_full(changes: dict[str, Any], tmp_path: Path):
    found = verify_run(make_run(tmp_path / "run", **changes))
    assert found.unchecked == ()
    assert any("whole numbers" in line.what for line in found.checked)
    assert any("not larger than these proofs" in line.what for line in found.checked)


class _Ending(NoProgress):
    """Ends sampling after some chunks."""

    def __init__(self, until: Until, after: int) -> None:
        self.until, self.left = until, after

    def advance(self, samples: int) -> None:
        self.left -= 1
        if self.left == 0:
            self.until.end()


def test_extended_and_ended_runs_are_verified_in_full(tmp_path: Path):
    run = make_run(tmp_path / "extended", simultaneous=JointCount())
    make_run(run, simultaneous=JointCount(), plan=SamplingPlan(20, 430, 0, 100))
    assert verify_run(run).complete
    until = Until()
    ended = make_run(tmp_path / "ended", simultaneous=JointCount(), until=until, progress=_Ending(until, after=10))
    assert json.loads((ended / "certification.json").read_text())["begun"] is not None
    assert verify_run(ended).complete


def test_items_that_were_left_out_may_lack_chunks_and_what_is_there_is_checked(tmp_path: Path):
    """The second item has its candidates and a chunk of votes for one group, the third one has nothing."""
    until = Until()
    how: dict[str, Any] = {"plan": SamplingPlan(100, 100, 0, 50), "executor": "serial", "simultaneous": JointCount()}
    run = make_run(tmp_path / "run", 3, until=until, progress=_Ending(until, after=25), **how)
    assert json.loads((run / "certification.json").read_text())["begun"] == [0]
    found = verify_run(run)
    assert found.complete
    assert [line.number for line in found.checked if "items that are left out" in line.what] == [9]
    export_certificate(run, tmp_path / "certificate.json")
    assert (tmp_path / "certificate.json").is_file()
    with DirectoryStore(run, read_only=True) as store:
        chunks = {store.read_chunk(name).chunk.key: run / name for name in store.files.names("chunks")}

    def without(*key: int) -> None:
        kept = chunks[key].read_bytes()
        chunks[key].unlink()
        try:
            verify_run(run)
        finally:
            chunks[key].write_bytes(kept)

    without(1, 3, Stage.CANDIDATE.value, 1)
    for item in range(2):  # without candidates nothing votes
        with pytest.raises(DoesNotHoldError, match=f"item {item}, output group 0: chunk 1 of the candidate .* missing"):
            without(item, 0, Stage.CANDIDATE.value, 1)
    votes = bytearray(chunks[1, 0, Stage.BOUND.value, 0].read_bytes())
    votes[-1] ^= 1
    chunks[1, 0, Stage.BOUND.value, 0].write_bytes(votes)
    with pytest.raises(DoesNotHoldError, match="chunks"):
        verify_run(run)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"threat": PerPosition(3)}, "allows every"),
        # No record holds weights of the user's own.
        ({"targets": ["ratio", Weighted(np.arange(48.0).reshape(SHAPE))]}, "anything in the result"),
        ({"method": Cohen(), "layout": ISOTROPIC}, "baseline cohen"),
        ({"model": scoring_model(), "certificates": [GaussianScores()], "labels": None}, "gaussian-scores"),
        (
            {"plan": SamplingPlan(20, 300, 0, 100, StopWhenDecided()), "simultaneous": Bonferroni()},
            "confidence sequence",
        ),
    ],
    ids=["threat", "weighted", "baseline", "scores", "sequence"],
)
def test_what_is_not_checked_is_said(changes: dict[str, Any], said: str, tmp_path: Path):
    found = verify_run(make_run(tmp_path / "run", **changes))
    assert not found.complete
    assert any(said in text for text in found.unchecked)


def test_the_commands(tmp_path: Path):
    run = str(make_run(tmp_path / "run"))
    certificate = str(tmp_path / "certificate.json")
    runner = CliRunner()
    exported = runner.invoke(app, ["export", run, certificate])
    assert exported.exit_code == 0, exported.output
    assert "Everything holds." in exported.output
    assert "Taken on trust:" in exported.output
    told = runner.invoke(app, ["verify", run, certificate, "--log", "json"])
    events = [json.loads(line) for line in told.stderr.splitlines()]
    assert events[-1]["event"] == "verified"
    assert {event["event"] for event in events[:-1]} == {"checked"}
    chunk_files(Path(run))[0].unlink()
    failed = runner.invoke(app, ["verify", run])
    assert failed.exit_code == 1
    assert "FAILED  chunks: does not hold" in failed.output
    told = runner.invoke(app, ["verify", run, certificate, "--log", "json"])
    assert told.exit_code == 1
    assert json.loads(told.stderr.splitlines()[-1])["holds"] is False
    baseline = str(make_run(tmp_path / "baseline", method=Cohen(), layout=ISOTROPIC))
    incomplete = runner.invoke(app, ["verify", baseline])
    assert incomplete.exit_code == 3
    assert "Not checked:" in incomplete.output
