"""Whole spendings: `Exact` reaches the optimum that exact enumeration finds, ties one unit in the last place included.

Thresholds sit on what a whole spending feeds, or one floating-point number above or below it, so that dual numbers with
their rounding control cannot tell who falls. The oracle enumerates every spending in rational arithmetic.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from localsmooth.collective import AtMostGroups, Caps, Exact, Integer, Problem, Rows, Status, solve, verify
from localsmooth.collective.kernel.attack import alone
from localsmooth.collective.kernel.ceiling import lowered
from localsmooth.collective.kernel.dual import root_cell
from localsmooth.collective.kernel.proof import Leaf, SplitSpending, Tighten, children
from localsmooth.collective.kernel.region import region_at
from localsmooth.collective.kernel.verify import CertificateError


def tied(seed):
    """Return weights, eta, group, A, c, caps (None for no bound at all) and a limit on attacked labels, or None."""
    r = np.random.default_rng(seed)
    kinds, cells, groups = (int(r.integers(1, high)) for high in (3, 4, 4))
    columns, outputs, certificates = kinds * cells, int(r.integers(1, 12)), 1 + int(r.random() < 0.3)
    size = (certificates, groups, columns)
    weights = (
        r.choice([0.0, 0.1, 0.2, 0.3, 0.7, 1.1], size=size),
        r.uniform(0.1, 2, size),
        np.repeat(r.uniform(0.1, 2, kinds), cells) * r.choice([0.0, 1.0, 1.0, 0.5], size=size),
        np.log(r.uniform(1.1, 9, (certificates, groups, 1))) * np.ones(columns),
    )[int(r.integers(0, 4))]
    caps, group = r.integers(0, 4, columns), r.integers(0, groups, outputs)
    eta = np.empty((certificates, outputs))
    for k, n in itertools.product(range(certificates), range(outputs)):
        feed = float(weights[k, group[n]] @ r.integers(0, caps + 1).astype(float))
        beside = float(np.nextafter(feed, r.choice([0.0, np.inf]))) if feed > 0 else feed
        eta[k, n] = r.choice([feed, beside, 0.0, np.inf, r.gamma(1.5, 1)], p=[0.3, 0.3, 0.1, 0.05, 0.25])
    A = np.ones((1, columns))
    if kinds == 2 and r.random() < 0.7:  # a budget for either kind of flip
        A = np.repeat(np.eye(2), cells, axis=1)
    c, most, extra = r.integers(0, 6, len(A)).astype(float), None, r.random()
    bounds = [int(cap) for cap in caps]
    if extra < 0.25:
        most = int(r.integers(1, columns + 1)), r.integers(0, max(1, columns // 2 + 1), columns)
    elif extra < 0.45:  # budgets that a whole spending uses up, to the last bit or not quite
        A = A * r.choice([0.1, 0.3, 1.7], size=(1, columns))
        c = A @ np.minimum(caps, r.integers(0, 4, columns))
    elif extra < 0.6:
        free = int(r.integers(columns))
        A[:, free], bounds[free] = 0.0, None
    elif extra < 0.7:  # spending here allows more there
        A = np.concatenate([A, (r.random(columns) < 0.5) - 1.0 * (r.random(columns) < 0.3)[None]])
        c = np.append(c, 0.0)
    return weights, eta, group, A, c, bounds, most


def enumerated(weights, eta, group, A, c, caps, most):
    """Return the least number of targets left, in rational arithmetic."""

    def exactly(array):
        return [exactly(row) for row in array] if np.ndim(array) else Fraction(float(array))

    W, rows, limits, best = exactly(weights), exactly(A), exactly(c), len(group)
    falls = [[Fraction(float(e)) if np.isfinite(e) else None for e in row] for row in eta]
    # Without a bound, a thousand flips break all that a column can break here.
    for b in itertools.product(*([0, 1, 2, 3, 1000] if cap is None else range(cap + 1) for cap in caps)):
        if any(
            sum(x * y for x, y in zip(row, b, strict=True)) > most_ for row, most_ in zip(rows, limits, strict=True)
        ):
            continue
        if most is not None and len({int(label) for label, spent in zip(most[1], b, strict=True) if spent}) > most[0]:
            continue
        feeds = [[sum(x * y for x, y in zip(row, b, strict=True)) for row in part] for part in W]
        lost = [
            all(e[n] is not None and feed[i] >= e[n] for feed, e in zip(feeds, falls, strict=True))
            for n, i in enumerate(group)
        ]
        best = min(best, lost.count(False))
    return best


def built(weights, eta, group, A, c, caps, most):
    threat = Rows(A, c) & Caps(caps) & Integer()
    return Problem(weights, eta, group, threat if most is None else threat & AtMostGroups(*most))


def check(seed):
    case = tied(seed)
    answer = solve(built(*case), Exact(time_limit=60), verify=True)[0]
    assert answer.certified == answer.upper == enumerated(*case), seed
    assert answer.status is Status.EXACT


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_exact_reaches_the_enumerated_optimum(first):
    for seed in range(first, first + 40):
        check(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 11000, 500))
def test_exact_reaches_the_enumerated_optimum_of_ten_thousand_problems(first):
    for seed in range(first, first + 500):
        check(seed)


def test_a_threshold_one_unit_in_the_last_place_above_every_feed_stands():
    eta = [np.nextafter(0.1 * 3, 1), 0.1 * 3, 0.05]
    answer = solve(Problem([[0.1, 0.1]], eta, [0, 0, 0], Rows([[1, 1]], [3]) & Integer()), Exact(), verify=True)[0]
    assert answer.status is Status.EXACT
    assert answer.certified == answer.upper == sum(3 * Fraction(0.1) < Fraction(float(e)) for e in eta)


def test_a_leaf_is_counted_only_where_it_holds_one_spending():
    """A leaf without dual numbers proves something in a cell of one spending, and nothing above it."""
    bare, rejected = 0, 0
    for seed in range(240):
        problem = built(*tied(seed))
        answer = solve(problem, Exact())[0]
        root = answer.proof.root
        if not isinstance(root, SplitSpending) or answer.certified == 0:
            continue
        for forged, holds in ((_without_numbers(problem, answer.proof, root), True), (Leaf(()), False)):
            claimed = replace(answer, proof=replace(answer.proof, root=forged))
            if holds:
                verify(problem, claimed)
                bare += 1
            else:
                with pytest.raises(CertificateError):
                    verify(problem, claimed)
                rejected += 1
    assert bare > 3
    assert rejected > 3


def _without_numbers(problem, proof, root):
    """Return a tree without dual numbers in the leaves that hold one spending."""
    region = region_at(problem.constraints, 0, problem.column_enough)
    pieces = problem.pieces_under(proof.ceilings)

    def stripped(node, cell):
        if isinstance(node, Leaf):
            return Leaf(()) if alone(problem, 0, cell) is not None else node
        if isinstance(node, Tighten):
            return replace(node, child=stripped(node.child, lowered(pieces, cell, node.ceilings)))
        below, above = children(cell, node)
        return replace(node, below=stripped(node.below, below), above=stripped(node.above, above))

    return stripped(root, root_cell(pieces, region, proof.ceilings))
