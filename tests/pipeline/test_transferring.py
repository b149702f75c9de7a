"""A certificate for another version of a model: candidates of the old one, samples of the new one alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from localsmooth.baselines import CentreSmoothing
from localsmooth.bounds import Bonferroni, JointCount
from localsmooth.cli.app import app
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress, OtherPartsMissingError, Part
from localsmooth.layout import GridLayout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.pipeline import candidates_from
from localsmooth.results import load, run_info
from localsmooth.runs import DirectoryStore, OtherRunError, SamplingPlan, Stage, StoreError, join
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import load_record
from localsmooth.testing.chance import assert_level_kept
from tests.flat import certify, recertify
from tests.pipeline.models import mean_model, threshold_model
from tests.tiny_runs import FUNCTIONS, configuration, write_inputs

SHAPE = (4, 6)
SIGMA = 0.3


class Interrupting(NoProgress):
    """Somebody presses the key once a chunk is there."""

    def advance(self, samples: int) -> None:
        raise KeyboardInterrupt


class Unwanted(NoProgress):
    """Nothing may be sampled."""

    def start(self, total: int, done: int) -> None:
        raise AssertionError("it was sampled")


def run(model: CallableModel, n_bound: int = 60, seed: int = 1, **changes: Any) -> xr.Dataset:
    given: dict[str, Any] = {
        "items": np.zeros((1, 1, *SHAPE), np.float32),
        "alpha": 0.1,
        "budgets": [0.0, 0.2],
        "layout": GridLayout((1, 1), SIGMA, SIGMA),
        "plan": SamplingPlan(n_candidate=20, n_bound=n_bound, seed=seed, chunk_size=30),
        "options": SamplingOptions(batch_size=30, check_model=False),
        "progress": NoProgress(),
    }
    return certify(model, **(given | changes))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose candidates are all 1, and all right with certainty."""
    out = tmp_path_factory.mktemp("old") / "run"
    run(threshold_model(np.full(SHAPE, -2.0)), out=out)
    return out


def test_the_votes_are_those_of_the_new_model(old: Path, tmp_path: Path) -> None:
    thresholds = np.linspace(-0.5, 0.3, 24).reshape(SHAPE)
    result = run(threshold_model(thresholds), seed=2, candidates=old, out=tmp_path / "new")
    assert (result["candidate"] == 1).all()
    anew = run(threshold_model(thresholds), seed=2)  # same streams, candidates of its own
    same = (anew["candidate"] == 1).values
    assert 0 < same.sum() < same.size
    np.testing.assert_array_equal(result["votes"].values[same], anew["votes"].values[same])
    np.testing.assert_array_equal(result["votes"].values[~same], 60 - anew["votes"].values[~same])
    np.testing.assert_array_equal(result["clean"].values[0], thresholds < 0)
    described = run_info(result).smoothing
    assert described is not None
    assert described.model == threshold_model(thresholds).fingerprint()
    origin = load_record(tmp_path / "new").candidates
    with DirectoryStore(old, read_only=True) as store:
        assert store.configuration is not None
        assert origin is not None
        assert origin["run"] == store.configuration.sha256
    assert origin["model"] == threshold_model(np.full(SHAPE, -2.0)).fingerprint()
    again = recertify(tmp_path / "new")
    np.testing.assert_array_equal(again["certified"], result["certified"])
    assert any(origin["run"][:16] in line and "this model alone" in line for line in run_info(again).assumptions)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, Path]:
    """Many equal items, each of which is a trial of its own, and a run of the old model on them."""
    items, out = np.full((30, 1, *SHAPE), -0.01, np.float32), tmp_path_factory.mktemp("trials") / "run"
    run(
        threshold_model(np.full(SHAPE, -2.0)),
        items=items,
        budgets=[0.0],
        bounds=["naive"],
        simultaneous=Bonferroni(),
        out=out,
    )
    return items, out


@pytest.mark.parametrize("rule", [JointCount(), Bonferroni()], ids=["joint", "bonferroni"])
def test_an_adversary_beats_no_more_than_alpha_of_the_transfers(trials: tuple[np.ndarray, Path], rule: Any) -> None:
    """Pixel n falls at the cost of its own margin: the adversary takes the cheapest, and what is left is the truth."""
    items, source = trials
    margins, budgets = np.repeat([0.04, 0.15, 0.4], 8), np.array([0.0, 0.05, 0.1, 0.2, 0.4])
    costs = np.cumsum(np.sort(margins) ** 2)
    truth = 24 - (costs[:, None] <= budgets**2).sum(axis=0)
    model = threshold_model(-margins.reshape(SHAPE) - 0.01)
    asked: dict[str, Any] = {
        "items": items,
        "candidates": source,
        "budgets": budgets,
        "simultaneous": rule,
        "bounds": ["envelope"],
    }
    made = run(model, seed=100, **asked)["certified"].sel(target="ratio", bound="envelope").values
    assert made[:, 1].sum() > 0
    assert_level_kept((made > truth).any(axis=1).sum(), len(made), 0.1)


def test_a_failure_that_all_outputs_share_is_not_certified(trials: tuple[np.ndarray, Path]) -> None:
    """All outputs of the new model fall together, a little more often than not, where the old one never erred."""
    items, source = trials
    made = run(mean_model(SHAPE), seed=200, items=items, candidates=source, budgets=[0.0], simultaneous=JointCount())
    assert_level_kept((made["certified"].values > 0).any(axis=(1, 2, 3)).sum(), len(items), 0.1)


def test_a_transfer_that_was_interrupted_goes_on(old: Path, tmp_path: Path) -> None:
    thresholds = np.full(SHAPE, -0.2)
    whole = threshold_model(thresholds)
    with pytest.raises(KeyboardInterrupt):
        run(whole, 300, seed=3, candidates=old, out=tmp_path / "new", progress=Interrupting())
    with DirectoryStore(tmp_path / "new", read_only=True) as store:
        assert 0 < store.merged(0, 0, Stage.BOUND).n < 300
    result = run(whole, 300, seed=3, out=tmp_path / "new")  # the candidates are there
    at_once = run(whole, 300, seed=3, candidates=old)
    np.testing.assert_array_equal(result["votes"], at_once["votes"])
    assert load_record(tmp_path / "new").candidates is not None


def test_other_runs_are_refused_before_anything_is_sampled(old: Path, tmp_path: Path) -> None:
    new = threshold_model(np.zeros(SHAPE))
    many = CallableModel(
        lambda batch: (batch[:, 0] > 0).astype(np.int64), name="new", bounds=None, classes=3, output=OutputKind.LABELS
    )
    other = np.ones((1, 1, *SHAPE), np.float32)
    cases: tuple[tuple[str, CallableModel, dict[str, Any]], ...] = (
        ("seed: it is that", new, {}),
        ("items", new, {"seed": 2, "items": other}),
        ("layout", new, {"seed": 2, "layout": GridLayout((1, 1), 0.4, 0.4)}),
        ("model.classes", many, {"seed": 2}),
        ("plan.n_candidate", new, {"plan": SamplingPlan(21, 60, 2, 30)}),
        ("plan.chunk_size", new, {"plan": SamplingPlan(20, 60, 2, 10)}),
        ("a method of its own", new, {"seed": 2, "method": CentreSmoothing()}),
    )
    for match, model, changes in cases:
        with pytest.raises(InvalidInputError, match=match):
            run(model, candidates=old, progress=Unwanted(), **changes)
    with pytest.raises(StoreError, match="holds no run"):
        run(new, seed=2, candidates=tmp_path / "nothing", progress=Unwanted())
    run(threshold_model(np.full(SHAPE, -1.0)), seed=2, out=tmp_path / "own")
    with pytest.raises(OtherRunError, match="candidates of its own"):
        run(threshold_model(np.full(SHAPE, -1.0)), seed=2, candidates=old, out=tmp_path / "own")


def test_candidates_that_were_handed_on_name_who_chose_them_and_no_seed_returns(old: Path, tmp_path: Path) -> None:
    """With the seed of the first run, a second transfer would show the first one's samples as independent ones."""
    run(threshold_model(np.full(SHAPE, -1.0)), seed=2, candidates=old, out=tmp_path / "second")
    third = threshold_model(np.full(SHAPE, -0.5))
    for seed in (1, 2):
        with pytest.raises(InvalidInputError, match="seed: it is that"):
            run(third, seed=seed, candidates=tmp_path / "second", progress=Unwanted())
    run(third, seed=3, candidates=tmp_path / "second", out=tmp_path / "third")
    assert load_record(tmp_path / "third").candidates == load_record(tmp_path / "second").candidates
    assert (
        candidates_from(DirectoryStore(tmp_path / "third", read_only=True))
        == load_record(tmp_path / "third").candidates
    )


def test_joined_parts_still_name_who_chose_their_candidates(old: Path, tmp_path: Path) -> None:
    model, halves = threshold_model(np.full(SHAPE, -1.0)), GridLayout((1, 2), SIGMA, SIGMA)
    source = tmp_path / "source"
    run(threshold_model(np.full(SHAPE, -2.0)), layout=halves, out=source)
    parts = [tmp_path / "one", tmp_path / "two"]
    for number, part in enumerate(parts):
        with pytest.raises(OtherPartsMissingError):
            run(model, seed=2, layout=halves, candidates=source, out=part, part=Part(number + 1, 2))
    own = tmp_path / "own"
    with pytest.raises(OtherPartsMissingError):
        run(model, seed=2, layout=halves, out=own, part=Part(1, 2))
    with pytest.raises(StoreError, match="candidates were chosen by different runs"):
        join(DirectoryStore(own), [DirectoryStore(parts[1])])
    join(DirectoryStore(tmp_path / "all"), [DirectoryStore(part) for part in parts])
    run(model, seed=2, layout=halves, out=tmp_path / "all")
    record = load_record(tmp_path / "all")
    assert record.candidates is not None
    assert record.candidates == candidates_from(DirectoryStore(parts[0], read_only=True))


def test_the_command_takes_all_but_the_model_from_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_inputs(tmp_path, np.random.default_rng(0).random((2, 1, *SHAPE)).astype(np.float32))
    (tmp_path / "newer_functions.py").write_text(FUNCTIONS.replace("> 0.5", "> 0.48"))
    (tmp_path / "run.toml").write_text(configuration())
    newer = (
        'kind = "callable"\nfunction = "newer_functions:bright"\nclasses = 2\noutput = "labels"\nbounds = [0.0, 1.0]'
    )
    (tmp_path / "newer.toml").write_text(f"[model]\n{newer}\n")
    (tmp_path / "empty.toml").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def invoke(*arguments: object) -> str:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    invoke("certify", tmp_path / "run.toml", "--out", tmp_path / "run", "--replay", 3)
    transfer = ("transfer", tmp_path / "run", "--samples", 150, "--out", tmp_path / "newer", "--model")
    with pytest.raises(InvalidInputError, match="no section"):
        invoke(*transfer, tmp_path / "empty.toml")
    assert "tiny (newer)" in invoke(*transfer, tmp_path / "newer.toml")
    before, result = load(tmp_path / "run" / "result.nc"), load(tmp_path / "newer" / "result.nc")
    np.testing.assert_array_equal(result["candidate"], before["candidate"])
    np.testing.assert_array_equal(result["budget"], before["budget"])
    assert [(run_info(each).replay or {})["differing"] for each in (before, result)] == [0, 0]
    assert (result.attrs["n_bound"], result.attrs["alpha"]) == (150, 0.05)
    files = sorted((tmp_path / "newer").rglob("*stage1*"))
    invoke(*transfer, tmp_path / "newer.toml")  # once more: nothing is drawn again
    assert sorted((tmp_path / "newer").rglob("*stage1*")) == files
