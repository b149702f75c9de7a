"""The relaxed problem as one small linear program, its lines generated as they are violated.

Variables: the spending b, the feed s_p = W_p · b of each inequality, and the count t_i of each group. Every quantity
is scaled into [0, 1], so that twelve orders of magnitude in the input do not meet the solver's absolute tolerances.
The number of outputs does not enter: a group of ten million outputs is one variable and a few lines.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.dual import Cell, DualPoint, padded
from localsmooth.collective.kernel.problem import Pieces
from localsmooth.collective.kernel.region import UNIT
from localsmooth.collective.kernel.steps import Steps
from localsmooth.collective.search.linear_program import Basis, LinearModel, Solution
from localsmooth.collective.search.minorant import Minorant
from localsmooth.collective.search.setting import Setting

__all__ = ["Line", "Relaxation", "Relaxed"]

STEEPEST = 1e12
"""Steepest slope that enters a program, in units of a group's count and an inequality's ceiling."""

Line = tuple[int, float, float]
"""Inequality, intercept, slope: the owner's count is at least intercept + slope · (feed)."""


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A solved relaxation.

    Parameters
    ----------
    feasible
        False where the solver says that the cell is empty (``point`` then carries the ray that may prove it).
    spending, feeds, counts
        The relaxed attack, what it feeds each inequality, and what each group counts.
    value
        The solver's own value: a guide, never a certificate.
    point
        The dual numbers.
    lines
        Lines that hold the solution.
    basis
        The solution's basis, of a program that has these lines and no others; None where there is none.
    """

    feasible: bool
    spending: Float[np.ndarray, "columns"]
    feeds: Float[np.ndarray, "pieces"]
    counts: Float[np.ndarray, "groups"]
    value: float
    point: DualPoint
    lines: tuple[Line, ...]
    basis: Basis | None = None


class Relaxation:
    """The relaxations of one budget, over any of its cells."""

    def __init__(self, setting: Setting) -> None:
        pieces, region, root = setting.pieces, setting.region, setting.cell
        self._pieces, self._region = pieces, region
        # What an unbounded column feeds is lost anyway: its inequalities count nothing, in the bound too.
        self._columns = np.flatnonzero(np.isfinite(root.upper) & (root.upper > 0))
        self._live = np.flatnonzero(np.isfinite(root.ceiling) & (root.stop > 1))
        self._owners = np.unique(pieces.owner[self._live])
        self._place = np.full(pieces.groups, -1)
        self._place[self._owners] = np.arange(len(self._owners))
        self._at = {int(piece): position for position, piece in enumerate(self._live)}
        self._feed_scale = np.where((root.ceiling > 0) & np.isfinite(root.ceiling), root.ceiling, 1.0)
        self._count_scale = np.ones(pieces.groups)
        for steps, owner in zip(pieces.steps, pieces.owner, strict=True):
            self._count_scale[owner] = max(self._count_scale[owner], float(steps.counts[0]))
        self._total = float(self._count_scale[self._owners].sum()) or 1.0
        owned = np.isin(pieces.owner, self._owners)
        owned[self._live] = False
        sizes = self._count_scale[pieces.owner[self._live]]
        self._steepest = (STEEPEST * sizes / self._feed_scale[self._live]).tolist()
        self._names = self._live.tolist()
        self._held = [int(piece) for piece in np.flatnonzero(owned)]
        self._model = LinearModel() if len(self._live) else None
        self._prepare(setting)

    def _prepare(self, setting: Setting) -> None:
        """Lay out what all cells have in common: links, threat rows and cost."""
        pieces, region = setting.pieces, setting.region
        n, p, g = len(self._columns), len(self._live), len(self._owners)
        self._scale = setting.cell.upper[self._columns]
        weights = padded(pieces, region)
        links = np.zeros((p, n + p + g))
        links[:, :n] = -weights[np.ix_(self._live, self._columns)] * self._scale / self._feed_scale[self._live][:, None]
        links[np.arange(p), n + np.arange(p)] = 1.0
        threat = np.zeros((len(region.limits), n + p + g))
        threat[:, :n] = region.rows[:, self._columns] * self._scale
        row_scale = np.where(region.limits > 0, region.limits, np.abs(threat).max(axis=1, initial=0.0))
        self._row_scale = np.where(row_scale > 0, row_scale, 1.0)
        self._rows = np.concatenate([links, threat / self._row_scale[:, None]])
        self._row_lower = np.concatenate([np.zeros(p), np.full(len(threat), -np.inf)])
        self._row_upper = np.concatenate([np.zeros(p), region.limits / self._row_scale])
        self._cost = np.concatenate([np.zeros(n + p), self._count_scale[self._owners] / self._total])

    def solve(
        self,
        pieces: Pieces,
        cell: Cell,
        minorant: Minorant,
        known: Sequence[Line] = (),
        basis: Basis | None = None,
        guess: Float[np.ndarray, "pieces"] | None = None,
        slack: float = 0.0,
        rounds: int = 200,
    ) -> Relaxed:
        """Minimise the sum of the groups' minorants over a cell.

        Parameters
        ----------
        pieces
            The inequalities with the step functions that hold in this cell.
        cell
            The part of the adversary's set.
        minorant
            The convex functions.
        known
            Lines that hold in this cell already.
        basis
            Basis of a program with the known lines and no others, from which to start.
        guess
            Feeds around which to draw lines before the first solve; where the minorant starts by default.
        slack
            Violation, in targets, below which no line is added (besides a billionth of a group's count).
        rounds
            Most rounds of adding lines.
        """
        if self._model is None:
            return self._constant(pieces, cell)
        n, p = len(self._columns), len(self._live)
        start, stop = cell.start[self._live], cell.stop[self._live]
        steps = [pieces.steps[piece] for piece in self._live]
        every_low, every_roof = cell.feeds(pieces)
        roof = every_roof[self._live]
        low = np.minimum(every_low[self._live], roof)
        lines = [line for line in known if self._place[pieces.owner[line[0]]] >= 0]
        fits = basis is not None and len(basis.rows) == p + len(self._region.limits) + len(lines)
        lines.extend((piece, _floor(pieces, cell, piece), 0.0) for piece in self._held)
        drawing = _Drawing(self, minorant, steps, start.tolist(), stop.tolist(), low, roof)
        if guess is None:
            firsts = [low + share * (roof - low) for share in (minorant.starts if not known else minorant.starts[-1:])]
        else:
            firsts = [np.clip(guess[self._live] * share, low, roof) for share in minorant.around]
        for first in firsts:
            lines.extend(drawing.line(position, feed) for position, feed in enumerate(first.tolist()))
        self._load(cell, low, roof, lines)
        if basis is not None and fits:
            self._model.start_from(basis.extended(self._model.height - len(basis.rows)))
        scales = self._feed_scale[self._live]
        owner = self._place[pieces.owner[self._live]]
        sizes = self._count_scale[pieces.owner[self._live]]
        solution = self._model.solve()
        for _ in range(rounds):
            if not solution.feasible:
                break
            feeds = np.clip(solution.columns[n : n + p] * scales, low, roof)
            counts = solution.columns[n + p :][owner] * sizes
            fresh: list[Line] = []
            enough_all = (counts + 1e-9 * sizes + slack).tolist()
            for position, feed in enumerate(feeds.tolist()):
                enough = enough_all[position]
                if steps[position].count(feed) <= enough:
                    continue  # no line below the step function can be violated
                line = drawing.line(position, feed)
                if line[1] + line[2] * feed > enough:
                    fresh.append(line)
                    fresh.extend(drawing.beside(position, feed))
            if not fresh:
                break
            self._model.add_rows(*self._line_rows(fresh))
            further = self._model.solve()
            if not further.feasible and not bool(further.duals.any()):
                break  # the solver gave up: what it knew before still proves something
            lines.extend(fresh)
            solution = further
        return self._result(pieces, cell, solution, lines)

    def line(self, minorant: Minorant, steps: Steps, position: int, start: int, stop: int, feed: float) -> Line:
        """Return the minorant's line, or one that is less steep where the solver could not tell it from a wall."""
        intercept, slope = minorant.line(steps, start, stop, feed)
        if slope < -self._steepest[position]:
            slope = -self._steepest[position]
            intercept = minorant.intercept(steps, start, stop, slope)
        return self._names[position], intercept, slope

    def _constant(self, pieces: Pieces, cell: Cell) -> Relaxed:
        spending = cell.lower.copy()
        feeds = pieces.weights @ spending[: self._region.real]
        counts = self._constants(pieces, cell)
        idle = DualPoint.idle(pieces, self._region, cell)
        return Relaxed(True, spending, feeds, counts, float(counts.sum()), idle, ())

    def _constants(self, pieces: Pieces, cell: Cell) -> Float[np.ndarray, "groups"]:
        counts = np.zeros(pieces.groups)
        for piece, owner in enumerate(pieces.owner):
            counts[owner] = max(counts[owner], _floor(pieces, cell, piece))
        return counts

    def _load(
        self, cell: Cell, low: Float[np.ndarray, "live"], roof: Float[np.ndarray, "live"], lines: list[Line]
    ) -> None:
        assert self._model is not None
        g, scales = len(self._owners), self._feed_scale[self._live]
        lower = np.concatenate([cell.lower[self._columns] / self._scale, low / scales, np.zeros(g)])
        upper = np.concatenate([cell.upper[self._columns] / self._scale, roof / scales, np.full(g, np.inf)])
        matrix, intercepts = self._line_rows(lines)
        self._model.load(
            self._cost,
            lower,
            upper,
            np.concatenate([self._rows, matrix]),
            np.concatenate([self._row_lower, intercepts]),
            np.concatenate([self._row_upper, np.full(len(lines), np.inf)]),
        )

    def _line_rows(self, lines: list[Line]) -> tuple[Float[np.ndarray, "lines columns"], Float[np.ndarray, "lines"]]:
        n, p, g = len(self._columns), len(self._live), len(self._owners)
        matrix, lower = np.zeros((len(lines), n + p + g)), np.zeros(len(lines))
        for row, (piece, intercept, slope) in enumerate(lines):
            owner = int(self._pieces.owner[piece])
            if slope != 0.0:
                matrix[row, n + self._at[piece]] = -slope * self._feed_scale[piece] / self._count_scale[owner]
            matrix[row, n + p + self._place[owner]] = 1.0
            lower[row] = intercept / self._count_scale[owner]
        return matrix, lower

    def _result(self, pieces: Pieces, cell: Cell, solution: Solution, lines: list[Line]) -> Relaxed:
        n, p, rows = len(self._columns), len(self._live), len(self._region.limits)
        duals = solution.duals * self._total
        slopes, shares = np.zeros(len(pieces)), np.zeros(len(pieces))
        slopes[self._live] = duals[:p] / self._feed_scale[self._live]
        multipliers = np.maximum(0.0, -duals[p : p + rows] / self._row_scale)
        weights = duals[p + rows :]
        for (piece, _, _), weight in zip(lines, weights, strict=True):
            shares[piece] += max(0.0, float(weight)) / self._count_scale[pieces.owner[piece]]
        spending = cell.lower.copy()
        if not solution.feasible:
            point = DualPoint(slopes, np.zeros(len(pieces)), multipliers)
            nothing = np.full(len(pieces), np.nan)
            return Relaxed(False, spending, nothing, np.full(pieces.groups, np.nan), np.inf, point, ())
        point = DualPoint(slopes, _normalised(pieces, cell, shares), multipliers)
        spending[self._columns] = solution.columns[:n] * self._scale
        spending = np.clip(spending, cell.lower, np.where(np.isfinite(cell.upper), cell.upper, cell.lower))
        counts = self._constants(pieces, cell)
        counts[self._owners] = solution.columns[n + p :] * self._count_scale[self._owners]
        feeds = pieces.weights @ spending[: self._region.real]
        assert self._model is not None
        basis = self._model.basis
        tight = [row for row in range(len(lines)) if basis.nonbasic(p + rows + row)]
        binding = tuple(lines[row] for row in tight)
        kept = Basis(basis.columns, [*basis.rows[: p + rows], *(basis.rows[p + rows + row] for row in tight)])
        return Relaxed(True, spending, feeds, counts, float(counts.sum()), point, binding, kept)


class _Drawing:
    """The lines of one cell, and where they touch."""

    def __init__(
        self,
        relaxation: Relaxation,
        minorant: Minorant,
        steps: list[Steps],
        start: list[int],
        stop: list[int],
        low: Float[np.ndarray, "live"],
        roof: Float[np.ndarray, "live"],
    ) -> None:
        self._relaxation, self._minorant = relaxation, minorant
        self._steps, self._start, self._stop = steps, start, stop
        self._touched = [[a, z] for a, z in zip(low.tolist(), roof.tolist(), strict=True)]

    def line(self, position: int, feed: float) -> Line:
        """Return the line that touches an inequality's function at a feed."""
        insort(self._touched[position], feed)
        return self._relaxation.line(
            self._minorant, self._steps[position], position, self._start[position], self._stop[position], feed
        )

    def beside(self, position: int, feed: float) -> list[Line]:
        """Return lines on both sides of one that was just drawn, on the way to its neighbours.

        The solution moves to where few lines are: it would ask for these next.
        """
        touched = self._touched[position]
        at = bisect_left(touched, feed)
        ends = touched[max(at - 1, 0)], touched[min(at + 1, len(touched) - 1)]
        feeds = [feed + share * (end - feed) for share in self._minorant.spread for end in ends]
        return [self.line(position, other) for other in feeds if abs(other - feed) > 1e-7 * touched[-1]]


def _floor(pieces: Pieces, cell: Cell, piece: int) -> float:
    """Return the least count that an inequality alone leaves in a cell."""
    return float(pieces.steps[piece].counts[max(int(cell.stop[piece]) - 1, 0)])


def _normalised(pieces: Pieces, cell: Cell, shares: Float[np.ndarray, "pieces"]) -> Float[np.ndarray, "pieces"]:
    """Make the shares of each group sum to one, and to a little less where several hold some."""
    totals = np.bincount(pieces.owner, shares, pieces.groups)
    holders = np.bincount(pieces.owner, shares > 0, pieces.groups)
    result = np.where(holders[pieces.owner] == 1, shares > 0, 0.0)
    several = holders[pieces.owner] > 1
    # The margin that a sound point needs grows with the number of inequalities.
    result[several] = shares[several] / totals[pieces.owner][several] * (1 - 16 * (len(pieces) + 4) * UNIT)
    for owner in np.flatnonzero(holders == 0):
        # No line binds: the group counts what its strongest certificate leaves.
        result[max(np.flatnonzero(pieces.owner == owner), key=lambda piece: _floor(pieces, cell, int(piece)))] = 1.0
    return result
