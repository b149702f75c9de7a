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
        q.
    value
        The bound.
    multipliers
        y ≥ 0.
    feeds
        κ: positive where the least feed of an inequality is used, negative where its roof is.
    """

    piece: int
    value: float
    multipliers: Float[np.ndarray, "rows"]
    feeds: Float[np.ndarray, "pieces"]


def ceiling_value(pieces: Pieces, region: Region, cell: Cell, ceiling: Ceiling) -> float:
    """Evaluate the bound of a `Ceiling`, rounded up."""
    weights = padded(pieces, region)
    y, kappa = ceiling.multipliers, ceiling.feeds
    if not (bool(np.all(y >= 0)) and bool(np.all(np.isfinite(y))) and bool(np.all(np.isfinite(kappa)))):
        return math.inf
    size = len(pieces) + len(region.limits) + 8
    own = weights[ceiling.piece]
    rest = own + kappa @ weights - y @ region.rows
    rest = rest + size * UNIT * (own + np.abs(kappa) @ weights + y @ np.abs(region.rows))
    prices = np.concatenate([kappa, y])[None]
    rest = rest + size * TINY * underflows(prices, np.concatenate([weights, region.rows]))[0]
    with np.errstate(invalid="ignore"):
        spent = np.where(rest > 0, rest * cell.upper, rest * cell.lower)
    terms = [*np.where((rest > 0) & (cell.upper == 0), 0.0, spent).tolist(), *(y * region.limits).tolist()]
    for piece in np.flatnonzero(kappa).tolist():
        steps, price = pieces.steps[piece], float(kappa[piece])
        edge = float(steps.thresholds[cell.start[piece]]) if price > 0 else cell.roof(piece, steps)
        terms.append(-price * edge)
    size_of_terms = math.fsum(map(abs, terms))
    if not math.isfinite(size_of_terms):
        return math.inf
    return math.fsum(terms) + 8 * UNIT * size_of_terms + 4 * TINY * len(terms)


def ceiling_exactly(pieces: Pieces, region: Region, cell: Cell, ceiling: Ceiling) -> Fraction | None:
    """Evaluate the bound of a `Ceiling` in exact rationals; None where it shows nothing."""
    y, kappa = ceiling.multipliers, ceiling.feeds
    if not (bool(np.all(y >= 0)) and bool(np.all(np.isfinite(y))) and bool(np.all(np.isfinite(kappa)))):
        return None
    prices = {int(p): Fraction(float(kappa[p])) for p in np.flatnonzero(kappa)}
    rows = {int(r): Fraction(float(y[r])) for r in np.flatnonzero(y)}
    value = sum((price * Fraction(float(region.limits[r])) for r, price in rows.items()), Fraction(0))
    for column in range(len(region.upper)):
        rest = -sum((price * Fraction(float(region.rows[r, column])) for r, price in rows.items()), Fraction(0))
        if column < region.real:
            rest += Fraction(float(pieces.weights[ceiling.piece, column]))
            rest += sum(
                (price * Fraction(float(pieces.weights[p, column])) for p, price in prices.items()), Fraction(0)
            )
        edge = float(cell.upper[column] if rest > 0 else cell.lower[column])
        if rest != 0 and not math.isfinite(edge):
            return None
        value += rest * Fraction(edge) if rest != 0 else 0
    for p, price in prices.items():
        steps = pieces.steps[p]
        edge = float(steps.thresholds[cell.start[p]]) if price > 0 else cell.roof(p, steps)
        if not math.isfinite(edge):
            return None
        value -= price * Fraction(edge)
    return value


def lowered(pieces: Pieces, cell: Cell, ceilings: tuple[Ceiling, ...]) -> Cell:
    """Return the cell with lower ceilings; it is empty where a ceiling lies below what was fed already."""
    values, stop = cell.ceiling.copy(), cell.stop.copy()
    for ceiling in ceilings:
        piece = ceiling.piece
        values[piece] = min(values[piece], max(0.0, ceiling.value))
        stop[piece] = min(stop[piece], pieces.steps[piece].reached(float(values[piece])))
        if ceiling.value < 0:
            stop[piece] = cell.start[piece]
    return replace(cell, ceiling=values, stop=stop)
