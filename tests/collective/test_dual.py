"""The certificate is what the dual numbers prove, whoever chose them."""

from __future__ import annotations

import importlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.collective import Ball, CertificateError, Envelope, Problem, solve, verify
from localsmooth.collective.kernel.dual import DualPoint, evaluate, evaluate_exactly
from localsmooth.collective.kernel.proof import Leaf
from localsmooth.collective.kernel.region import region_at
from localsmooth.collective.search.linear_program import LinearModel, Solution
from localsmooth.collective.search.setting import setting_at

from .oracle import brute_force
from .problems import CASES, build, random_problem, seeds, stored


def _point(answer) -> DualPoint:
    assert isinstance(answer.proof.root, Leaf)
    return answer.proof.root.points[0]


@given(seed=seeds, scale=st.sampled_from([1e-6, 1e-2, 1.0, 100.0]))
@settings(max_examples=60, deadline=None)
def test_sabotaged_duals_stay_a_bound(seed, scale):
    case = random_problem(seed, rows=1 + seed % 2)
    problem, optimum = build(case), brute_force(**case)
    setting = setting_at(problem, 0)
    point = _point(solve(problem)[0])
    r = np.random.default_rng(seed)
    for _ in range(5):
        bad = DualPoint(
            point.slopes * r.uniform(0, 2, len(point.slopes)) - scale * r.exponential(size=len(point.slopes)),
            point.shares,
            np.maximum(0.0, point.multipliers + scale * r.normal(size=len(point.multipliers))),
        )
        value = evaluate(setting.pieces, setting.region, setting.cell, bad)
        assert value <= optimum
        exact = evaluate_exactly(setting.pieces, setting.region, setting.cell, bad)
        if exact is None:
            assert value == -np.inf
        else:
            assert Fraction(value) <= exact
            assert value >= float(exact) - 1e-9 * (1 + abs(float(exact)) + scale * 100)


@pytest.mark.parametrize("case", CASES[::4], ids=lambda case: case["id"])
def test_a_lying_solver_weakens_the_answer_and_never_breaks_it(case, monkeypatch):
    honest, r = LinearModel.solve, np.random.default_rng(0)

    def lie(self):
        solution = honest(self)
        noise = r.normal(size=len(solution.duals))
        return Solution(True, np.nan_to_num(solution.columns) * r.uniform(0, 2), solution.duals * 3 * noise + noise)

    monkeypatch.setattr(LinearModel, "solve", lie)
    answer = solve(stored(case), Envelope(), verify=True)[0]
    assert answer.certified <= case["expected"]["exact"] <= answer.upper
    assert answer.lower >= case["expected"]["naive"] - 1e-9


def test_unusable_numbers_prove_nothing():
    setting = setting_at(build(random_problem(1)), 0)
    good = DualPoint.idle(setting.pieces, setting.region, setting.cell)
    nan = np.full_like(good.slopes, np.nan)
    for bad in (
        replace(good, slopes=nan),
        replace(good, multipliers=good.multipliers - 1.0),
        replace(good, shares=good.shares * 2),
        replace(good, shares=nan),
    ):
        assert evaluate(setting.pieces, setting.region, setting.cell, bad) == -np.inf
        assert evaluate_exactly(setting.pieces, setting.region, setting.cell, bad) is None


def test_shares_that_sum_to_more_than_one_prove_nothing_however_they_are_added():
    # In floating point ten tenths sum to a little less than one, in truth to a little more.
    shares = np.full(10, 0.1)
    assert np.bincount(np.zeros(10, dtype=int), shares)[0] < 1 < sum(map(Fraction, shares.tolist()))
    setting = setting_at(Problem(np.ones((10, 1, 1)), np.ones((10, 3)), [0, 0, 0], Ball(0.5)), 0)
    point = DualPoint(np.zeros(10), shares, np.zeros(1))
    assert evaluate(setting.pieces, setting.region, setting.cell, point) == -np.inf
    assert evaluate_exactly(setting.pieces, setting.region, setting.cell, point) is None


def test_exact_arithmetic_rejects_a_doctored_certificate(monkeypatch):
    case = next(case for case in CASES if case["expected"]["exact"] == 6 and case["expected"]["envelope"] > 5)
    problem = stored(case)
    answer = solve(problem)[0]
    assert verify(problem, answer).verified is not None
    point = _point(answer)
    doctored = [
        replace(answer, certified=answer.certified + 1),
        replace(answer, upper=answer.upper - 1),
        replace(answer, proof=replace(answer.proof, ceilings=answer.proof.ceilings * 0.5)),
        replace(answer, proof=replace(answer.proof, multipliers=answer.proof.multipliers - 1.0)),
        replace(answer, proof=replace(answer.proof, root=Leaf((replace(point, shares=point.shares * 1.5),)))),
        replace(answer, proof=replace(answer.proof, root=Leaf((replace(point, multipliers=-point.multipliers),)))),
        replace(answer, proof=replace(answer.proof, root=Leaf((replace(point, slopes=point.slopes * 0.5),)))),
        replace(answer, proof=replace(answer.proof, root=Leaf(()))),
    ]
    # The upper bounds on the spending are part of what has to hold.
    narrow = np.full(problem.columns, 1e-3)
    monkeypatch.setattr(
        importlib.import_module("localsmooth.collective.kernel.verify"),
        "region_at",
        lambda constraints, index, enough: replace(region_at(constraints, index, enough), upper=narrow),
    )
    with pytest.raises(CertificateError):
        verify(problem, answer)
    monkeypatch.undo()
    for forged in doctored:
        with pytest.raises(CertificateError):
            verify(problem, forged)
