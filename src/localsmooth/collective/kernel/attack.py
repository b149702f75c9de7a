"""Attacks: what a spending breaks, counted exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float

from localsmooth.collective.kernel.dual import Cell
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.kernel.region import TINY, UNIT

__all__ = ["allowed", "alone", "standing", "survivors"]


_LARGE = 1e300
"""Below it, no sum of a possible number of columns leaves the floating-point range."""


def allowed(problem: Problem, index: int, spending: Float[np.ndarray, "columns"]) -> bool:
    """Return whether a spending respects the threat at one of its budgets, in exact arithmetic."""
    constraints = problem.constraints
    if not bool(np.all((spending >= 0) & np.isfinite(spending) & (spending <= constraints.caps))):
        return False
    if bool(np.any(spending[constraints.integer] % 1 != 0)):
        return False
    for most, labels in constraints.limits:
        used = np.unique(labels[spending > 0])
        if np.count_nonzero(used >= 0) > most:
            return False
    for row, limit in zip(constraints.rows, constraints.budgets[index], strict=True):
        if np.isfinite(limit) and _exceeds(row, spending, float(limit)):
            return False
    return True


def standing(problem: Problem, spending: Float[np.ndarray, "columns"]) -> Bool[np.ndarray, "targets"]:
    """Return which targets survive a spending: Σ W b < η for one of their certificates, in exact arithmetic."""
    group = problem.group[problem.targets]
    left = np.zeros(len(group), dtype=np.bool_)
    slack = (problem.columns + 4) * UNIT
    for weights, eta in zip(problem.weights, problem.eta[:, problem.targets], strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            feed = weights @ spending
            lost = problem.columns * TINY
            low, high = (feed * (1 - slack) - lost)[group], (feed * (1 + slack) + lost)[group]
        holds = (low < eta) | np.isinf(eta)
        close = holds & (eta <= high) & (eta > 0) & np.isfinite(eta)
        for tied in np.unique(group[close]):
            exact = _exact_dot(weights[tied], spending)
            for value in np.unique(eta[close & (group == tied)]):
                if exact >= Fraction(float(value)):
                    holds &= ~((group == tied) & (eta == value))
        left |= holds & (eta > 0)
    return left


def survivors(problem: Problem, spending: Float[np.ndarray, "columns"]) -> int:
    """Return the units (`Worth`) of the targets that survive a spending, in exact arithmetic."""
    if len(problem.weights) > 1:
        left, parts = standing(problem, spending), problem.worth.parts
        return int(np.count_nonzero(left) if parts is None else parts[left].sum())
    # With one certificate a group's count follows from its steps, without a look at every output.
    slack = (problem.columns + 4) * UNIT
    total = 0.0
    for weights, steps in zip(problem.pieces.weights, problem.pieces.steps, strict=True):
        feed = float(weights @ spending)
        lost = problem.columns * TINY
        reached, highest = steps.reached(max(0.0, feed * (1 - slack) - lost)), steps.reached(feed * (1 + slack) + lost)
        if reached < highest:
            exact = _exact_dot(weights, spending)
            while reached < highest and Fraction(float(steps.thresholds[reached])) <= exact:
                reached += 1
        total += float(steps.counts[reached - 1])
    return int(total)


def alone(problem: Problem, index: int, cell: Cell) -> float | None:
    """Return the units of the targets that survive the only spending of a cell, in exact arithmetic.

    Infinity where the threat forbids that spending, so that the cell is empty; None where a cell may hold several.
    """
    spending = cell.lower[: problem.columns]
    if not bool(np.all(spending == cell.upper[: problem.columns])):
        return None
    return float(survivors(problem, spending)) if allowed(problem, index, spending) else math.inf


def _exceeds(row: Float[np.ndarray, "columns"], spending: Float[np.ndarray, "columns"], limit: float) -> bool:
    """Return whether row · spending > limit, in exact arithmetic."""
    used = (row != 0) & (spending != 0)
    factors, spent = row[used], spending[used]
    if bool(np.all(factors == 1.0)) and limit < _LARGE and bool(np.all(spent < _LARGE)):
        # A sum that is rounded once has the sign of the exact one.
        return math.fsum([*spent.tolist(), -limit]) > 0
    return _exact_dot(factors, spent) > Fraction(limit)


def _exact_dot(row: Float[np.ndarray, "columns"], spending: Float[np.ndarray, "columns"]) -> Fraction:
    used = (row != 0) & (spending != 0)
    return sum(
        (Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row[used], spending[used], strict=True)), Fraction(0)
    )
