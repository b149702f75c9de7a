"""All bounds on random problems over wide ranges, in order and below the optimum found by enumeration.

The optimum is found on numbers of ordinary size; then columns, groups and rows are rescaled by powers of two, which
changes no bit of the answer. So the oracle need not be exact over many orders of magnitude, and the bounds must be.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from localsmooth.collective import (
    Caps,
    Envelope,
    Exact,
    Integer,
    LinearProgram,
    Milp,
    Naive,
    Problem,
    Rows,
    Status,
    solve,
)

from .oracle import brute_force
from .problems import random_problem


def ordinary(seed):
    """Return a small problem with ties, zero weights, empty groups, and budgets of 0 and ∞ among its rows."""
    r = np.random.default_rng(seed)
    integer, certificates = seed % 4 == 1, 2 if seed % 4 == 3 else 1
    outputs = int(r.integers(0, 6)) if certificates > 1 else None
    groups = 2 if certificates > 1 else None
    case = random_problem(
        seed, integer=integer, certificates=certificates, outputs=outputs, rows=1 + seed % 3, groups=groups
    )
    if r.random() < 0.1:
        case["weights"][:, int(r.integers(case["weights"].shape[1]))] = 0.0
    if r.random() < 0.15:
        case["c"][int(r.integers(len(case["c"])))] = r.choice([0.0, np.inf])
    if r.random() < 0.3 and case["eta"].shape[1]:
        # A target falls exactly where all of the budget goes into one column.
        most = np.min([np.inf if cap is None else cap for cap in case["caps"]])
        most = min(most, *(c / row.max() for c, row in zip(case["c"], case["A"], strict=True) if row.max() > 0))
        if np.isfinite(most):
            case["eta"][0, 0] = case["weights"][0, case["group"][0]].max() * most
    if r.random() < 0.1 and case["eta"].shape[1]:
        case["eta"][:, int(r.integers(case["eta"].shape[1]))] = np.inf
    if len(case["targets"]) > 1 and r.random() < 0.3:
        case["targets"] = np.sort(r.permutation(case["targets"])[: int(r.integers(1, len(case["targets"])))])
    return case


def stretched(case, seed, powers):
    """Return the same problem in other units: columns, groups and rows times powers of two."""
    r = np.random.default_rng([seed, 1])
    weights, eta, A, c = (np.array(case[name], dtype=float) for name in ("weights", "eta", "A", "c"))
    if not case["integer"]:
        unit = 2.0 ** r.integers(-powers, powers + 1, weights.shape[2])
        weights, A = weights / unit, A / unit
        caps = [None if cap is None else cap * float(u) for cap, u in zip(case["caps"], unit, strict=True)]
    else:
        caps = case["caps"]
    size = 2.0 ** r.integers(-powers, powers + 1, weights.shape[:2])
    weights = weights * size[:, :, None]
    eta = eta * size[:, case["group"]]
    row = 2.0 ** r.integers(-powers, powers + 1, len(A))
    threat = Rows(A * row[:, None], c * row) & Caps(caps)
    return Problem(weights, eta, case["group"], threat & Integer() if case["integer"] else threat, case["targets"])


def check(seed, powers):
    """Compare all bounds with each other and with the optimum."""
    case = ordinary(seed)
    optimum = brute_force(**case) if case["eta"].shape[1] else 0
    if case["eta"].shape[1] == 0:
        case["targets"] = None
    problem = stretched(case, seed, powers)
    bounds = (Naive(), LinearProgram(), Envelope(), Exact(time_limit=20), Milp(time_limit=5))
    answers = [solve(problem, bound, verify=True)[0] for bound in bounds]
    for weaker, stronger in itertools.pairwise(answers[:4]):
        assert weaker.lower <= stronger.lower + 1e-6
    for answer in answers:
        assert answer.certified <= optimum <= answer.upper
    exact = answers[3]
    assert exact.status in (Status.EXACT, Status.TIED)
    # Only spendings that are not whole numbers leave room between what is fed and what is proven to be fed.
    assert exact.certified == optimum or (exact.status is Status.TIED and not case["integer"])


@pytest.mark.parametrize("seed", range(32))
def test_bounds_over_twelve_and_more_orders_of_magnitude(seed):
    check(seed, powers=(20, 30, 40)[seed % 3])


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_bounds_on_a_thousand_problems_over_wide_ranges(first):
    for seed in range(first, first + 50):
        check(seed, powers=(20, 30, 40)[seed % 3])
