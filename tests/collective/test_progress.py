"""What a solver tells while it works, and the names by which bounds are asked for."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import time
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from localsmooth.collective import Ball, Envelope, Exact, Problem, Progress, as_bound, as_bounds, solve
from localsmooth.collective.kernel.worth import Worth
from localsmooth.collective.search.progress import Reporter
from localsmooth.errors import InvalidInputError

solve_module = importlib.import_module("localsmooth.collective.solving")
ROOT = Path(__file__).parents[2]


def _problem():
    r = np.random.default_rng(0)
    distance = np.abs(np.arange(6)[:, None] - np.arange(6))
    eta = np.clip(r.normal(3.0, 1.2, 3000), 0, 8)
    return Problem(1 / (0.15 + 0.17 * distance) ** 2, eta, r.integers(0, 6, 3000), Ball([0.4, 0.5]))


def test_a_search_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(solve_module, "Reporter", partial(Reporter, every=0.0))
    told: list[Progress] = []
    curve = solve(_problem(), Exact(time_limit=2.0), progress=told.append)
    assert {step.budget for step in told} == {1, 2}
    assert {step.budgets for step in told} == {2}
    for number, answer in ((1, curve[1]), (2, curve[0])):  # the largest budget first
        steps = [step for step in told if step.budget == number]
        assert np.all(np.diff([step.lower for step in steps]) >= 0)
        assert all(step.lower <= answer.certified <= answer.upper <= step.upper for step in steps)
    assert f"budget 1 of 2: {told[0].lower} of 3000 certified so far" in str(told[0])
    assert f"(gap {told[0].upper - told[0].lower})" in str(told[0])


def test_what_is_over_soon_says_nothing(monkeypatch):
    told: list[Progress] = []
    clock = iter([0.0, 1.9, 2.1, 3.9, 4.3])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    reporter = Reporter(told.append, 1, Worth(Fraction(1), None, 9))
    for _ in range(4):
        reporter.report(1, -3.5, 7)
    assert [(step.lower, step.seconds) for step in told] == [(0, 2.1), (0, 4.3)]


def test_bounds_are_known_by_name_class_and_instance():
    quick = Exact(gap=3)
    assert as_bound("exact") == as_bound(Exact) == as_bound(Exact()) == Exact()
    assert as_bounds(["lp", quick]) == {"lp": as_bound("lp"), "exact": quick}
    assert as_bounds("envelope") == as_bounds(Envelope) == as_bounds((Envelope(),)) == {"envelope": Envelope()}
    assert as_bounds({"mine": "lp", "quick": quick}) == {"mine": as_bound("lp"), "quick": quick}
    assert as_bounds([]) == {}
    problem = _problem()
    assert solve(problem, "naive").certified.tolist() == solve(problem, as_bound("naive")).certified.tolist()


@pytest.mark.parametrize(
    "wrong", [["best"], "best", 3, [3], [dict], {"lp": None}, ["lp", "lp"], [Exact(), Exact(gap=2)]]
)
def test_what_is_no_bound_is_refused_by_name(wrong):
    with pytest.raises(InvalidInputError) as caught:
        as_bounds(wrong)
    assert caught.value.field == "bounds"


def test_a_name_that_is_not_known_is_refused_beside_those_that_are():
    with pytest.raises(InvalidInputError, match="'naive', 'lp', 'envelope', 'exact', 'milp'"):
        solve(_problem(), "best")


def test_the_benchmark_names_the_extra_that_it_needs():
    if importlib.util.find_spec("cvxpy") is not None and importlib.util.find_spec("clarabel") is not None:
        pytest.skip("cvxpy is installed")
    ran = subprocess.run(
        [sys.executable, "benchmarks/collective.py", "--parts", "paper"], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert "pip install -e '.[compare]'" in ran.stderr
    assert "Traceback" not in ran.stderr
