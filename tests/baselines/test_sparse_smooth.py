"""SparseSmooth through the whole pipeline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localsmooth.baselines import ReceptiveFields, SparseSmooth
from localsmooth.baselines.regions import region_law
from localsmooth.certificates import ExactVotes
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout, Layout, Partition
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Bernoulli, Noise, SparseFlips
from localsmooth.report.html import render_report
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.arrays import Flips, Kind
from tests.flat import certify, recertify

SHAPE = (3, 4)
BUDGETS = [0.0, 1.0, 2.0, 2.5, 4.0, 12.0]


def row_model() -> CallableModel:
    def predict(batch: np.ndarray) -> np.ndarray:
        share = batch[:, 0].mean(axis=2, keepdims=True)
        return np.broadcast_to(share >= 0.5, batch[:, 0].shape).astype(np.int64)

    return CallableModel(predict, name="rows", bounds=(0, 1), classes=2, output=OutputKind.LABELS)


def run(noise: Noise, layout: GridLayout, **changes: object):
    image = np.zeros((1, *SHAPE), np.float32)
    image[0, 0] = 1
    image[0, 1, :2] = 1
    arguments = {
        "plan": SamplingPlan(n_candidate=64, n_bound=3000, seed=1, chunk_size=500),
        "alpha": 0.05,
        "budgets": BUDGETS,
        "options": SamplingOptions(batch_size=500),
        "progress": NoProgress(),
    }
    return certify(row_model(), [image], noise=noise, layout=layout, **(arguments | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", list(Kind))
def test_counts_by_the_definition(kind: Kind, tmp_path: Path) -> None:
    """An output counts if its bound exceeds the threshold of every mix that the budget and the image allow."""
    plus, minus = 0.0625, 0.25
    layout = GridLayout((1, 1), (plus, minus), (plus, minus))
    result = run(SparseFlips(), layout, method=SparseSmooth(), threat=Flips(kind), out=tmp_path / "run")
    q = result["lower_probability"].values[0].ravel()
    zeros, ones = (0 if kind is Kind.DELETIONS else 6), (0 if kind is Kind.ADDITIONS else 6)
    for budget, count in zip(BUDGETS, result["certified"].values[0, 0, 0], strict=True):
        mixes = [(a, d) for a in range(zeros + 1) for d in range(ones + 1) if a + d <= budget]
        worst = max(region_law(plus, minus, a, d).smallest_robust_probability() for a, d in mixes)
        assert count == (q > worst).sum()
    assert result["certified"].values[0, 0, 0, 0] > 6
    # Exact votes, made linear, and any collective bound on them: never more under isotropic noise.
    grid = recertify(tmp_path / "run", certificates=(ExactVotes(),), threat=Flips(kind))
    assert (grid["certified"].values[0, 0].max(axis=0) <= result["certified"].values[0, 0, 0]).all()
    if kind is not Kind.ANY:
        np.testing.assert_array_equal(grid["certified"].values[0, 0].max(axis=0), result["certified"].values[0, 0, 0])
    assert "SparseSmooth" in render_report(result)


def test_flips_that_are_not_told_apart() -> None:
    result = run(Bernoulli(), GridLayout((1, 1), 0.125, 0.125), method=SparseSmooth())
    q = result["lower_probability"].values[0].ravel()
    for budget, count in zip(BUDGETS, result["certified"].values[0, 0, 0], strict=True):
        flips = int(min(budget, 12))
        worst = max(region_law(0.125, 0.125, a, flips - a).smallest_robust_probability() for a in range(flips + 1))
        assert count == (q > worst).sum()
    radius = result["radius"].values[0].ravel()
    for budget, count in zip(BUDGETS, result["certified"].values[0, 0, 0], strict=True):
        assert count == (radius > np.floor(budget)).sum()


def either_of_two(batch: np.ndarray) -> np.ndarray:
    """Label 0 where the first two bits are 0: it takes two additions, and no number of deletions."""
    return (batch[:, 0, :2] > 0.5).any(axis=1, keepdims=True).astype(np.int64)


@pytest.mark.parametrize("method", [SparseSmooth(), ReceptiveFields(fields=np.ones((1, 12), bool))])
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("largest", [0.0, 1.0, 2.5, 7.0, 40.0])
def test_no_radius_goes_beyond_what_was_explored(
    method: SparseSmooth | ReceptiveFields, kind: Kind, largest: float
) -> None:
    """Sizes above the largest budget have mixes that nobody looked at: two additions where one of each kind is fine."""
    plus, minus = 0.01, 0.6
    model = CallableModel(either_of_two, name="two", bounds=(0, 1), classes=2, output=OutputKind.LABELS)
    image = np.repeat(np.array([0, 1], np.float32), 6)[None]
    result = certify(
        model,
        [image],
        layout=Layout(Partition(np.zeros(1, np.int32)), Partition(np.zeros(12, np.int32)), np.array([[[plus, minus]]])),
        noise=SparseFlips(),
        plan=SamplingPlan(100, 20_000, seed=1, chunk_size=5_000),
        alpha=0.01,
        budgets=sorted({0.0, largest}),
        threat=Flips(kind),
        method=method,
        options=SamplingOptions(batch_size=5_000),
        progress=NoProgress(),
    )
    (q,), (radius,) = (result[name].values[0] for name in ("lower_probability", "radius"))
    zeros, ones = (0 if kind is Kind.DELETIONS else 6), (0 if kind is Kind.ADDITIONS else 6)
    tolerated = {(a, d) for a in range(zeros + 1) for d in range(ones + 1) if a + d < radius}
    assert all(q > region_law(plus, minus, a, d).smallest_robust_probability() for a, d in tolerated)
    # Two additions do change the smoothed label, to 1 with probability 1 - .6².
    assert (2, 0) not in tolerated
    assert 1 <= radius <= 1 + min(largest, zeros + ones)
    if kind is Kind.DELETIONS:
        assert radius == 1 + min(np.floor(largest), ones)
