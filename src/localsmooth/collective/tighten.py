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

from localsmooth.collective.dual import Cell, padded
from localsmooth.collective.linear_program import LinearModel
from localsmooth.collective.problem import Pieces
from localsmooth.collective.region import TINY, UNIT, Region, underflows
from localsmooth.collective.setting import Setting

__all__ = ["Ceiling", "Tightener", "ceiling_exactly", "ceiling_value", "lowered"]


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


class Tightener:
    """Maximises the feeds of one budget's inequalities over cells."""

    def __init__(self, setting: Setting) -> None:
        root, region = setting.cell, setting.region
        self._pieces, self._region = setting.pieces, region
        self._columns = np.flatnonzero(np.isfinite(root.upper) & (root.upper > 0))
        self._live = np.flatnonzero(np.isfinite(root.ceiling) & (root.stop > 1))
        self._scale = root.upper[self._columns]
        self._feed_scale = root.ceiling[self._live]
        weights = padded(setting.pieces, region)
        feeds = weights[np.ix_(self._live, self._columns)] * self._scale
        self._rows = feeds / self._feed_scale[:, None]
        threat = region.rows[:, self._columns] * self._scale
        row_scale = np.where(region.limits > 0, region.limits, np.abs(threat).max(axis=1, initial=0.0))
        self._row_scale = np.where(row_scale > 0, row_scale, 1.0)
        number, width = len(self._live), len(self._columns)
        self._model = LinearModel()
        self._model.load(
            np.zeros(width),
            np.zeros(width),
            np.ones(width),
            np.concatenate([self._rows, threat / self._row_scale[:, None]]),
            np.concatenate([np.zeros(number), np.full(len(threat), -np.inf)]),
            np.concatenate([np.ones(number), region.limits / self._row_scale]),
        )

    def tighten(
        self, pieces: Pieces, cell: Cell, chosen: np.ndarray, witnesses: np.ndarray
    ) -> tuple[tuple[Ceiling, ...], np.ndarray]:
        """Return the ceilings that a cell allows for some inequalities, where they have come down.

        Parameters
        ----------
        chosen
            The inequalities.
        witnesses
            For each inequality, the (scaled) spending that fed it most in an enclosing cell; NaN where unknown. While
            it lies in the cell, the ceiling stands. Returned anew.
        """
        low, roof = (ends[self._live] / self._feed_scale for ends in cell.feeds(pieces))
        lower, upper = cell.lower[self._columns] / self._scale, cell.upper[self._columns] / self._scale
        witnesses, found, loaded = witnesses.copy(), list[Ceiling](), False
        place = {int(piece): position for position, piece in enumerate(self._live)}
        for piece in (int(piece) for piece in chosen if int(piece) in place):
            position = place[piece]
            feeds = self._rows @ witnesses[position]
            inside = (feeds >= low - 1e-9) & (feeds <= roof + 1e-9)
            inside[position] = True
            if bool(np.all(inside)) and bool(np.all((witnesses[position] <= upper) & (witnesses[position] >= lower))):
                continue
            if not loaded:
                self._model.bound_rows(low, np.maximum(low, roof))
                self._model.bound_columns(lower, upper)
                loaded = True
            self._model.aim(-self._rows[position])
            solution = self._model.solve()
            if solution.feasible:
                witnesses[position] = solution.columns
                if float(self._rows[position] @ solution.columns) > 0.999 * roof[position]:
                    continue
            ceiling = self._ceiling(pieces, cell, piece, solution.duals * self._feed_scale[position])
            if not solution.feasible and ceiling.value >= cell.ceiling[piece]:
                break
            if ceiling.value < cell.ceiling[piece]:
                found.append(ceiling)
            if not solution.feasible:
                break
        return tuple(found), witnesses

    def _ceiling(self, pieces: Pieces, cell: Cell, piece: int, duals: Float[np.ndarray, "rows"]) -> Ceiling:
        kappa = np.zeros(len(pieces))
        number = len(self._live)
        kappa[self._live] = duals[:number] / self._feed_scale
        kappa[piece] = max(0.0, kappa[piece])
        y = np.maximum(0.0, -duals[number:] / self._row_scale)
        bare = Ceiling(piece, math.inf, y, kappa)
        return replace(bare, value=ceiling_value(pieces, self._region, cell, bare))

    @property
    def unknown(self) -> np.ndarray:
        """Witnesses to begin with."""
        return np.full((len(self._live), len(self._columns)), np.nan)
