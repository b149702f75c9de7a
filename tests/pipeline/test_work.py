"""What a run cost, in passes over an item: counted by hand, said everywhere, and told where methods differ in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from localsmooth.baselines import CentreSmoothing
from localsmooth.cli.summary import print_summary
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.noise import Gaussian
from localsmooth.report import render_report, uneven_work, work_text
from localsmooth.results import load, run_info
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import StopWhenDecided
from localsmooth.tasks.arrays import Settings
from tests.flat import certify, recertify
from tests.pipeline.models import threshold_model

PLAN = SamplingPlan(n_candidate=20, n_bound=100, seed=3, chunk_size=20)


def run(layout: Any, plan: SamplingPlan = PLAN, shape: tuple[int, int] = (8, 12), threshold: float = -1.0, **more: Any):
    asked = {"settings": Settings(0.1, [0.0, 0.1])} | more
    return certify(
        threshold_model(np.full((1, 1), threshold)),
        np.zeros((2, 1, *shape), np.float32),
        layout=layout,
        plan=plan,
        options=SamplingOptions(batch_size=20, check_model=False),
        progress=NoProgress(),
        **asked,
    )


def test_every_cell_takes_a_pass_over_the_item() -> None:
    assert run_info(run(GridLayout((2, 3), 0.3, 0.6))).work == 6 * 120
    assert run_info(run(GridLayout((1, 1), 0.3, 0.3))).work == 120


def test_a_window_takes_its_share_of_a_pass(tmp_path: Path) -> None:
    made = run(GridLayout((2, 2), 0.3, 0.3, window_margin=0), out=tmp_path)
    assert run_info(made).work == pytest.approx(120)
    assert run_info(recertify(tmp_path)).work == run_info(load(tmp_path / "result.nc")).work == run_info(made).work
    # Cells of 4 × 6, with a margin of one on the two sides where there is something to see.
    assert run_info(run(GridLayout((2, 2), 0.3, 0.3, window_margin=1))).work == pytest.approx(4 * 120 * 5 * 7 / 96)


def test_samples_that_early_stopping_saved_are_no_work() -> None:
    stopped = run_info(run(GridLayout((2, 3), 0.3, 0.6), replace(PLAN, stop=StopWhenDecided())))
    assert stopped.saving is not None
    assert stopped.work == pytest.approx(6 * 20 + sum(stopped.saving.counted) / 2)
    assert stopped.work < 720


def test_methods_that_draw_in_a_way_of_their_own_say_nothing() -> None:
    made = run(
        GridLayout((1, 1), 0.3, 0.3), settings=Settings(0.1, [0.0, 0.1], method=CentreSmoothing(0.35)), noise=Gaussian()
    )
    assert run_info(made).work is None
    assert work_text(run_info(made)) is None


def test_unequal_work_is_told(tmp_path: Path) -> None:
    local, cheap = run(GridLayout((2, 3), 0.3, 0.6)), run(GridLayout((1, 1), 0.3, 0.3))
    dear = run(GridLayout((1, 1), 0.3, 0.3), SamplingPlan(n_candidate=120, n_bound=600, seed=3))
    unequal, equal = {"local": local, "isotropic": cheap}, {"local": local, "isotropic": dear}
    sentence = uneven_work(unequal)
    assert sentence is not None
    assert "720 (local), 120 (isotropic)" in sentence
    assert uneven_work(equal) is None
    for results, told in ((unequal, True), (equal, False)):
        assert ("unequal work" in render_report(results)) == told
        console = Console(width=200, file=(tmp_path / "out.txt").open("w"), record=True)
        print_summary(results, console)
        text = console.export_text()
        assert ("unequal work" in text) == told
        assert "720 passes of the model over an item" in text
    older = local.copy()
    older.attrs = {name: value for name, value in local.attrs.items() if name != "work"}
    assert run_info(older).work is None
    assert local.attrs["work"] == "720.0"
    assert uneven_work({"older": older, "isotropic": cheap}) is None
