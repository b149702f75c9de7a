"""Corners of the input: extreme budgets, magnitudes, ties, and nothing at all; and input that must be refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from localsmooth.collective import Ball, Caps, Envelope, Exact, LinearProgram, Milp, Naive, Problem, Rows, solve
from localsmooth.collective.kernel.attack import survivors
from localsmooth.collective.search.candidates import fit
from localsmooth.collective.search.linear_program import LinearModel, Solution
from localsmooth.collective.search.setting import setting_at
from localsmooth.collective.search.supports import supports
from localsmooth.errors import InvalidInputError

BOUNDS = [Naive(), LinearProgram(), Envelope()]


@pytest.mark.parametrize("bound", BOUNDS)
def test_budgets_of_zero_and_infinity(bound):
    problem = Problem([[1.0, 2.0], [0.0, 0.0]], [0.0, 1.0, 2.0, 3.0], [0, 0, 1, 0], Ball([np.inf, 0.0]))
    curve = solve(problem, bound, verify=True)
    assert curve.certified.tolist() == [1, 3]  # the second group cannot be fed; the first output abstains
    assert curve.upper.tolist() == [1, 3]


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_tie_falls(bound):
    problem = Problem([[4.0]], [1.0, np.nextafter(1.0, 2.0)], [0, 0], Ball(0.5))
    answer = solve(problem, bound, verify=True)[0]
    assert answer.upper == 1
    assert answer.certified <= 1
    lost = Problem([[4.0]], [np.nextafter(1.0, 0.0)] * 3, [0, 0, 0], Ball(0.5))
    assert solve(lost, bound)[0].certified == 0


@pytest.mark.parametrize("bound", BOUNDS)
def test_zero_weights_protect(bound):
    problem = Problem(np.zeros((1, 2)), [1e-12, 5.0], [0, 0], Ball(1e6))
    assert solve(problem, bound, verify=True)[0].certified == 2


@pytest.mark.parametrize("bound", BOUNDS)
def test_zero_and_one_output(bound):
    assert solve(Problem(np.ones((1, 1)), np.zeros(0), np.zeros(0, int), Ball(1.0)), bound)[0].certified == 0
    assert solve(Problem(np.ones((1, 1)), [2.0], [0], Ball(1.0)), bound, verify=True)[0].certified == 1
    assert solve(Problem(np.ones((1, 1)), [0.0], [0], Ball(0.0)), bound, verify=True)[0].certified == 0


@pytest.mark.parametrize("bound", BOUNDS)
def test_groups_without_targets(bound):
    weights = np.ones((5, 2))
    problem = Problem(weights, [0.5, 2.0, 0.2], [4, 1, 1], Ball(1.0), targets=[1])
    assert solve(problem, bound, verify=True)[0].certified == 1


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("seed", range(5))
def test_twelve_orders_of_magnitude(bound, seed):
    r = np.random.default_rng(seed)
    weights = 10 ** r.uniform(-6, 6, (3, 4))
    eta = 10 ** r.uniform(-6, 6, 50)
    group = r.integers(0, 3, 50)
    budgets = 10.0 ** np.arange(-6, 7)
    curve = solve(Problem(weights, eta, group, Ball(budgets, norm=1)), bound, verify=True)
    assert np.all(np.diff(curve.certified) <= 0)
    assert np.all(curve.certified <= curve.upper)


ALL_BOUNDS = [*BOUNDS, Exact(time_limit=5), Milp(time_limit=5)]


@pytest.mark.parametrize("bound", ALL_BOUNDS)
def test_slopes_beyond_the_range_of_the_solver(bound):
    problem = Problem([[1e12], [0.0]], [1e3, 0.1], [0, 1], Ball((1e6,), 2))
    answer = solve(problem, bound, verify=True)[0]
    assert (answer.certified, answer.upper) == (1, 1)


def wide(seed):
    """Return a problem whose numbers span 12 to 24 orders of magnitude."""
    r = np.random.default_rng(seed)
    span = (6, 9, 12)[seed % 3]
    certificates, groups, columns, outputs = 1 + seed % 2, *(int(r.integers(1, 5)) for _ in range(2)), 20
    weights = 10 ** r.uniform(-span, span, (certificates, groups, columns)) * (r.random((groups, columns)) < 0.8)
    eta = 10 ** r.uniform(-span, span, (certificates, outputs))
    budget = 10 ** r.uniform(-span, span)
    threats = [
        Ball(budget, norm=1 + int(r.integers(2))),
        Ball(budget, norm=1) & Caps(10 ** r.uniform(-span, span, columns)),
        Rows(10 ** r.uniform(-span, span, (2, columns)), 10 ** r.uniform(-span, span, 2)),
    ]
    return Problem(weights, eta, r.integers(0, groups, outputs), threats[int(r.integers(3))])


def sampled_attack(problem, r):
    """Return the least count that some random attacks leave."""
    setting = setting_at(problem, 0)
    upper = setting.region.upper[: problem.columns]
    trials = (fit(setting, upper * r.dirichlet(np.full(problem.columns, 0.3))) for _ in range(40))
    return min(survivors(problem, trial) for trial in trials if trial is not None)


@pytest.mark.parametrize("seed", range(30))
def test_order_of_bounds_over_wide_ranges(seed):
    problem = wide(seed)
    answers = [solve(problem, bound, verify=True)[0] for bound in (*BOUNDS, Exact(time_limit=0.1))]
    least = min(sampled_attack(problem, np.random.default_rng(seed)), *(answer.upper for answer in answers))
    for weaker, stronger in itertools.pairwise(answers):
        assert weaker.lower <= stronger.lower + 1e-6
    assert all(answer.certified <= least for answer in answers)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("weight", "budget", "norm"), [(2.5e-155, 1e-300, 1), (2.5e-155, 1e-300, 2), (5e-324, 0.3, 1), (1e-200, 1e-124, 1)]
)
def test_products_below_the_normal_numbers(bound, weight, budget, norm):
    # Whatever is fed here is more than nothing, but far less than any normal number.
    problem = Problem([[weight, 0.0]], [1.0, 1e-300], [0, 0], Ball(budget, norm=norm))
    answer = solve(problem, bound, verify=True)[0]
    assert answer.certified == 2


def test_feeds_that_underflow_are_not_nothing():
    region = setting_at(Problem([[1e-200]], [1.0], [0], Ball(1e-200, norm=1)), 0).region
    assert supports(np.array([[1e-200]]), region).values[0] > 0
    assert supports(np.array([[0.0]]), region).values[0] == 0
    # The least positive threshold falls to one and a half times as much, which rounds to it.
    lost = Problem([[2.5e-324 * 3]], [5e-324], [0], Ball(1.0, norm=1))
    assert solve(lost, verify=True)[0].certified == 0


def test_a_refused_program_has_no_solution():
    one = np.ones(1)
    model = LinearModel()
    model.load(one, 0 * one, one, np.array([[1e300]]), 0 * one, one)
    assert not model.solve().feasible
    model.load(-one, 0 * one, one, np.array([[2.0]]), 0 * one, one)
    assert model.solve().columns == pytest.approx([0.5])
    model.add_rows(np.array([[1e300]]), -one)
    solution = model.solve()
    assert not solution.feasible
    assert solution.duals.tolist() == [0.0, 0.0]
    model.load(-one, 0 * one, one, np.array([[2.0]]), 0 * one, one)
    model.bound_columns(np.array([np.nan]), one)
    assert not model.solve().feasible
    model.bound_columns(0 * one, one / 4)
    assert model.solve().columns == pytest.approx([0.25])


def test_answers_do_not_depend_on_units():
    r = np.random.default_rng(0)
    weights, eta, group = r.uniform(0, 3, (4, 5)), r.gamma(2.0, 1.0, 100), r.integers(0, 4, 100)
    reference = solve(Problem(weights, eta, group, Ball(1.0, norm=1)))[0].lower
    for factor in (1e-12, 1e-6, 1e6, 1e12):
        scaled = solve(Problem(weights * factor, eta * factor, group, Ball(1.0, norm=1)))[0].lower
        assert scaled == pytest.approx(reference, abs=1e-6)
        budget = solve(Problem(weights, eta * factor, group, Ball(factor, norm=1)))[0].lower
        assert budget == pytest.approx(reference, abs=1e-6)


def test_an_output_with_infinite_threshold_never_falls():
    assert solve(Problem([[1.0]], [np.inf, 1.0], [0, 0], Ball(np.inf)), verify=True)[0].certified == 1


GOOD = {"weights": [[1.0, 2.0]], "eta": [1.0, 2.0], "group": [0, 0], "threat": Ball(1.0)}


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("weights", {"weights": [[np.nan, 1.0]]}),
        ("weights", {"weights": [[-1.0, 1.0]]}),
        ("weights", {"weights": [[np.inf, 1.0]]}),
        ("weights", {"weights": [1.0, 2.0]}),
        ("weights", {"weights": [[1.0], [1.0, 2.0]]}),
        ("weights", {"weights": "many"}),
        ("eta", {"eta": [np.nan, 1.0]}),
        ("eta", {"eta": [-1.0, 1.0]}),
        ("eta", {"eta": [[1.0, 2.0], [1.0, 2.0]]}),
        ("group", {"group": [0]}),
        ("group", {"group": [0, 1]}),
        ("group", {"group": [0, -1]}),
        ("group", {"group": [0.5, 0.0]}),
        ("targets", {"targets": []}),
        ("targets", {"targets": [2]}),
        ("targets", {"targets": [-1]}),
        ("targets", {"targets": [0, 0]}),
        ("targets", {"targets": [True]}),
        ("targets", {"targets": [0.5]}),
        ("budgets", {"threat": Ball(-1.0)}),
        ("budgets", {"threat": Ball([np.nan])}),
        ("budgets", {"threat": Ball([])}),
        ("norm", {"threat": Ball(1.0, norm=-1)}),
        ("columns", {"threat": Ball(1.0, columns=[2])}),
        ("A", {"threat": Rows([[1.0]], [1.0])}),
        ("A", {"threat": Rows([[np.nan, 1.0]], [1.0])}),
        ("c", {"threat": Rows([[1.0, 1.0]], [-1.0])}),
        ("c", {"threat": Rows([[1.0, 1.0]], [1.0, 2.0])}),
        ("caps", {"threat": Caps([1.0])}),
        ("caps", {"threat": Caps([-1.0, None])}),
        ("threat", {"threat": Ball([1.0, 2.0]) & Ball([1.0, 2.0, 3.0])}),
    ],
)
def test_bad_input_names_the_field(field, change):
    with pytest.raises(InvalidInputError) as caught:
        Problem(**{**GOOD, **change})
    assert caught.value.field == field


def test_a_solver_that_runs_out_of_time_has_no_solution():
    one = np.ones(1)
    model = LinearModel(seconds=0.0)
    model.load(-one, 0 * one, one, np.array([[2.0]]), 0 * one, one)
    for _ in range(2):  # the solver's clock must not add up over its solves
        assert not model.solve().feasible
    patient = LinearModel(seconds=5.0)
    patient.load(-one, 0 * one, one, np.array([[2.0]]), 0 * one, one)
    assert patient.solve().columns == pytest.approx([0.5])


def test_what_was_known_before_the_solver_gave_up_still_proves_something(monkeypatch):
    r = np.random.default_rng(0)
    weights, eta, group = r.uniform(0, 3, (8, 8)), r.gamma(2.0, 1.0, 4000), r.integers(0, 8, 4000)
    problem = Problem(weights, eta, group, Ball(1.0, norm=1))
    naive, whole = solve(problem, Naive())[0].lower, solve(problem, Envelope())[0].lower
    honest, calls = LinearModel.solve, [0]

    def tired(self):
        calls[0] += 1
        solution = honest(self)
        if calls[0] < 4:
            return solution
        return Solution(False, solution.columns * np.nan, solution.duals * 0)

    monkeypatch.setattr(LinearModel, "solve", tired)
    lower = solve(problem, Envelope(), verify=True)[0].lower
    assert calls[0] == 4
    assert naive + 5 < lower < whole


@pytest.mark.long
@pytest.mark.parametrize("bound", [LinearProgram(), Envelope(), Exact(time_limit=1.0)])
def test_ranges_over_which_the_simplex_method_goes_round_in_circles(bound):
    # A hundred orders of magnitude: without a limit on its iterations the solver never comes back.
    r = np.random.default_rng(76)
    groups, columns, outputs = int(r.integers(1, 5)), int(r.integers(1, 8)), 20
    weights = 10 ** r.uniform(-50, 50, (1, groups, columns)) * (r.random((groups, columns)) < 0.8)
    eta, budget = 10 ** r.uniform(-50, 50, (1, outputs)), 10 ** r.uniform(-50, 50)
    caps = 10 ** r.uniform(-50, 50, columns)
    rows = Rows(10 ** r.uniform(-50, 50, (2, columns)), 10 ** r.uniform(-50, 50, 2))
    threat = [Ball(budget, norm=1), Ball(budget, norm=1) & Caps(caps), rows][int(r.integers(3))]
    problem = Problem(weights, eta, r.integers(0, groups, outputs), threat)
    answer = solve(problem, bound, verify=True)[0]
    assert answer.certified <= answer.upper
