"""Attacks: what a spending breaks, counted exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float

from localsmooth.collective.dual import Cell
from localsmooth.collective.problem import Problem
from localsmooth.collective.region import TINY, UNIT
from localsmooth.collective.setting import Setting

__all__ = ["allowed", "alone", "estimates", "fit", "simple_attacks", "standing", "survivors"]


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


def estimates(setting: Setting, spendings: Float[np.ndarray, "attacks columns"]) -> Float[np.ndarray, "attacks"]:
    """Count what each of many spendings leaves, to floating-point accuracy and without looking at single outputs.

    With several certificates per output the count is a lower estimate: a group leaves at least what each of its
    certificates leaves on its own.
    """
    pieces = setting.pieces
    # Many simple attacks spend in one column each.
    sparse = spendings.size > 1 << 16 and np.count_nonzero(spendings) * 8 < spendings.size
    feeds = (sp.csr_array(spendings) if sparse else spendings) @ pieces.weights.T
    groups = np.zeros((len(spendings), pieces.groups))
    for piece, owner in enumerate(pieces.owner):
        groups[:, owner] = np.maximum(groups[:, owner], pieces.steps[piece].at(feeds[:, piece]))
    return groups.sum(axis=1)


def survivors(problem: Problem, spending: Float[np.ndarray, "columns"]) -> int:
    """Return the number of targets that survive a spending, in exact arithmetic."""
    if len(problem.weights) > 1:
        return int(np.count_nonzero(standing(problem, spending)))
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
    """Return the number of targets that survive the only spending of a cell, in exact arithmetic.

    Infinity where the threat forbids that spending, so that the cell is empty; None where a cell may hold several.
    """
    spending = cell.lower[: problem.columns]
    if not bool(np.all(spending == cell.upper[: problem.columns])):
        return None
    return float(survivors(problem, spending)) if allowed(problem, index, spending) else math.inf


def simple_attacks(setting: Setting) -> list[Float[np.ndarray, "columns"]]:
    """Return attacks that come without a search: all on one column, and as much as possible on all.

    They ignore the rows that bind several columns: `fit` shrinks them until the threat allows them.
    """
    problem, region = setting.problem, setting.region
    real = region.real
    upper = np.where(np.isfinite(region.upper[:real]), region.upper[:real], problem.enough)
    attacks: list[Float[np.ndarray, "columns"]] = []
    for column in np.flatnonzero(upper > 0):
        single = np.zeros(real)
        single[column] = upper[column]
        attacks.append(single)
    attacks.append(upper)
    return attacks


def fit(setting: Setting, spending: Float[np.ndarray, "columns"]) -> Float[np.ndarray, "columns"] | None:
    """Shrink a spending until the threat allows it; None where shrinking does not help."""
    constraints, index = setting.problem.constraints, setting.index
    fitted = np.minimum(np.maximum(spending, 0.0), constraints.caps)
    fitted = np.where(constraints.integer, np.floor(fitted + 1e-9), fitted)
    for most, labels in constraints.limits:
        names = np.unique(labels[labels >= 0])
        spent = np.array([fitted[labels == name].sum() for name in names])
        for name in names[np.argsort(-spent, kind="stable")[most:]]:
            fitted[labels == name] = 0.0
    for shrink in (1.0, 1 - 4 * UNIT, 1 - 1e-14, 1 - 1e-9):
        limits = constraints.budgets[index]
        used = constraints.rows @ fitted
        over = np.isfinite(limits) & (used > limits)
        factor = shrink * min(1.0, float(np.min(limits[over] / used[over], initial=1.0)))
        trial = fitted * factor if factor < 1 else fitted
        trial = np.where(constraints.integer, np.floor(trial + 1e-9), trial)
        if allowed(setting.problem, index, trial):
            return trial
    return None


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
