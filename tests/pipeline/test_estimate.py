"""What is said before a run: hand-counted passes, the same refusals, and nothing drawn for it that could count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import localsmooth as ls
from localsmooth.pipeline import Estimate
from localsmooth.sampling import SamplingOptions
from tests.pipeline.models import threshold_model

PLAN = ls.SamplingPlan(n_candidate=20, n_bound=100, seed=3, chunk_size=20)
SHAPE = (8, 12)


def estimate(layout: ls.GridLayout, **more: object) -> Estimate:
    given = {
        "task": ls.ArrayTask(threshold_model(np.full((1, 1), 0.5)), np.zeros((2, 1, *SHAPE), np.float32)),
        "smoothing": ls.Smoothing(layout, PLAN),
        "prove": ls.Settings(0.1, [0.0, 0.1]),
        "run": ls.Run(options=SamplingOptions(batch_size=20)),
        "seconds": 0.05,
    } | more
    return ls.plan(given.pop("task"), given.pop("smoothing"), given.pop("prove"), **given)  # pyright: ignore


def test_passes_are_those_of_the_run() -> None:
    made = estimate(ls.GridLayout((2, 3), 0.3, 0.6))
    assert (made.items, made.groups) == (2, 12)
    assert made.samples == 12 * 120
    assert made.passes == 12 * 120
    assert made.rate is not None
    assert made.seconds == pytest.approx(12 * 120 / made.rate)
    assert made.timed > 0
    assert made.disk
    assert "certificates can reach" in made.reach
    assert "2 items, 12 output groups in all" in str(made)
    assert "1,440 forward passes" in str(made)
    assert "passes (each over a whole item, noise and counting included); certifying comes on top" in str(made)
    windows = estimate(ls.GridLayout((2, 2), 0.3, 0.3, window_margin=0))
    assert windows.samples == 8 * 120
    assert windows.passes == pytest.approx(2 * 120)


def test_groups_that_may_stop_take_at_most_so_many() -> None:
    plan = ls.SamplingPlan(20, 100, stop=ls.StopWhenDecided())
    assert estimate(
        ls.GridLayout((1, 1), 0.3, 0.3), smoothing=ls.Smoothing(ls.GridLayout((1, 1), 0.3, 0.3), plan)
    ).stops_early


def test_what_certify_refuses_is_refused() -> None:
    few = ls.Smoothing(ls.GridLayout((1, 1), 0.3, 0.3), ls.SamplingPlan(20, 2))
    with pytest.raises(ls.InvalidInputError, match="n_bound"):
        estimate(ls.GridLayout((1, 1), 0.3, 0.3), smoothing=few)
    with pytest.raises(ls.InvalidInputError, match="seconds"):
        estimate(ls.GridLayout((1, 1), 0.3, 0.3), seconds=-1.0)


def test_nothing_is_written(tmp_path: Path) -> None:
    estimate(ls.GridLayout((1, 1), 0.3, 0.3), run=ls.Run(tmp_path / "run", options=SamplingOptions(batch_size=20)))
    assert not list(tmp_path.iterdir())


def test_calibration_items_show_what_noise_leaves() -> None:
    # Bright where a pixel exceeds ½: at 1 noise of .05 changes nothing, noise of 5 nearly half of the single votes.
    images = ls.ItemSet([ls.Item(0, "another", np.ones((1, *SHAPE), np.float32))], ["dark", "bright"])
    layout = ls.GridLayout((1, 2), 0.05, 5.0)
    made = estimate(layout, smoothing=ls.Smoothing(layout, PLAN), calibration=images)
    small, large = made.sights[0], made.sights[-1]
    assert [each.level for each in made.sights] == [(0.05,), (5.0,)]
    assert small.agreement == small.balanced == 1.0
    assert 0.4 < large.agreement < 0.95
    assert large.worst == ("class 1", large.agreement)
    assert made.unseen == ""


def test_certified_items_are_no_calibration() -> None:
    same = ls.ItemSet([ls.Item(0, "the same", np.zeros((1, *SHAPE), np.float32))])
    with pytest.raises(ls.InvalidInputError, match="calibration"):
        estimate(ls.GridLayout((1, 1), 0.3, 0.3), calibration=same)
    assert "void the certificate" in estimate(ls.GridLayout((1, 1), 0.3, 0.3)).unseen


def test_a_run_after_it_is_the_same() -> None:
    layout = ls.GridLayout((1, 2), 0.3, 0.6)
    task = ls.ArrayTask(threshold_model(np.full((1, 1), 0.5)), np.zeros((1, 1, *SHAPE), np.float32))
    before = ls.certify(task, ls.Smoothing(layout, PLAN), ls.Settings(0.1, [0.0, 0.1]))
    estimate(layout, task=task)
    after = ls.certify(task, ls.Smoothing(layout, PLAN), ls.Settings(0.1, [0.0, 0.1]))
    assert (before["votes"] == after["votes"]).all()
