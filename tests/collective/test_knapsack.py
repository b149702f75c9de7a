"""The closed form of the naive question against the linear program, enumeration and exact rational arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from localsmooth.collective import AtMostGroups, Ball, Caps, Integer, Naive, Problem, Rows, solve
from localsmooth.collective.kernel.knapsack import knapsack_supports
from localsmooth.collective.kernel.region import region_at
from localsmooth.collective.search.supports import supports


def exact_support(weights, rows, limits, upper):
    """The same question in exact rationals, by the greedy of one row at a time; shares no code with the package."""
    total = Fraction(0)
    free = np.flatnonzero(~np.any(rows > 0, axis=0))
    total += sum((Fraction(float(weights[c])) * Fraction(float(upper[c])) for c in free), Fraction(0))
    for row, limit in zip(rows, limits, strict=True):
        left = Fraction(float(limit))
        used = [c for c in range(len(row)) if row[c] > 0]
        for c in sorted(used, key=lambda c: Fraction(float(weights[c])) / Fraction(float(row[c])), reverse=True):
            spent = min(Fraction(float(upper[c])), left / Fraction(float(row[c])))
            total += spent * Fraction(float(weights[c]))
            left -= spent * Fraction(float(row[c]))
    return total


def separable(seed, unit=False):
    """Weights of a few inequalities, rows on disjoint columns, limits and caps; zeros and ties among them."""
    r = np.random.default_rng(seed)
    columns, number = int(r.integers(1, 7)), int(r.integers(1, 4))
    weights = r.choice([0.0, 0.3, 1.0, 7.0], size=(4, columns)) * (1.0 if unit else r.uniform(0.1, 2.0, (4, columns)))
    owner = r.integers(-1 if not unit else 0, number, size=columns)
    cost = np.ones(columns) if unit else r.choice([0.5, 1.0, 3.0], size=columns)
    rows = np.where(owner == np.arange(number)[:, None], cost, 0.0)
    limits = r.integers(0, 6, size=number).astype(float) * (1.0 if unit else r.choice([1e-9, 1.0, 0.37, 1e9], number))
    caps = r.integers(0, 4, size=columns).astype(float) * (1.0 if unit else r.choice([1.0, 0.21], columns))
    # As a region has them: no column can spend more than its budget.
    upper = region_at((Rows(rows, limits) & Caps(caps)).constraints(columns), 0).upper
    return weights, rows, limits, upper


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_values_are_the_exact_ones_rounded_up(seed):
    weights, rows, limits, caps = separable(seed)
    values, multipliers = knapsack_supports(weights, rows, limits, caps)
    for w, value, y in zip(weights, values, multipliers, strict=True):
        exact = exact_support(w, rows, limits, caps)
        assert Fraction(float(value)) >= exact
        assert float(value) <= float(exact) * (1 + 1e-12)
        assert np.all(y >= 0)
        shown = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(y, limits, strict=True))
        for column, cap in enumerate(caps):
            left = Fraction(float(w[column])) - sum(
                Fraction(float(a)) * Fraction(float(b)) for a, b in zip(y, rows[:, column], strict=True)
            )
            shown += max(Fraction(0), left) * Fraction(float(cap))
        assert shown <= Fraction(float(value))  # what `verify` asks of a proof


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_linear_program_says_the_same(seed):
    weights, rows, limits, caps = separable(seed)
    if np.any(limits > 1e6) or np.any((limits > 0) & (limits < 1e-6)):
        limits = np.minimum(limits, 3.0)  # an LP solver's tolerances are absolute
        limits = np.where(limits < 1e-6, 0.5, limits)
    values, _ = knapsack_supports(weights, rows, limits, caps)
    for w, value in zip(weights, values, strict=True):
        found = linprog(-w, rows, limits, bounds=[(0, cap) for cap in caps], method="highs")
        assert value == pytest.approx(-found.fun, rel=1e-9, abs=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_whole_flips_reach_the_value(seed):
    weights, rows, limits, caps = separable(seed, unit=True)
    values, _ = knapsack_supports(weights, rows, limits, caps)
    plans = [
        plan
        for plan in itertools.product(*(range(int(cap) + 1) for cap in caps))
        if np.all(rows @ np.array(plan) <= limits)
    ]
    best = (np.array(plans, dtype=float) @ weights.T).max(axis=0)
    assert values == pytest.approx(best, rel=1e-12)
    assert np.all(values >= best)


def test_one_weight_in_a_field_is_that_weight_times_what_can_be_flipped():
    weights = np.array([[0.3, 0.0, 0.3, 0.0], [0.0, 0.7, 0.0, 0.0]])
    values, multipliers = knapsack_supports(weights, np.ones((1, 4)), np.array([5.0]), np.array([2.0, 9.0, 1.0, 9.0]))
    assert values == pytest.approx([0.3 * 3, 0.7 * 5])
    assert multipliers.tolist() == [[0.0], [0.7]]


def test_rows_that_share_columns_are_left_to_linear_programs():
    weights = np.ones((1, 3))
    caps, limits = np.full(3, 4.0), np.array([2.0, 3.0])
    assert knapsack_supports(weights, np.array([[1.0, 1, 0], [0, 1, 1]]), limits, caps) is None
    assert knapsack_supports(weights, np.array([[1.0, -1, 0], [0, 0, 1]]), limits, caps) is None
    same = knapsack_supports(weights, np.ones((2, 3)), limits, caps)
    assert same is not None
    assert same[0] == pytest.approx([2.0])  # the tighter of two rows that say the same


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_naive_counts_are_those_of_the_linear_program(seed):
    weights, rows, limits, caps = separable(seed, unit=True)
    r = np.random.default_rng(seed)
    eta, group = r.choice([0.0, 0.3, 0.9, 1.0, 2.1, 7.0, 14.5], size=9), r.integers(0, 4, size=9)
    budgets = np.stack([limits, limits + 1, limits * 2 + 1])
    threat = Rows(rows, budgets) & Caps(caps) & Integer()
    # A second, idle row over everything sends the same question to the solver.
    loose = threat & Rows(np.ones((1, rows.shape[1])), [1e4])
    closed = solve(Problem(weights, eta, group, threat), Naive(), verify=True)
    assert closed.certified.tolist() == solve(Problem(weights, eta, group, loose), Naive()).certified.tolist()


@pytest.mark.parametrize("threat", [Ball([2.0], 0), Ball([2.0], 0) & Caps([1.0, 1.0, 0.0])])
def test_infinite_and_zero_caps(threat):
    constraints = (threat & Integer()).constraints(3)
    region = region_at(constraints, 0)
    found = supports(np.array([[0.0, 0.0, 5.0], [1.0, 2.0, 0.0]]), region)
    assert found.values == pytest.approx([0.0, 3.0] if region.upper[2] == 0 else [10.0, 4.0])


def test_columns_without_a_budget_feed_up_to_their_caps():
    region = region_at((Ball([1.0], 0, columns=[0]) & Caps([None, 4.0, None])).constraints(3), 0)
    found = supports(np.array([[1.0, 0.5, 0.0], [1.0, 0.5, 2.0]]), region)
    assert found.values.tolist()[0] == pytest.approx(3.0)
    assert np.isinf(found.values[1])


def test_switches_of_attacked_groups_are_left_to_linear_programs():
    threat = Ball([4.0], 0) & Caps([3.0, 3.0, 3.0]) & AtMostGroups(1) & Integer()
    found = supports(np.array([[1.0, 1.0, 1.0]]), region_at(threat.constraints(3), 0))
    assert found.values.tolist() == pytest.approx([3.0])


def test_numbers_out_of_range_are_turned_against_the_certificate():
    tiny, huge = 2.0**-1074, 1e308
    rows, limits, upper = np.array([[tiny, 1.0]]), np.array([1.0]), np.array([huge, 1.0])
    with np.errstate(all="ignore"):
        values, multipliers = knapsack_supports(np.array([[huge, 1.0], [tiny, tiny]]), rows, limits, upper)
    assert values[0] >= huge
    assert np.all(np.isfinite(multipliers) & (multipliers >= 0))
    assert Fraction(float(values[1])) >= exact_support(np.array([tiny, tiny]), rows, limits, upper)
