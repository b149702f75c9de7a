"""How close each prediction is to falling."""

from __future__ import annotations

import numpy as np

from localsmooth.collective import Ball, Problem, Rows, smallest_budgets, solve


def test_smallest_budgets_bracket_where_an_output_falls_alone():
    r = np.random.default_rng(0)
    weights, eta, group = r.uniform(0, 3, (3, 4)), r.gamma(2.0, 1.0, 20), r.integers(0, 3, 20)
    eta[0] = 0.0
    smallest = smallest_budgets(Problem(weights, eta, group, Ball(1.0)))
    assert smallest[0] == 0.0
    for output in range(1, 20):
        below, above = smallest[output] * (1 - 1e-9), smallest[output] * (1 + 1e-9)
        for budget, left in ((below, 1), (above, 0)):
            problem = Problem(weights, eta, group, Rows(np.ones((1, 4)), [budget]), targets=[output])
            assert solve(problem)[0].certified == left


def test_several_certificates_must_all_fall():
    weights = [[[1.0]], [[2.0]]]
    problem = Problem(weights, [[1.0, 3.0], [4.0, 0.0]], [0, 0], Ball([0.5, 1.0, 1.5, 2.0], norm=1))
    assert smallest_budgets(problem).round(9).tolist() == [2.0, 3.0]
