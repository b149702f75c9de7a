"""Runs with noise on a grid, transferred ones, replayed ones: verified in full, and what is new in them checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsmooth.evidence import DoesNotHoldError, arrays, verify_run
from localsmooth.noise import Gaussian, Uniform
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from tests.pipeline.models import threshold_model

from .runs import images, make_run, rewrite_record

STEP = 1 / 255


def on_grid() -> list[np.ndarray]:
    return [(np.round(item / np.float32(STEP)) * np.float32(STEP)).astype(np.float32) for item in images()]


@pytest.mark.parametrize("noise", [Gaussian(grid=STEP), Uniform(grid=STEP)], ids=["gaussian", "uniform"])
def test_noise_on_a_grid_is_verified_with_what_it_costs(noise: Any, tmp_path: Path) -> None:
    found = verify_run(make_run(tmp_path / "run", images=on_grid(), noise=noise, budgets=[0.0, 0.1]))
    assert found.unchecked == ()
    assert any("alpha pays for what its tables leave open" in line.what for line in found.checked)


def test_alpha_that_does_not_pay_for_the_tables_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run", images=on_grid(), noise=Gaussian(grid=STEP), budgets=[0.0, 0.1])
    monkeypatch.setattr(arrays, "drawing_charge", lambda *_: 0.02 * 0.05)
    with pytest.raises(DoesNotHoldError, match="drawing leaves"):
        verify_run(run)


def test_transferred_and_replayed_runs_are_verified(tmp_path: Path) -> None:
    old = make_run(tmp_path / "old", options=SamplingOptions(batch_size=50, replay=4))
    assert verify_run(old).unchecked == ()
    new = make_run(
        tmp_path / "new", model=threshold_model(np.array(0.52)), candidates=old, plan=SamplingPlan(20, 300, 1, 100)
    )
    assert verify_run(new).unchecked == ()

    def lower(content: dict[str, Any]) -> None:
        content["seconds"] = 0.0

    rewrite_record(new, lower)  # the result was made from another record
    with pytest.raises(DoesNotHoldError):
        verify_run(new)
