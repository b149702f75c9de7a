"""Sampling one item with the model in integer arithmetic."""

from __future__ import annotations

import numpy as np

from localsmooth.execution import sample
from localsmooth.layout import Layout
from localsmooth.models import Model
from localsmooth.noise import Gaussian
from localsmooth.runs import SamplingPlan, Store
from localsmooth.sampling import ItemTally, SamplingOptions
from localsmooth.testing.exact import SHAPE, ExactModel, make_item, make_layout

__all__ = ["PLAN", "SHAPE", "ExactModel", "assert_same", "make_item", "make_layout", "run"]

PLAN = SamplingPlan(n_candidate=10, n_bound=45, seed=3, chunk_size=20)


def run(
    model: Model | None = None,
    *,
    batch_size: int | None = 8,
    plan: SamplingPlan = PLAN,
    store: Store | None = None,
    layout: Layout | None = None,
    **options: object,
) -> ItemTally:
    """Sample one item with the exact model."""
    keywords = {key: options.pop(key) for key in ("executor", "progress", "part") if key in options}
    return sample(
        ExactModel() if model is None else model,
        [make_item()],
        [make_layout() if layout is None else layout],
        Gaussian(),
        plan,
        store,
        options=SamplingOptions(batch_size=batch_size, check_model=False, **options),  # type: ignore[arg-type]
        **keywords,  # type: ignore[arg-type]
    )[0]


def assert_same(left: ItemTally, right: ItemTally) -> None:
    np.testing.assert_array_equal(left.candidate, right.candidate)
    np.testing.assert_array_equal(left.votes, right.votes)
    assert (left.n, left.n_candidate) == (right.n, right.n_candidate)
