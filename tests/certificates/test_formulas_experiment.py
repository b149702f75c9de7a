"""The variances that `experiments/formulas.py` takes for extreme scores, against linear programs over all laws."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

PATH = Path(__file__).parents[2] / "experiments" / "formulas.py"
POINTS = np.linspace(0, 1, 801)


@pytest.fixture(scope="module")
def formulas():
    """The script as a module."""
    specification = importlib.util.spec_from_file_location("formulas", PATH)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def extreme_variance(mu: float, q: float, sign: float) -> float | None:
    """Least (1) or largest (−1) variance of scores with this mean and share above ½; ½ may count on either side."""
    scores = np.concatenate([POINTS[POINTS <= 0.5], POINTS[POINTS >= 0.5]])
    above = np.arange(scores.size) >= np.count_nonzero(POINTS <= 0.5)
    rows = np.stack([np.ones(scores.size), scores, above.astype(float)])
    found = linprog(sign * scores**2, A_eq=rows, b_eq=[1.0, mu, q], method="highs")
    return sign * float(found.fun) - mu**2 if found.status == 0 else None


@pytest.mark.parametrize("mu", [0.51, 0.6, 0.75, 0.9, 0.97])
@pytest.mark.parametrize("q", [0.55, 0.75, 0.9, 0.98])
def test_variances_are_the_extreme_ones(formulas, mu: float, q: float) -> None:
    """Both where such scores exist, NaN where none do."""
    largest = float(formulas.largest_variance(np.array(mu), np.array(q)))
    smallest = float(formulas.smallest_variance(np.array(mu), np.array(q)))
    most, least = extreme_variance(mu, q, -1.0), extreme_variance(mu, q, 1.0)
    if most is None or least is None:
        assert np.isnan(largest)
        assert np.isnan(smallest)
        return
    assert largest == pytest.approx(most, abs=1e-9)
    # The one score of those that vote for the class need not lie on the grid, whose laws spread a little more.
    assert -1e-9 <= least - smallest <= 1e-6
