"""Numbers that leave the floating-point range bound nothing, and are never taken for zero."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from localsmooth.collective.kernel.dual import DualPoint, evaluate, evaluate_exactly, root_cell
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.kernel.region import Region, support_value
from localsmooth.collective.kernel.threat import Rows
from localsmooth.collective.search.setting import setting_at

pytestmark = pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")


def _region(rows, limits, upper):
    columns = len(upper)
    return Region(
        np.array(rows, dtype=float), np.array(limits, dtype=float), np.array(upper, dtype=float),
        np.zeros(columns, dtype=bool), columns, np.arange(len(limits)),
    )  # fmt: skip


def test_reduced_costs_that_overflow_prove_nothing():
    # Slope · W is −∞ and multiplier · row +∞: not a number together. Taken for zero, all targets would stand.
    problem = Problem([[1e200]], [1.0, 2.0], [0, 0], Rows([[1e200]], [1e-300]))
    setting = setting_at(problem, 0)
    point = DualPoint(np.array([-1e200]), np.ones(1), np.array([1e200]))
    region = replace(setting.region, upper=np.array([1.0]))
    cell = root_cell(setting.pieces, region, np.array([1e300]))
    assert evaluate(setting.pieces, region, cell, point) == -np.inf


def test_reduced_costs_that_overflow_are_far_from_what_is_true():
    problem = Problem([[1e200]], [1.0, 2.0], [0, 0], Rows([[1e200]], [1e-300]))
    setting = setting_at(problem, 0)
    point = DualPoint(np.array([-1e201]), np.ones(1), np.array([1e200]))
    region = replace(setting.region, upper=np.array([1.0]))
    cell = root_cell(setting.pieces, region, np.array([1e300]))
    exact = evaluate_exactly(setting.pieces, region, cell, point)
    assert exact is not None
    assert exact < -(10**300)
    assert evaluate(setting.pieces, region, cell, point) <= exact


@pytest.mark.parametrize(("lower", "limit", "price"), [(1e200, 1.0, 1e200), (1e200, 1e200, 1e200), (0.0, 1e200, 1e200)])
def test_terms_that_overflow_prove_nothing(lower, limit, price):
    problem = Problem([[1.0]], [1.0, 2.0], [0, 0], Rows([[1.0]], [limit]))
    setting = setting_at(problem, 0)
    cell = replace(setting.cell, lower=np.array([lower]))
    point = DualPoint(np.zeros(1), np.ones(1), np.array([price]))
    assert evaluate(setting.pieces, setting.region, cell, point) == -np.inf


def test_supports_that_overflow_are_not_below_what_their_multipliers_show():
    # Two rows absorb +∞ and −∞ of a column, in truth nothing: what is left of its weight must count.
    region = _region([[1e200, -1.0], [-1e200, -1.0]], [0.0, 0.0], [1.0, 1.0])
    weights, multipliers = np.array([[3.0, 0.0]]), np.array([[1e200, 1e200]])
    shown = Fraction(3) + 2 * Fraction(1e200)
    assert Fraction(float(np.minimum(support_value(weights, multipliers, region), 1e308)[0])) >= shown
    alone = _region([[1e200], [-1e200]], [0.0, 0.0], [1.0])
    assert support_value(np.array([[3.0]]), multipliers, alone)[0] >= 3.0


def test_supports_of_unbounded_columns_are_infinite():
    region = _region([[1e200], [-1e200]], [0.0, 0.0], [np.inf])
    assert support_value(np.array([[3.0]]), np.array([[1e200, 1e200]]), region)[0] == np.inf
    assert support_value(np.array([[0.0]]), np.zeros((1, 2)), region)[0] == 0.0
