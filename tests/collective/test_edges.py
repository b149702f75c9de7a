"""Corners of the input: extreme budgets, magnitudes, ties, and nothing at all; and input that must be refused."""

from __future__ import annotations

import numpy as np
import pytest

from localsmooth.collective import Ball, Caps, Envelope, LinearProgram, Naive, Problem, Rows, solve
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
