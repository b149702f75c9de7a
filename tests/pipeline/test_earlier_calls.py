"""Calls of earlier versions are understood, and say what to write instead."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import localsmooth as ls
from localsmooth import ArrayTask, GridLayout, InvalidInputError, Run, SamplingPlan, Settings, Smoothing, certify
from localsmooth.execution import NoProgress

from .models import threshold_model

IMAGES = np.zeros((1, 1, 4, 6), np.float32)
LAYOUT, PLAN = GridLayout((2, 3), 0.2, 0.4), SamplingPlan(20, 200)
FLAT = {"layout": LAYOUT, "plan": PLAN, "alpha": 0.1, "budgets": [0.1], "progress": NoProgress()}


def test_flat_arguments_mean_what_they_meant() -> None:
    model = threshold_model(np.linspace(-0.5, 0.5, 24).reshape(4, 6))
    labels = np.zeros((1, 4, 6), np.int64)
    with pytest.warns(DeprecationWarning, match="ArrayTask"):
        flat = certify(model, IMAGES, labels, **FLAT)
    task = ArrayTask(model, IMAGES, labels)
    bundled = certify(task, Smoothing(LAYOUT, PLAN), Settings(0.1, [0.1]), run=Run(progress=NoProgress()))
    assert flat.drop_attrs().identical(bundled.drop_attrs())
    with pytest.warns(DeprecationWarning, match="Smoothing"):
        by_name = certify(model, images=IMAGES, labels=labels, **FLAT)
    assert by_name.drop_attrs().identical(bundled.drop_attrs())


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"layot": LAYOUT}, "layot"), ({"images": [np.full((1, 4, 6), np.nan)]}, "images"), ({"alpha": 2.0}, "alpha")],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_wrong_arguments_are_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        certify(threshold_model(np.zeros((4, 6))), **({"images": IMAGES} | FLAT | changes))
    assert caught.value.field == field


def test_a_task_takes_no_flat_arguments() -> None:
    task = ArrayTask(threshold_model(np.zeros((4, 6))), IMAGES)
    with pytest.raises(InvalidInputError, match="Run"):
        certify(task, Smoothing(LAYOUT, PLAN), Settings(0.1, [0.1]), out="here")  # pyright: ignore[reportCallIssue]


def test_names_that_have_moved_are_found() -> None:
    with pytest.warns(DeprecationWarning, match=r"localsmooth\.baselines"):
        assert ls.Cohen is ls.baselines.Cohen  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.warns(DeprecationWarning, match=r"localsmooth\.runs"):
        assert ls.sampling.SamplingPlan is SamplingPlan  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.warns(DeprecationWarning, match=r"localsmooth\.execution"):
        assert ls.sampling.NoProgress is NoProgress  # pyright: ignore[reportAttributeAccessIssue]
    for room in (ls.runs, ls.sampling):
        with pytest.warns(DeprecationWarning, match=r"localsmooth\.runs\.RunIdentity"):
            assert room.RunConfiguration is ls.runs.RunIdentity  # pyright: ignore[reportAttributeAccessIssue]
    for room in (ls, ls.sampling, ls.runs):
        with pytest.raises(AttributeError, match="NoSuchName"):
            _ = room.NoSuchName
    assert importlib.import_module("localsmooth.graphs").GraphTask is ls.tasks.graphs.GraphTask
