"""What is certified of all outputs is never less than what is certified of the correct ones among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localsmooth.bounds import KFamilywise
from localsmooth.collective import Envelope, Naive
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.results import ACCURACY, RATIO, load
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from tests.collective.tired import OutOfTime
from tests.flat import certify, recertify
from tests.pipeline.models import threshold_model

SHAPE = (6, 8)
BUDGETS = [0.0, 0.3, 0.6, 0.9]


@pytest.mark.parametrize("k", [1, 3])
def test_the_ratio_is_at_least_the_accuracy(k: int, tmp_path: Path) -> None:
    labels = np.ones(SHAPE, np.int64)
    labels[0, :3] = 0
    correct = int(labels.sum())
    bounds = {"naive": Naive(), "tired": OutOfTime(correct), "envelope": Envelope()}
    result = certify(
        threshold_model(np.full(SHAPE, -0.9)),
        np.zeros((1, 1, *SHAPE), np.float32),
        [labels],
        layout=GridLayout((2, 4), 0.25, 1.2),
        plan=SamplingPlan(50, 3000, seed=3, chunk_size=1000),
        alpha=0.05,
        budgets=BUDGETS,
        bounds=bounds,
        simultaneous=KFamilywise(k),
        options=SamplingOptions(batch_size=250, check_model=False),
        progress=NoProgress(),
        out=tmp_path,
    )
    certified, lower, upper = (result[name].isel(item=0) for name in ("certified", "lower", "upper"))
    assert int((result["prediction"] == 1).sum()) > correct
    ratio, accuracy = (certified.sel(target=target) for target in (RATIO, ACCURACY))
    assert (ratio >= accuracy).all()
    assert (lower.sel(target=RATIO) >= lower.sel(target=ACCURACY)).all()
    # The tired bound does prove more of the correct outputs than of all, and the ratio takes it over.
    naive = ratio.sel(bound="naive")
    taken = accuracy.sel(bound="tired") > naive
    assert taken.any()
    assert (ratio.sel(bound="tired") == np.maximum(accuracy.sel(bound="tired"), naive)).all()
    assert (ratio <= upper.sel(target=RATIO)).all()
    assert load(tmp_path / "result.nc").drop_attrs(deep=False).equals(result.drop_attrs(deep=False))
    again = recertify(tmp_path, bounds=bounds, simultaneous=KFamilywise(k))
    np.testing.assert_array_equal(again["certified"].values, result["certified"].values)
