"""naive, lp and envelope against known answers, brute force and each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from localsmooth.collective import Ball, Envelope, LinearProgram, Naive, Problem, Rows, solve

from .oracle import brute_force
from .problems import CASES, build, random_problem, seeds, stored

BOUNDS = {"naive": Naive(), "paper_lp": LinearProgram(), "envelope": Envelope()}


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_stored_cases(case, name):
    answer = solve(stored(case), BOUNDS[name], verify=True)[0]
    expected, exact = case["expected"][name], case["expected"]["exact"]
    assert answer.lower >= expected - 1e-4
    if not case["integer"]:
        assert answer.lower <= expected + 1e-4
    assert answer.certified <= exact <= answer.upper
    assert answer.certified >= int(np.ceil(expected - 1e-4))


@given(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_order_of_bounds(seed):
    _check_order(random_problem(seed, rows=1 + seed % 3))


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_order_of_bounds_for_whole_numbers(seed):
    _check_order(random_problem(seed, integer=True, rows=1 + seed % 2))


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_order_of_bounds_for_several_certificates(seed):
    _check_order(random_problem(seed, certificates=2, outputs=int(seed % 5) + 1, groups=2))


def _check_order(case):
    problem = build(case)
    optimum = brute_force(**case)
    naive, lp, envelope = (solve(problem, bound, verify=True)[0] for bound in BOUNDS.values())
    assert naive.lower <= lp.lower + 1e-6
    assert lp.lower <= envelope.lower + 1e-6
    assert envelope.certified <= optimum <= min(naive.upper, lp.upper, envelope.upper)
    for answer in (naive, lp, envelope):
        assert answer.certified <= optimum


def test_paper_relaxation_against_its_own_formulation():
    cvxpy = pytest.importorskip("cvxpy")
    r = np.random.default_rng(5)
    weights, group = r.uniform(0.2, 3, (4, 5)), r.integers(0, 4, 60)
    eta, budget = r.gamma(2.0, 1.0, 60), 0.8
    b, t = cvxpy.Variable(5, nonneg=True), cvxpy.Variable(60)
    reached = weights.max(axis=1)[group] * budget >= eta
    rows = [cvxpy.sum(b) <= budget, t >= 0, t <= 1]
    rows.append(t[reached] >= 1 - cvxpy.multiply(1 / eta[reached], (weights[group] @ b)[reached]))
    rows.append(t[~reached] == 1)
    expected = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(t)), rows).solve(solver="CLARABEL")
    lower = solve(Problem(weights, eta, group, Ball(budget, norm=1)), LinearProgram())[0].lower
    assert lower == pytest.approx(expected, abs=1e-4)


def test_curve_is_monotone_and_equals_single_budgets():
    r = np.random.default_rng(2)
    weights, group, eta = r.uniform(0, 3, (4, 5)), r.integers(0, 4, 200), r.gamma(2.0, 1.0, 200)
    budgets = r.permutation(np.linspace(0, 3, 25))
    for bound in BOUNDS.values():
        curve = solve(Problem(weights, eta, group, Ball(budgets)), bound)
        ordered = curve.certified[np.argsort(budgets)]
        assert np.all(np.diff(ordered) <= 0)
        assert ordered[0] == 200
        assert ordered[-1] == 0
        for index in (3, 11):
            alone = solve(Problem(weights, eta, group, Ball(budgets[index])), bound)[0]
            assert alone.lower == pytest.approx(curve[index].lower, abs=1e-6)


def test_attack_is_allowed_and_breaks_what_it_says():
    r = np.random.default_rng(3)
    weights, group, eta = r.uniform(0, 3, (4, 5)), r.integers(0, 4, 200), r.gamma(2.0, 1.0, 200)
    A, c = r.uniform(0, 1, (2, 5)), np.array([0.4, 0.6])
    answer = solve(Problem(weights, eta, group, Rows(A, c)))[0]
    assert np.all(A @ answer.attack <= c)
    feed = weights @ answer.attack
    assert set(answer.broken) == set(np.flatnonzero(feed[group] >= eta))
    assert answer.upper == 200 - len(answer.broken)


def test_price_is_the_slope_of_the_curve():
    r = np.random.default_rng(4)
    weights, group, eta = r.uniform(0, 3, (4, 5)), r.integers(0, 4, 400), r.gamma(2.0, 1.0, 400)
    budgets = np.array([0.5, 0.5 + 1e-4])
    curve = solve(Problem(weights, eta, group, Ball(budgets, norm=1)))
    slope = (curve[1].lower - curve[0].lower) / 1e-4
    assert curve[0].prices[0] == pytest.approx(-slope, rel=1e-3)
