"""How close each prediction is to falling."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.search.setting import Setting, setting_at

__all__ = ["smallest_budget_index", "smallest_budgets"]


def smallest_budget_index(problem: Problem) -> Int[np.ndarray, "targets"]:
    """Return, for each target, the first of the problem's budgets at which it can fall on its own.

    The index counts into the budgets in the order given; where budgets are not sorted, "first" means the smallest
    index. The number of budgets stands for never, and abstentions fall at the first.
    """
    budgets = len(problem.constraints.budgets)
    first = np.full(len(problem.targets), budgets, dtype=np.int64)
    for index in reversed(range(budgets)):
        first[_reached(problem, setting_at(problem, index))] = index
    return first


def smallest_budgets(problem: Problem) -> Float[np.ndarray, "targets"]:
    """Return, for each target, the smallest Σ b (the p-th power of the budget) at which it can fall on its own.

    One budget row over all columns is assumed: each target then falls cheapest through its group's most sensitive
    column, at η / max_l W (rounded down). Caps and further rows only make that harder, so the value stays a bound
    within which the target is robust on its own.
    """
    group, eta = problem.group[problem.targets], problem.eta[:, problem.targets]
    worst = problem.weights.max(axis=2, initial=0.0)[:, group]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(eta == 0, 0.0, np.where(worst > 0, eta / worst, math.inf))
    return np.maximum(0.0, np.nextafter(ratio, -math.inf, where=np.isfinite(ratio), out=ratio.copy())).max(axis=0)


def _reached(problem: Problem, setting: Setting) -> np.ndarray:
    """Return which targets' inequalities can all be fed up to their thresholds."""
    group, eta = problem.group[problem.targets], problem.eta[:, problem.targets]
    pieces = setting.pieces
    most = np.zeros((len(problem.weights), problem.weights.shape[1]))
    labels = problem.group_labels
    for piece, owner in enumerate(pieces.owner):
        most[piece // pieces.groups, labels[owner]] = setting.supports.values[piece]
    return np.all(eta <= most[:, group], axis=0)
