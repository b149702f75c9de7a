"""Level matrices against a plain restatement of the rule."""

import numpy as np
import pytest

from localsmooth.errors import InvalidInputError
from localsmooth.layout import (
    Grid,
    chebyshev,
    distance_levels,
    euclidean,
    farthest_of_each_cell,
    farthest_of_grid,
    linear,
    linear_in_variance,
)

POSITIONS = Grid((3, 5)).positions()


def plain_distance(metric: str, a: np.ndarray, b: np.ndarray) -> float:
    rows, columns = abs(int(a[0]) - int(b[0])), abs(int(a[1]) - int(b[1]))
    return float(max(rows, columns)) if metric == "chebyshev" else (rows**2 + columns**2) ** 0.5


@pytest.mark.parametrize("metric", ["chebyshev", "euclidean"])
@pytest.mark.parametrize("reach", ["grid", "cell"])
@pytest.mark.parametrize("variance", [False, True])
def test_every_entry(metric: str, reach: str, variance: bool) -> None:
    low, high = 0.15, 1.0
    levels = distance_levels(
        POSITIONS,
        low,
        high,
        metric={"chebyshev": chebyshev, "euclidean": euclidean}[metric],
        reach={"grid": farthest_of_grid, "cell": farthest_of_each_cell}[reach],
        interpolation=linear_in_variance if variance else linear,
    )
    table = [[plain_distance(metric, a, b) for b in POSITIONS] for a in POSITIONS]
    for i, row in enumerate(table):
        far = max(row) if reach == "cell" else max(max(r) for r in table)
        for j, distance in enumerate(row):
            share = distance / far
            expected = (low**2 + (high**2 - low**2) * share) ** 0.5 if variance else low + (high - low) * share
            assert levels[i, j] == pytest.approx(expected, rel=1e-12)
    assert levels.max() == high
    assert (np.diag(levels) == low).all()
    if reach == "cell":
        assert (levels.max(axis=1) == high).all()


def test_one_cell_has_the_smallest_level() -> None:
    np.testing.assert_array_equal(distance_levels(np.zeros((1, 2), dtype=int), 0.2, 0.9), [[0.2]])


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.5), (np.nan, 1.0), (0.1, np.inf), (0.1, np.nan)])
def test_levels_that_form_no_interval_are_refused(low: float, high: float) -> None:
    with pytest.raises(InvalidInputError, match="levels"):
        distance_levels(POSITIONS, low, high)
