"""The most that can be fed to one inequality where every input column has at most one budget: a closed form.

Budgets on disjoint columns (one for each kind of perturbation, say) with caps are fractional knapsacks: the columns
that feed most per unit of budget come first, each as far as its cap and the budget go. Where all columns that an
output sees weigh the same w and cost the same, that is w · min(budget, what the caps leave). No solver is needed, and
columns that an output does not see cost nothing.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from localsmooth.collective.kernel.arrays import TINY, UNIT

__all__ = ["knapsack_supports"]


def knapsack_supports(
    weights: Float[np.ndarray, "pieces columns"],
    rows: Float[np.ndarray, "rows columns"],
    limits: Float[np.ndarray, "rows"],
    upper: Float[np.ndarray, "columns"],
) -> tuple[Float[np.ndarray, "pieces"], Float[np.ndarray, "pieces rows"]] | None:
    """Bound W_p · b over rows · b ≤ limits, 0 ≤ b ≤ upper, in the form of `Supports`.

    Parameters
    ----------
    weights
        W ≥ 0, finite.
    rows, limits
        The threat's rows, finite.
    upper
        Largest spending per column, `inf` for none; no more than rows on that column alone allow.

    Returns
    -------
    tuple or None
        Values, rounded up, and the row multipliers that prove them; None where several budgets bind one
        column, or a row has negative coefficients.
    """
    live = np.flatnonzero(upper > 0)
    rate = _only_rate(rows, limits, upper, live)
    if rate is None:
        return None
    row, cost = rate
    piece, at = np.nonzero(weights[:, live])
    column = live[at]
    weight, own, room = weights[piece, column], row[column], upper[column]
    multipliers = _critical_prices(weight, cost[column], room, piece, own, limits, len(weights))
    # What is left of each weight once the budget is paid for: one product, one difference.
    price = np.where(own >= 0, multipliers[piece, own] if len(limits) else 0.0, 0.0)
    paid = price * cost[column]
    rest = np.where(paid > 0, np.maximum(0.0, weight - paid + 4 * UNIT * (weight + paid) + 2 * TINY), weight)
    with np.errstate(over="ignore", invalid="ignore"):
        spent = np.where(rest > 0, rest * room, 0.0)
        total = np.bincount(piece, spent, len(weights)) + np.where(limits > 0, multipliers * limits, 0.0).sum(axis=1)
        terms = weights.shape[1] + len(limits) + 8
        raised = np.nextafter(total * (1 + 2 * terms * UNIT) + terms * TINY, np.inf)
    fed = np.bincount(piece, minlength=len(weights)) > 0
    return np.where(fed, np.where(np.isnan(raised), np.inf, raised), 0.0), multipliers


def _only_rate(
    rows: Float[np.ndarray, "rows columns"],
    limits: Float[np.ndarray, "rows"],
    upper: Float[np.ndarray, "columns"],
    live: Int[np.ndarray, "live"],
) -> tuple[Int[np.ndarray, "columns"], Float[np.ndarray, "columns"]] | None:
    """Return the row that binds each column (-1 for none) and its coefficient; None where several differ.

    Rows that cannot bind are left out, which only makes a bound looser: those on one column, which its upper bound
    respects, and those that allow everything that the upper bounds allow.
    """
    rows = rows[:, live]
    if not bool(np.all(rows >= 0)):
        return None
    kept = np.flatnonzero(np.count_nonzero(rows, axis=1) > 1)
    with np.errstate(over="ignore"):
        most = np.array([upper[live][rows[row] > 0] @ rows[row][rows[row] > 0] for row in kept], dtype=np.float64)
    kept = kept[~(most <= limits[kept])]
    if bool(np.any(np.count_nonzero(rows[kept], axis=0) > 1)):
        # Of rows that say the same, only the tightest binds.
        kept = kept[np.argsort(limits[kept], kind="stable")]
        kept = kept[np.unique(rows[kept], axis=0, return_index=True)[1]]
        if bool(np.any(np.count_nonzero(rows[kept], axis=0) > 1)):
            return None
    row = np.full(len(upper), -1)
    cost = np.zeros(len(upper))
    which, column = np.nonzero(rows[kept])
    row[live[column]], cost[live[column]] = kept[which], rows[kept[which], column]
    return row, cost


def _critical_prices(
    weight: Float[np.ndarray, "entries"],
    cost: Float[np.ndarray, "entries"],
    room: Float[np.ndarray, "entries"],
    piece: Int[np.ndarray, "entries"],
    own: Int[np.ndarray, "entries"],
    limits: Float[np.ndarray, "rows"],
    pieces: int,
) -> Float[np.ndarray, "pieces rows"]:
    """Return what the last column that the budget reaches feeds per unit of it; 0 where the budget outlasts all."""
    multipliers = np.zeros((pieces, len(limits)))
    bound = np.flatnonzero(own >= 0)
    if bound.size == 0:
        return multipliers
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        price = weight[bound] / cost[bound]
        # As a share of the budget, so that budgets of different sizes can be summed up side by side.
        share = np.fmin(1.0, room[bound] * cost[bound] / limits[own[bound]])
    knapsack = piece[bound] * len(limits) + own[bound]
    order = np.lexsort((-price, knapsack))
    knapsack, price = knapsack[order], price[order]
    filled = np.cumsum(share[order])
    first = np.searchsorted(knapsack, knapsack)
    filled -= np.where(first > 0, filled[first - 1], 0.0)
    full = np.flatnonzero(filled >= 1.0)
    reached, start = np.unique(knapsack[full], return_index=True)
    critical = price[full[start]]
    usable = np.isfinite(critical)
    multipliers.ravel()[reached[usable]] = critical[usable]
    return multipliers
