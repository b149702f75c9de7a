"""How close each prediction is to falling."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.problem import Problem

__all__ = ["smallest_budgets"]


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
