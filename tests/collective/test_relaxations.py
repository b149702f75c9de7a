"""naive, lp and envelope against known answers, brute force and each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from localsmooth.collective import Ball, Envelope, Exact, LinearProgram, Naive, Problem, Rows, solve
from localsmooth.collective.search.bound import RelaxationSolver
from localsmooth.collective.search.minorant import EnvelopeLines, ReciprocalLines
from localsmooth.collective.search.setting import setting_at

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


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_order_of_bounds_for_many_certificates_and_groups_against_enumeration(seed):
    sizes = {"certificates": 5 + seed % 4, "groups": 5 + seed % 3, "outputs": 12, "columns": 2}
    case = random_problem(seed, integer=True, **sizes)
    _check_order(case)
    _check_proofs_reach_what_the_solver_found(build(case))


def many_certificates(seed):
    r = np.random.default_rng(seed)
    certificates, groups = r.integers(5, 9, 2)
    columns, outputs = int(r.integers(2, 7)), int(r.integers(40, 120))
    weights, eta = r.uniform(0, 3, (certificates, groups, columns)), r.gamma(1.5, 0.6, (certificates, outputs))
    return Problem(weights, eta, r.integers(0, groups, outputs), Ball(float(r.uniform(0.4, 1.0)), norm=1))


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_order_of_bounds_for_many_certificates_and_groups(seed):
    problem = many_certificates(seed)
    bounds = (Naive(), LinearProgram(), Envelope(), Exact(time_limit=0.1))
    answers = [solve(problem, bound, verify=True)[0] for bound in bounds]
    for weaker, stronger in itertools.pairwise(answers):
        assert weaker.lower <= stronger.lower + 1e-6
    least = min(answer.upper for answer in answers)
    assert all(answer.certified <= least for answer in answers)
    _check_proofs_reach_what_the_solver_found(problem)


def _check_proofs_reach_what_the_solver_found(problem):
    """Shares that sum to one but for a margin must pass for sound, however many inequalities share a group."""
    setting = setting_at(problem, 0)
    for bound, minorant in ((LinearProgram(), ReciprocalLines()), (Envelope(), EnvelopeLines())):
        found = RelaxationSolver(minorant).relax(setting).value
        assert solve(problem, bound)[0].lower >= found - 1e-6


@pytest.mark.parametrize("seed", [0, 1, 5, 7])
def test_many_certificates_share_their_groups(seed):
    # The margin that keeps shares sound must pass for sound, whatever the number of inequalities.
    naive, lp, envelope = (solve(many_certificates(seed), bound, verify=True)[0] for bound in BOUNDS.values())
    assert lp.lower > naive.lower + 3
    assert envelope.lower > lp.lower + 3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_exact_never_ends_below_the_relaxations(seed, limit):
    r = np.random.default_rng(seed)
    weights, eta = 10 ** r.uniform(-2, 2, (3, 6, 5)), 10 ** r.uniform(-3, 3, (3, 80))
    threat = Ball([0.03, 0.3, 3.0], norm=1)
    problem = Problem(weights, eta, r.integers(0, 6, 80), threat)
    exact = solve(problem, Exact(time_limit=limit), verify=True)
    for bound in (Naive(), LinearProgram(), Envelope()):
        assert all(a.lower >= b.lower for a, b in zip(exact, solve(problem, bound), strict=True))


def test_exact_and_envelope_take_the_better_of_two_opinions(monkeypatch):
    # A solver that fails on the envelope must not leave less than the linear program proves.
    problem = many_certificates(0)
    expected = solve(problem, LinearProgram())[0].lower
    assert expected > solve(problem, Naive())[0].lower + 3
    monkeypatch.setattr(
        EnvelopeLines, "line", lambda self, steps, start, stop, feed: (float(steps.counts[stop - 1]), 0.0)
    )
    assert solve(problem, Envelope())[0].lower >= expected
    assert solve(problem, Exact(time_limit=0))[0].lower >= expected


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
    cvxpy = pytest.importorskip("cvxpy", reason="needs cvxpy (pip install localsmooth[compare])")
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
