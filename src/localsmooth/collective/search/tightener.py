"""Linear programs that look for lower ceilings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.ceiling import Ceiling, ceiling_value
from localsmooth.collective.kernel.dual import Cell, padded
from localsmooth.collective.kernel.problem import Pieces
from localsmooth.collective.search.linear_program import LinearModel
from localsmooth.collective.search.setting import Setting

__all__ = ["Tightener"]


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
