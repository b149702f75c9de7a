"""The adversary's set at one budget, and how much it can feed each inequality."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.collective.kernel.arrays import TINY, UNIT
from localsmooth.collective.kernel.threat import Constraints

__all__ = ["LARGEST_SPLIT", "Region", "Supports", "implied_uppers", "region_at", "support_value", "underflows"]

LARGEST_SPLIT = 2**53 - 1
"""Below it, a whole number and its successor both are floating-point numbers."""


@dataclass(frozen=True, eq=False)
class Region:
    """All spendings the threat allows at one budget: rows · b ≤ limits, 0 ≤ b ≤ upper, b whole where ``integer``.

    Columns beyond the first ``real`` ones are switches (0 or 1) that count attacked groups and feed nothing.

    Parameters
    ----------
    rows
        A, coefficients: the threat's own rows first, without those that an infinite budget drops, then those that tie
        columns to switches and count these.
    limits
        c, the right-hand sides, in the unit of the budgets (Σ|δ|^p, or flips) for the threat's own rows.
    upper
        Bounds on b in each column, in the same unit, rounded up; +∞ where nothing bounds it.
    integer
        Whether b is a whole number in each column.
    real
        Number of columns that are no switches.
    kept
        Positions in the threat of its rows that are left.
    """

    rows: Float[np.ndarray, "rows columns"]
    limits: Float[np.ndarray, "rows"]
    upper: Float[np.ndarray, "columns"]
    integer: Bool[np.ndarray, "columns"]
    real: int
    kept: Int[np.ndarray, "kept"]


def implied_uppers(
    rows: Float[np.ndarray, "rows columns"],
    limits: Float[np.ndarray, "rows"],
    caps: Float[np.ndarray, "columns"],
    integer: Bool[np.ndarray, "columns"],
) -> Iterator[Float[np.ndarray, "columns"]]:
    """Bound each column by every row alone, rounded up, again and again while that bounds further columns.

    In a row, what negative coefficients give back is at most what the bounds before allow, so that each round follows
    from the one before it.

    Parameters
    ----------
    rows, limits
        A and c of the threat at one budget, finite; see `Region`.
    caps
        What the threat itself allows in each column, +∞ for anything.
    integer
        Columns in which spendings are whole, and bounds rounded down to whole numbers.

    Yields
    ------
    Float[np.ndarray, "columns"]
        Upper bounds on b after each round.
    """
    upper = caps
    while True:
        before, upper = upper, upper.copy()
        for row, limit in zip(rows, limits, strict=True):
            room = _room(row, float(limit), before)
            if np.isfinite(room):
                used = row > 0
                with np.errstate(over="ignore"):
                    share = np.nextafter(room / row[used], np.inf) if room > 0 else np.zeros(int(used.sum()))
                upper[used] = np.minimum(upper[used], share)
        upper = np.where(integer & np.isfinite(upper), np.floor(upper), upper)
        yield upper
        if not bool(np.any(np.isfinite(upper) & np.isinf(before))) or bool(np.all(rows >= 0)):
            return


def _room(row: Float[np.ndarray, "columns"], limit: float, upper: Float[np.ndarray, "columns"]) -> float:
    """Return how much a row leaves to its positive coefficients, rounded up: its limit, and what negative ones give."""
    back = (row < 0) & (upper > 0)
    if not back.any():
        return limit
    with np.errstate(over="ignore"):
        total = limit + float((-row[back] * upper[back]).sum())
    terms = int(back.sum()) + 4
    return math.nextafter(total * (1 + 2 * terms * UNIT) + terms * TINY, math.inf)


def region_at(constraints: Constraints, index: int, enough: Float[np.ndarray, "columns"] | None = None) -> Region:
    """Return the adversary's set at one of the curve's budgets.

    Parameters
    ----------
    constraints
        The threat, at all budgets.
    index
        Which budget, from 0.
    enough
        What breaks all that each column can break, in the unit of the budgets. It bounds columns for which a limit on
        the number of attacked groups counts, where no row gives anything back for spending more: the tighter the bound,
        the more the limit tells. It bounds whole spendings that nothing else bounds as well, so that they can be
        enumerated.
    """
    finite = np.isfinite(constraints.budgets[index])
    rows, limits = constraints.rows[finite], constraints.budgets[index][finite]
    *_, upper = implied_uppers(rows, limits, constraints.caps, constraints.integer)
    if enough is not None:
        needed = np.where(constraints.integer, np.ceil(enough), enough)
        bounded = constraints.integer & np.isinf(upper) & (needed < LARGEST_SPLIT)
        for _, labels in constraints.limits:
            bounded |= labels >= 0
        upper = np.where(bounded & np.all(rows >= 0, axis=0), np.minimum(upper, needed), upper)
    integer, real = constraints.integer, len(upper)
    for most, labels in constraints.limits:
        groups = [group for group in np.unique(labels) if group >= 0 and np.any(upper[:real][labels == group] > 0)]
        if most >= len(groups):
            continue
        if most == 0:
            upper[:real][labels >= 0] = 0.0
            continue
        switches = len(groups)
        rows = np.pad(rows, ((0, 0), (0, switches)))
        width = rows.shape[1]
        ties: list[np.ndarray] = []
        for position, group in enumerate(groups):
            for column in np.flatnonzero(labels == group):
                # Without a finite bound no row can tie the column to its switch; leaving it free stays sound.
                if 0 < upper[column] < math.inf:
                    row = np.zeros(width)
                    row[column], row[width - switches + position] = 1.0, -upper[column]
                    ties.append(row)
        attacked = np.zeros(width)
        attacked[width - switches :] = 1.0
        rows = np.concatenate([rows, *[row[None] for row in ties], attacked[None]])
        limits = np.concatenate([limits, np.zeros(len(ties)), [float(most)]])
        upper = np.concatenate([upper, np.ones(switches)])
        integer = np.concatenate([integer, np.ones(switches, dtype=np.bool_)])
    return Region(rows, limits, upper, integer, real, np.flatnonzero(finite))


@dataclass(frozen=True, eq=False)
class Supports:
    """The most that the adversary can feed each inequality, max over b of W_p · b, with a proof.

    Parameters
    ----------
    values
        Upper bounds in the unit of the thresholds η, rounded up.
    multipliers
        Row multipliers y ≥ 0 that prove them, units fed per unit of a row's limit:
        W·b ≤ y·limits + Σ_l max(0, W_l − (Aᵀy)_l) · upper_l.
    """

    values: Float[np.ndarray, "pieces"]
    multipliers: Float[np.ndarray, "pieces rows"]


def underflows(
    left: Float[np.ndarray, "k rows"], right: Float[np.ndarray, "rows columns"]
) -> Bool[np.ndarray, "k columns"]:
    """Return where ``left @ right`` may contain a product that is not zero and below the normal numbers.

    Parameters
    ----------
    left, right
        The factors, as they are multiplied.
    """
    if left.size == 0 or right.size == 0:
        return np.zeros((len(left), right.shape[1]), dtype=np.bool_)
    least = np.where(left != 0, np.abs(left), 1e300).min(axis=1)
    below = np.where(right != 0, np.abs(right), 1e300).min(axis=0)
    with np.errstate(over="ignore"):
        return least[:, None] * below < 2.0**-1020


def support_value(
    weights: Float[np.ndarray, "pieces columns"], multipliers: Float[np.ndarray, "pieces rows"], region: Region
) -> Float[np.ndarray, "pieces"]:
    """Evaluate the bound of `Supports`, rounded up.

    Parameters
    ----------
    weights
        W ≥ 0 of each inequality, units fed per unit of b, with zeros for switches.
    multipliers
        y ≥ 0 of each inequality.
    region
        The adversary's set.
    """
    operations = len(region.limits) + len(region.upper) + 8
    priced = multipliers @ region.rows
    magnitude = weights + multipliers @ np.abs(region.rows)
    lost = len(region.limits) * TINY * underflows(multipliers, region.rows)
    surplus = np.maximum(0.0, weights - priced + operations * UNIT * magnitude + lost)
    surplus = np.where(np.isnan(surplus), np.inf, surplus)  # out of range: nothing is known
    # A column that feeds nothing and that no row takes from leaves exactly nothing over.
    surplus = np.where((weights == 0) & np.all(region.rows >= 0, axis=0), 0.0, surplus)
    with np.errstate(invalid="ignore", over="ignore"):
        most = np.where(surplus > 0, surplus * region.upper, 0.0)
        total = multipliers @ region.limits + np.nansum(most, axis=1)
        raised = np.nextafter(total * (1 + operations * 2 * UNIT) + operations * TINY, np.inf)
        fed = np.any((multipliers > 0) & (region.limits > 0), axis=1)
        fed |= np.any((surplus > 0) & (region.upper > 0), axis=1)
        total = np.where(fed, raised, 0.0)
    # Without anything fed, or with an empty box, the support is zero exactly.
    idle = ~np.any((weights > 0) & (region.upper > 0), axis=1)
    return np.where(idle, 0.0, total)
