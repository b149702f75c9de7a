"""A run directory that was edited is refused, and nothing that is not its own is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout, Layout, Partition, isotropic_layout
from localsmooth.noise import SparseFlips
from localsmooth.runs import SamplingPlan, StoreError
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.arrays import Flips, Kind
from localsmooth.tasks.record import RunRecordError, _digest
from localsmooth.tasks.stopping import StopWhenDecided
from tests.flat import certify, recertify

from .models import threshold_model

SHAPE = (3, 4)
PLAN = SamplingPlan(n_candidate=20, n_bound=200, seed=0, chunk_size=100)


def run(out: Path | None = None, **changes: object):
    arguments = {
        "layout": GridLayout((1, 1), 0.3, 0.3),
        "plan": PLAN,
        "alpha": 0.05,
        "budgets": [0.0, 0.1],
        "options": SamplingOptions(batch_size=50),
        "progress": NoProgress(),
        "out": out,
    }
    image = np.linspace(0, 1, 12, dtype=np.float32).reshape(1, *SHAPE)
    return certify(threshold_model(np.full(SHAPE, 0.5)), [image], **(arguments | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["n_bound", "noise", "alpha"])
def test_edited_record_is_refused(tmp_path: Path, key: str) -> None:
    run(tmp_path / "run")
    path = tmp_path / "run" / "certification.json"
    content = json.loads(path.read_text())
    content[key] = {"n_bound": 100, "noise": {"distribution": "uniform", "clamp": False}, "alpha": 0.5}[key]
    if key == "alpha":
        content["settings"]["alpha"] = 0.5
    path.write_text(json.dumps(content))
    with pytest.raises(RunRecordError, match="edited"):
        recertify(tmp_path / "run")
    # Even with a checksum to match, the number of samples and the noise are checked against the sealed tallies.
    del content["sha256"]
    path.write_text(json.dumps(content | {"sha256": _digest(content)}))
    if key == "alpha":
        assert recertify(tmp_path / "run").attrs["alpha"] == 0.5
    else:
        with pytest.raises(RunRecordError, match="does not belong"):
            recertify(tmp_path / "run")
    path.write_text("{")
    with pytest.raises(RunRecordError, match="not JSON"):
        recertify(tmp_path / "run")
    run(tmp_path / "run")
    recertify(tmp_path / "run")


@pytest.mark.parametrize(
    ("key", "value"), [("sequence", None), ("sequence", {"a": 1.0, "b": 0.5}), ("item_layouts", [1, 0])]
)
def test_a_record_with_the_sequence_or_the_layouts_of_another_run_is_refused(
    tmp_path: Path, key: str, value: object
) -> None:
    """Votes of stopped groups bounded as if their number were fixed, or one item's under another's noise."""
    plan = replace(PLAN, stop=StopWhenDecided())
    layouts = [isotropic_layout(level, SHAPE, SHAPE) for level in (0.3, 0.9)]
    images = np.random.default_rng(0).random((2, 1, *SHAPE), dtype=np.float32)
    certify(
        threshold_model(np.full(SHAPE, 0.5)),
        list(images),
        layout=layouts,
        plan=plan,
        alpha=0.05,
        budgets=[0.0, 0.1],
        progress=NoProgress(),
        out=tmp_path / "run",
    )
    path = tmp_path / "run" / "certification.json"
    content = json.loads(path.read_text())
    recertify(tmp_path / "run")
    del content["sha256"]
    content[key] = value
    path.write_text(json.dumps(content | {"sha256": _digest(content)}))
    with pytest.raises(RunRecordError, match="does not belong"):
        recertify(tmp_path / "run")


def test_files_of_others_in_the_directory_are_left_alone(tmp_path: Path) -> None:
    precious = [tmp_path / "run" / "thesis.partial", tmp_path / "run" / "deep" / "down.partial"]
    for path in precious:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    run(tmp_path / "run")
    run(tmp_path / "run")
    assert all(path.read_text() == "x" for path in precious)
    with pytest.raises(StoreError, match="cannot be a run directory"):
        run(precious[0])


def test_promise_says_which_flips_are_covered() -> None:
    image = np.zeros((1, *SHAPE), np.float32)
    image[0, 1] = 1
    result = certify(
        threshold_model(np.full(SHAPE, 0.5)),
        [image],
        layout=GridLayout((1, 1), (0.05, 0.2), (0.05, 0.2)),
        plan=PLAN,
        alpha=0.05,
        budgets=[0.0, 1.0],
        noise=SparseFlips(),
        threat=Flips(Kind.ADDITIONS),
        options=SamplingOptions(batch_size=50),
        progress=NoProgress(),
    )
    assert result.attrs["threat"] == "perturbation of at most ε additions and no deletions of bits"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"configuration": {"a": {1, 2}}}, "configuration"),
        ({"alpha": 5e-324}, "alpha"),
        ({"labels": [np.full(SHAPE, 255)], "ignore_label": 255}, "labels"),
    ],
)
def test_more_bad_input(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{field}"):
        run(**changes)


def test_strange_memory_orders_are_fine(tmp_path: Path) -> None:
    image = np.linspace(0, 1, 12).reshape(1, *SHAPE)[:, ::-1].astype(">f8")[..., ::-1]
    labels = [np.ones(SHAPE, np.uint8)[::-1]]
    result = certify(
        threshold_model(np.full(SHAPE, 0.5)),
        [image],
        labels,
        layout=GridLayout((1, 1), 0.3, 0.3),
        plan=PLAN,
        alpha=np.float64(0.05),
        budgets=np.array([0.1], np.float32),
        ignore_label=255,
        out=tmp_path / "run",
        options=SamplingOptions(batch_size=50),
        progress=NoProgress(),
    )
    assert result["image"].values[0].ravel()[0] == pytest.approx(1.0)


def test_label_map_with_channels_of_its_own() -> None:
    layout = Layout(
        Partition(np.zeros(SHAPE, np.int32)),
        Partition(np.arange(12, dtype=np.int32).reshape(1, *SHAPE) % 2),
        np.array([[0.2, 0.4]]),
    )
    result = run(layout=layout)
    assert "image" not in result
    assert result["certified"].values.max() > 0
