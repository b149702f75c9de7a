"""Samples drawn again: a program that computes one function agrees with itself, others are found out."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from localsmooth.bounds import Bonferroni
from localsmooth.execution import REPLAY_LEVEL, NoProgress, SerialExecutor, ThreadExecutor
from localsmooth.layout import GridLayout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.results import run_info
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.testing.chance import assert_binomial
from tests.flat import certify, recertify

SHAPE = (2, 3)
THRESHOLD = 0.1
TRIALS = 12  # calls at most before the first sample is drawn


def batch_sized(batch: np.ndarray) -> np.ndarray:
    return batch[:, 0] > (THRESHOLD if len(batch) > 1 else 0.2)


def threaded(batch: np.ndarray) -> np.ndarray:
    return batch[:, 0] > (THRESHOLD if torch.get_num_threads() > 1 else 0.2)


def sure(batch: np.ndarray) -> np.ndarray:
    return batch[:, 0] > THRESHOLD


def run(labels: Any, batch_size: int = 8, replay: int = 40, **changes: Any) -> Any:
    calls = count()

    def predict(batch: np.ndarray) -> np.ndarray:
        # What the trials before a run would find is refused by them.
        return (labels if next(calls) >= TRIALS else sure)(batch).astype(np.int64)

    given: dict[str, Any] = {
        "alpha": 0.1,
        "simultaneous": Bonferroni(),
        "budgets": [0.0],
        "bounds": ["naive"],
        "layout": GridLayout((1, 3), 0.3, 0.6),
        "plan": SamplingPlan(10, 50, seed=1, chunk_size=20),
        "options": SamplingOptions(batch_size, channels_last=False, check_model=False, replay=replay),
        "progress": NoProgress(),
        "executor": "serial",
    }
    model = CallableModel(predict, name="model", bounds=None, classes=2, output=OutputKind.LABELS)
    return certify(model, np.zeros((2, 1, *SHAPE), np.float32), **(given | changes))


@pytest.mark.parametrize("batch_size", [1, 2, 8, 20])
def test_one_function_agrees_with_itself(batch_size: int, tmp_path: Path) -> None:
    result = run(sure, batch_size, out=tmp_path)
    upper = 1 - REPLAY_LEVEL ** (1 / 40)
    found = run_info(result).replay
    assert found is not None
    assert found.pop("upper") == pytest.approx(upper)
    assert found.pop("level") == REPLAY_LEVEL
    counted = {"samples": 40, "differing": 0, "labels": 80, "differing_labels": 0}
    assert found | {"chunk_votes": 0} == counted | {"chunk_votes": 0, "differing_chunk_votes": 0}
    assert found["chunk_votes"] in (20, 40)  # chunks of 20 and of 10 samples for two outputs
    assert "0 of 80 labels" in run_info(recertify(tmp_path)).replayed[0]
    again = run_info(run(sure, batch_size, replay=0, out=tmp_path))  # the same certificate, and no warning
    assert again.replayed == ()
    assert not (tmp_path / "result-1.nc").exists()


def test_labels_that_depend_on_the_size_of_the_batch_are_counted(tmp_path: Path) -> None:
    """The share of the differing samples is that of noise between the two thresholds, for at least one output."""
    found = run_info(run(batch_sized, replay=300, out=tmp_path)).replay
    assert found is not None
    between = float(np.diff(stats.norm.cdf([THRESHOLD, 0.2], scale=0.3))[0])  # the level in an output's own cell
    assert_binomial(int(found["differing"]), 300, 1 - (1 - between) ** 2)
    assert found["differing"] <= found["differing_labels"] <= 2 * found["differing"]
    upper = stats.beta.ppf(1 - REPLAY_LEVEL, found["differing"] + 1, 300 - found["differing"])
    assert found["upper"] == pytest.approx(upper)
    assert found["differing_chunk_votes"] > 0


def test_labels_that_depend_on_threads_are_counted() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        alone, together = (run_info(run(threaded, executor=each)) for each in (SerialExecutor(), ThreadExecutor(2)))
    finally:
        torch.set_num_threads(before)
    assert alone.replay is not None
    assert alone.replay["differing"] > 0
    assert together.replay is not None  # on one thread per call anyway
    assert together.replay["differing"] == 0
    assert "chunk_votes" not in alone.replay  # memory keeps no single chunks


def test_labels_that_depend_on_a_counter_are_counted() -> None:
    calls = count()
    found = run_info(run(lambda batch: batch[:, 0] > 0.2 * (next(calls) % 2))).replay
    assert found is not None
    assert found["differing"] > 0
