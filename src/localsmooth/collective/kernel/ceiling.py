"""Lower ceilings: what can still be fed to one inequality once others are known to have been fed.

Feeding one group costs budget that is then missing elsewhere. The convex envelope of a group is as good as its
interval is short, so carrying a restriction of one group over to all others is what makes the search succeed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.dual import Cell, padded
from localsmooth.collective.kernel.problem import Pieces
from localsmooth.collective.kernel.region import TINY, UNIT, Region, underflows

__all__ = ["Ceiling", "ceiling_exactly", "ceiling_value", "lowered"]


@dataclass(frozen=True, eq=False)
class Ceiling:
    """A bound on what inequality ``piece`` is fed in a cell, with the numbers that prove it.

    W_q · b ≤ y·c + Σ_l max over b_l of (W_q + κW − Aᵀy)_l b_l − Σ_{κ_p > 0} κ_p low_p + Σ_{κ_p < 0} |κ_p| roof_p, where
    low and roof enclose the feeds in the cell.

    Parameters
    ----------
    piece
        q, the index of the inequality.
    value
        The bound, in the unit of the inequality's thresholds η.
    multipliers
        y ≥ 0, the price of each row of the region: units fed to q per unit of the row's limit.
    feeds
        κ, units fed to q per unit fed to each inequality: positive where its least feed is used, negative where its
        roof is.
    """

    piece: int
    value: float
    multipliers: Float[np.ndarray, "rows"]
    feeds: Float[np.ndarray, "pieces"]


def ceiling_value(pieces: Pieces, region: Region, cell: Cell, ceiling: Ceiling) -> float:
    """Evaluate the bound of a `Ceiling`, rounded up; +∞ where it shows nothing.

    Parameters
    ----------
    pieces, region
        The inequalities and the adversary's set.
    cell
        The part of the set that the bound is for.
    ceiling
        q, y and κ; its own value is not looked at.
    """
    weights = padded(pieces, region)
    multipliers, feeds = ceiling.multipliers, ceiling.feeds
    if not _finite(ceiling):
        return math.inf
    # What one unit of b feeds beyond its price in each column, and what roundings can have taken from that.
    operations = len(pieces) + len(region.limits) + 8
    fed = weights[ceiling.piece]
    surplus = fed + feeds @ weights - multipliers @ region.rows
    surplus = surplus + operations * UNIT * (fed + np.abs(feeds) @ weights + multipliers @ np.abs(region.rows))
    prices = np.concatenate([feeds, multipliers])[None]
    surplus = surplus + operations * TINY * underflows(prices, np.concatenate([weights, region.rows]))[0]
    with np.errstate(invalid="ignore"):
        most = np.where(surplus > 0, surplus * cell.upper, surplus * cell.lower)
    terms = np.where((surplus > 0) & (cell.upper == 0), 0.0, most).tolist() + (multipliers * region.limits).tolist()
    for piece in np.flatnonzero(feeds).tolist():
        terms.append(-float(feeds[piece]) * _enclosing(pieces, cell, piece, float(feeds[piece])))
    magnitude = math.fsum(map(abs, terms))
    if not math.isfinite(magnitude):
        return math.inf
    return math.fsum(terms) + 8 * UNIT * magnitude + 4 * TINY * len(terms)


def _finite(ceiling: Ceiling) -> bool:
    """Whether y ≥ 0, and all numbers are finite."""
    multipliers, feeds = ceiling.multipliers, ceiling.feeds
    return bool(np.all(multipliers >= 0) and np.all(np.isfinite(multipliers)) and np.all(np.isfinite(feeds)))


def _enclosing(pieces: Pieces, cell: Cell, piece: int, price: float | Fraction) -> float:
    """Return the least feed of an inequality in the cell where the price is positive, its roof where it is not."""
    steps = pieces.steps[piece]
    return float(steps.thresholds[cell.start[piece]]) if price > 0 else cell.roof(piece, steps)


def ceiling_exactly(pieces: Pieces, region: Region, cell: Cell, ceiling: Ceiling) -> Fraction | None:
    """Evaluate the bound of a `Ceiling` in exact rationals; None where it shows nothing.

    Parameters
    ----------
    pieces, region, cell, ceiling
        As in `ceiling_value`.
    """
    if not _finite(ceiling):
        return None
    feeds = {int(piece): Fraction(float(ceiling.feeds[piece])) for piece in np.flatnonzero(ceiling.feeds)}
    prices = {int(row): Fraction(float(ceiling.multipliers[row])) for row in np.flatnonzero(ceiling.multipliers)}
    value = sum((price * Fraction(float(region.limits[row])) for row, price in prices.items()), Fraction(0))
    weights = padded(pieces, region)
    for column in range(len(region.upper)):
        surplus = Fraction(float(weights[ceiling.piece, column]))
        surplus += sum((feed * Fraction(float(weights[piece, column])) for piece, feed in feeds.items()), Fraction(0))
        surplus -= sum(
            (price * Fraction(float(region.rows[row, column])) for row, price in prices.items()), Fraction(0)
        )
        most = float(cell.upper[column] if surplus > 0 else cell.lower[column])
        if surplus != 0 and not math.isfinite(most):
            return None
        value += surplus * Fraction(most) if surplus != 0 else 0
    for piece, feed in feeds.items():
        enclosing = _enclosing(pieces, cell, piece, feed)
        if not math.isfinite(enclosing):
            return None
        value -= feed * Fraction(enclosing)
    return value


def lowered(pieces: Pieces, cell: Cell, ceilings: tuple[Ceiling, ...]) -> Cell:
    """Return the cell with lower ceilings; it is empty where a ceiling lies below what was fed already.

    Parameters
    ----------
    pieces
        The inequalities.
    cell
        The cell.
    ceilings
        Bounds that hold in it, proven by `ceiling_value` or `ceiling_exactly`.
    """
    values, stop = cell.ceiling.copy(), cell.stop.copy()
    for ceiling in ceilings:
        piece = ceiling.piece
        values[piece] = min(values[piece], max(0.0, ceiling.value))
        stop[piece] = min(stop[piece], pieces.steps[piece].reached(float(values[piece])))
        if ceiling.value < 0:
            stop[piece] = cell.start[piece]
    return replace(cell, ceiling=values, stop=stop)
