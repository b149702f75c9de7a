"""Spendings worth counting exactly: cheap attacks, estimates of what they leave, and how to fit them to the threat."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float

from localsmooth.collective.kernel.arrays import UNIT
from localsmooth.collective.kernel.attack import allowed
from localsmooth.collective.search.setting import Setting

__all__ = ["estimates", "fit", "simple_attacks"]


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
