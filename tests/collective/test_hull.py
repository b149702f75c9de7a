"""Hulls of ranges from prepared blocks: no vertex is ever lost, and few other points are kept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from localsmooth.collective import Ball, Envelope, LinearProgram, Problem, solve
from localsmooth.collective.kernel.hull import Hull, _above
from localsmooth.collective.kernel.steps import Steps, step_functions

from .problems import all_steps


def lower_hull(x, y):
    """Return the vertices of the lower hull in exact arithmetic (Andrew's chain)."""
    x, y = [Fraction(float(v)) for v in x], [Fraction(float(v)) for v in y]
    chain: list[int] = []
    for i in range(len(x)):
        while len(chain) > 1:
            a, b = chain[-2:]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            chain.pop()
        chain.append(i)
    return chain


def nearly_a_line(falls):
    left = np.cumsum(falls[::-1])[::-1].astype(float)
    return Steps((left[0] - left) / 7.1, left)


CURVES = {
    "normal": lambda r, n: all_steps(np.abs(r.normal(3, 1.5, n))),
    "heavy": lambda r, n: all_steps(r.pareto(0.7, n)),
    "wide": lambda r, n: all_steps(10 ** r.uniform(-150, 150, n)),
    "huge": lambda r, n: all_steps(10 ** r.uniform(290, 308, n)),
    "tiny": lambda r, n: all_steps(10 ** r.uniform(-320, -300, n)),
    "ties": lambda r, n: all_steps(np.round(r.gamma(2.0, 1.0, n), 2)),
    # A steep drop behind a convex curve: its points fall one after the other.
    "atom": lambda r, n: all_steps(np.concatenate([r.exponential(1.0, n // 2), np.full(n // 2, 20.0)])),
    "line": lambda r, n: Steps(np.arange(n) * 1.0, np.arange(n)[::-1] * 3.0),
    # All points lie within a rounding error of a line.
    "nearly a line": lambda r, n: nearly_a_line(r.integers(1, 10**6, n)),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("number", [3, 64, 700, 3000])
def test_no_vertex_is_lost(name, number):
    r = np.random.default_rng(number)
    steps = CURVES[name](r, number)
    hull = Hull(steps.thresholds, steps.counts)
    for _ in range(8):
        start, stop = np.sort(r.choice(len(steps) + 1, 2, replace=False))
        kept = hull.vertices(int(start), int(stop))
        assert np.all(np.diff(kept) > 0)
        assert {start, stop - 1} <= set(kept.tolist()) <= set(range(start, stop))
        exact = lower_hull(steps.thresholds[start:stop], steps.counts[start:stop])
        assert {start + vertex for vertex in exact} <= set(kept.tolist())
        if name in ("normal", "heavy", "atom"):
            assert len(kept) <= len(exact) + 2


@pytest.mark.parametrize("number", [6_000, 60_000])
def test_steps_with_hulls_answer_like_steps_without(number):
    r = np.random.default_rng(number)
    eta, group = np.round(r.gamma(2.0, 1.0, number), 5), r.integers(0, 2, number)
    for place, steps in enumerate(step_functions(eta, group, 2, hulls=number > 10_000)):
        plain = all_steps(eta[group == place])
        assert np.array_equal(plain.thresholds, steps.thresholds)
        assert np.array_equal(plain.counts, steps.counts)
        assert (steps.hull is not None) == (number > 10_000)
        for _ in range(20):
            start, stop = (int(end) for end in np.sort(r.choice(len(plain), 2, replace=False)))
            slope = -float(10 ** r.uniform(-2, 6))
            index, value = steps.lowest(start, stop, slope, 0.7)
            least = plain.lowest(start, stop, slope, 0.7)[1]
            assert value == pytest.approx(least, rel=1e-14)
            assert start <= index < stop
            feed = float(r.uniform(plain.thresholds[start], plain.thresholds[stop - 1] * 1.1))
            ends = [np.interp(feed, plain.thresholds[[*edge]], plain.counts[[*edge]]) for edge in (
                steps.edge(start, stop, feed), plain.edge(start, stop, feed)
            )]  # fmt: skip
            assert ends[0] == pytest.approx(ends[1], rel=1e-9, abs=1e-6)


def test_a_curve_with_hulls_equals_single_budgets():
    r = np.random.default_rng(0)
    weights, eta, group = r.uniform(0.2, 3, (2, 3)), r.gamma(2.0, 1.0, 20_000), r.integers(0, 2, 20_000)
    budgets = np.linspace(0.2, 1.0, 6)
    for bound in (LinearProgram(), Envelope()):
        curve = solve(Problem(weights, eta, group, Ball(budgets)), bound, verify=True)
        assert curve[0].problem.pieces.steps[0].hull is not None
        for budget, answer in zip(budgets, curve, strict=True):
            alone = solve(Problem(weights, eta, group, Ball(budget)), bound)[0]
            assert alone.problem.pieces.steps[0].hull is None
            assert answer.lower == pytest.approx(alone.lower, abs=1e-6)


def test_what_a_budget_looks_at_does_not_grow_with_the_outputs():
    r = np.random.default_rng(0)
    for number in (20_000, 200_000):
        steps = step_functions(np.abs(r.normal(3, 1.5, number)), np.zeros(number, dtype=np.int64), 1, hulls=True)[0]
        assert steps.hull is not None
        points = steps.hull.covering(17, len(steps) - 5)
        assert len(points) < 1500
        assert len(steps.hull.vertices(17, len(steps) - 5)) < 150


def test_above_means_above_whatever_was_rounded():
    r = np.random.default_rng(0)
    number = 3000
    left, width = r.uniform(0, 1, number), r.uniform(0.5, 2, (2, number))
    low, falls = r.integers(0, 10**6, number).astype(float), r.integers(1, 10**6, (2, number)).astype(float)
    middle, high = low + falls[0], low + falls[0] + falls[1]
    right = left + width[0]
    x = right - width[0] * falls[0] / (falls[0] + falls[1])  # on the chord, up to a rounding error or two
    claimed = _above(left, x, right, high, middle, low)
    wrong = 0
    for a, b, c, u, v, w, claim in zip(left, x, right, high, middle, low, claimed, strict=True):
        run = (Fraction(v) - Fraction(u)) * (Fraction(c) - Fraction(a))
        rise = (Fraction(w) - Fraction(u)) * (Fraction(b) - Fraction(a))
        wrong += bool(claim) and not run > rise
    assert wrong == 0
    assert np.count_nonzero(_above(left, x, right, high, middle + 1, low)) == number
