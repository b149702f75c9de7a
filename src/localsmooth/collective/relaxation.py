"""The relaxed problem as one small linear program, its lines generated as they are violated.

Variables: the spending b, the feed s_p = W_p · b of each inequality, and the count t_i of each group. Every quantity
is scaled into [0, 1], so that twelve orders of magnitude in the input do not meet the solver's absolute tolerances.
The number of outputs does not enter: a group of ten million outputs is one variable and a few lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from .dual import Cell, DualPoint
from .linear_program import LinearModel, Solution
from .minorant import Minorant
from .problem import Pieces
from .region import Region

__all__ = ["Line", "LinePool", "Relaxed", "solve_relaxation"]

Line = tuple[int, float, float]
"""Inequality, intercept, slope: the owner's count is at least intercept + slope · (feed)."""


@dataclass(eq=False)
class LinePool:
    """Lines that held with some weight at the last solution, to start the next one from."""

    lines: list[Line] = field(default_factory=list[Line])


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A solved relaxation.

    Parameters
    ----------
    feasible
        False where the solver says that the cell is empty (``point`` then carries the ray that may prove it).
    spending, feeds
        The relaxed attack, and what it feeds each inequality.
    value
        The solver's own value: a guide, never a certificate.
    point
        The dual numbers.
    lines
        Lines with a positive dual.
    """

    feasible: bool
    spending: Float[np.ndarray, "columns"]
    feeds: Float[np.ndarray, "pieces"]
    value: float
    point: DualPoint
    lines: tuple[Line, ...]


class _Scaled:
    """Index maps and scales between the problem and the program."""

    def __init__(self, pieces: Pieces, region: Region, cell: Cell) -> None:
        self.pieces, self.region, self.cell = pieces, region, cell
        free = np.isfinite(cell.upper) & (cell.upper > 0)
        # What an unbounded column feeds is lost anyway: its inequalities count nothing, in the bound too.
        self.columns = np.flatnonzero(free)
        roofs = np.array([cell.roof(piece, steps) for piece, steps in enumerate(pieces.steps)])
        bounded = np.isfinite(roofs) & np.isfinite(cell.ceiling) & (roofs > 0) & (cell.ceiling > 0)
        self.live = np.flatnonzero(bounded & ((cell.stop - cell.start > 1) | (cell.start > 0) | self._closed()))
        self.owners = np.unique(pieces.owner[self.live])
        self.place = np.full(pieces.groups, -1)
        self.place[self.owners] = np.arange(len(self.owners))
        self.roofs, self.feed_scale = roofs, np.where(self.cell.ceiling > 0, cell.ceiling, 1.0)
        self.count_scale = np.ones(pieces.groups)
        for piece, owner in enumerate(pieces.owner):
            self.count_scale[owner] = max(self.count_scale[owner], float(pieces.steps[piece].counts[0]))
        self.total = float(self.count_scale[self.owners].sum()) or 1.0

    def _closed(self) -> np.ndarray:
        lengths = np.array([len(steps) for steps in self.pieces.steps])
        thresholds = np.array(
            [
                float(steps.thresholds[min(int(stop), len(steps) - 1)])
                for steps, stop in zip(self.pieces.steps, self.cell.stop, strict=True)
            ]
        )
        return (self.cell.stop < lengths) & (thresholds < self.cell.ceiling)

    def floor(self, piece: int) -> float:
        """Return the least count that inequality ``piece`` alone leaves in this cell."""
        return float(self.pieces.steps[piece].counts[max(int(self.cell.stop[piece]) - 1, 0)])

    def held(self) -> list[int]:
        """Return the inequalities without a feed variable whose group has one through another certificate."""
        owned = np.isin(self.pieces.owner, self.owners)
        owned[self.live] = False
        return [int(piece) for piece in np.flatnonzero(owned)]

    def model(self) -> LinearModel:
        pieces, region, cell = self.pieces, self.region, self.cell
        n, p, g = len(self.columns), len(self.live), len(self.owners)
        scale = cell.upper[self.columns]
        lower = np.concatenate([cell.lower[self.columns] / scale, np.zeros(p + g)])
        upper = np.concatenate([np.ones(n), np.ones(p), np.full(g, np.inf)])
        for position, piece in enumerate(self.live):
            low = pieces.steps[piece].thresholds[int(cell.start[piece])]
            lower[n + position] = min(low, self.roofs[piece]) / self.feed_scale[piece]
            upper[n + position] = self.roofs[piece] / self.feed_scale[piece]
        weights = np.pad(pieces.weights, ((0, 0), (0, len(region.upper) - region.real)))
        links = np.zeros((p, n + p + g))
        links[:, :n] = -weights[np.ix_(self.live, self.columns)] * scale / self.feed_scale[self.live][:, None]
        links[np.arange(p), n + np.arange(p)] = 1.0
        threat = np.zeros((len(region.limits), n + p + g))
        threat[:, :n] = region.rows[:, self.columns] * scale
        self.row_scale = np.where(region.limits > 0, region.limits, np.abs(threat).max(axis=1, initial=0.0))
        self.row_scale[self.row_scale == 0] = 1.0
        cost = np.concatenate([np.zeros(n + p), self.count_scale[self.owners] / self.total])
        return LinearModel(
            cost,
            lower,
            upper,
            np.concatenate([links, threat / self.row_scale[:, None]]),
            np.concatenate([np.zeros(p), np.full(len(threat), -np.inf)]),
            np.concatenate([np.zeros(p), region.limits / self.row_scale]),
        )

    def rows(self, lines: list[Line]) -> tuple[Float[np.ndarray, "lines columns"], Float[np.ndarray, "lines"]]:
        n, p, g = len(self.columns), len(self.live), len(self.owners)
        matrix, lower = np.zeros((len(lines), n + p + g)), np.zeros(len(lines))
        at = {int(piece): position for position, piece in enumerate(self.live)}
        for row, (piece, intercept, slope) in enumerate(lines):
            owner = int(self.pieces.owner[piece])
            if slope != 0.0:
                matrix[row, n + at[piece]] = -slope * self.feed_scale[piece] / self.count_scale[owner]
            matrix[row, n + p + self.place[owner]] = 1.0
            lower[row] = intercept / self.count_scale[owner]
        return matrix, lower

    def point(self, solution: Solution, lines: list[Line]) -> DualPoint:
        pieces, region = self.pieces, self.region
        p = len(self.live)
        duals = solution.duals * self.total
        slopes, shares = np.zeros(len(pieces)), np.zeros(len(pieces))
        slopes[self.live] = duals[:p] / self.feed_scale[self.live]
        multipliers = np.maximum(0.0, -duals[p : p + len(region.limits)] / self.row_scale)
        for (piece, _, _), weight in zip(lines, duals[p + len(region.limits) :], strict=True):
            shares[piece] += max(0.0, weight) / self.count_scale[pieces.owner[piece]]
        return DualPoint(slopes, _normalised(self, shares), multipliers)


def _normalised(scaled: _Scaled, shares: Float[np.ndarray, "pieces"]) -> Float[np.ndarray, "pieces"]:
    """Make the shares of each group sum to one, and to a little less where several hold some."""
    pieces = scaled.pieces
    result = np.zeros(len(shares))
    for owner in range(pieces.groups):
        own = np.flatnonzero(pieces.owner == owner)
        total, holders = shares[own].sum(), np.count_nonzero(shares[own])
        if holders == 0:
            # No line binds: the group counts what its strongest certificate leaves.
            result[max(own, key=lambda piece: scaled.floor(int(piece)))] = 1.0
        elif holders == 1:
            result[own] = shares[own] > 0
        else:
            result[own] = shares[own] / total * (1 - 1e-14)
    return result


def solve_relaxation(
    pieces: Pieces,
    region: Region,
    cell: Cell,
    minorant: Minorant,
    pool: LinePool,
    rounds: int = 200,
    tolerance: float = 1e-9,
) -> Relaxed:
    """Minimise the sum of the groups' minorants over a cell.

    Parameters
    ----------
    pool
        Lines valid in this cell to begin with; replaced by the ones that bind at the solution.
    rounds
        Most rounds of adding violated lines.
    tolerance
        Violation, as a share of a group's count, below which no line is added.
    """
    scaled = _Scaled(pieces, region, cell)
    n, p = len(scaled.columns), len(scaled.live)
    spending = cell.lower.copy()
    if p == 0:
        return Relaxed(
            True, spending, pieces.weights @ spending[: region.real], 0.0, DualPoint.idle(pieces, region, cell), ()
        )
    model = scaled.model()
    alive = {int(piece) for piece in scaled.live}
    lines = [line for line in pool.lines if line[0] in alive]
    covered = {line[0] for line in lines}
    # A certificate that this cell cannot wear down holds its share of the group up whatever is spent.
    lines.extend((piece, scaled.floor(piece), 0.0) for piece in scaled.held())
    for piece in alive - covered:
        low = float(pieces.steps[piece].thresholds[int(cell.start[piece])])
        middle = 0.5 * (low + float(scaled.roofs[piece]))
        lines.append(
            (piece, *minorant.line(pieces.steps[piece], int(cell.start[piece]), int(cell.stop[piece]), middle))
        )
    model.add_rows(*scaled.rows(lines))
    solution = model.solve()
    for _ in range(rounds):
        if not solution.feasible:
            break
        fresh: list[Line] = []
        for position, piece in enumerate(int(value) for value in scaled.live):
            owner = int(pieces.owner[piece])
            low, roof = pieces.steps[piece].thresholds[int(cell.start[piece])], scaled.roofs[piece]
            feed = float(np.clip(solution.columns[n + position] * scaled.feed_scale[piece], low, roof))
            count = float(solution.columns[n + p + scaled.place[owner]]) * scaled.count_scale[owner]
            start, stop = int(cell.start[piece]), int(cell.stop[piece])
            intercept, slope = minorant.line(pieces.steps[piece], start, stop, feed)
            if intercept + slope * feed > count + tolerance * scaled.count_scale[owner]:
                fresh.append((piece, intercept, slope))
        if not fresh:
            break
        lines.extend(fresh)
        model.add_rows(*scaled.rows(fresh))
        solution = model.solve()
    point = scaled.point(solution, lines)
    if not solution.feasible:
        nothing = np.full(len(pieces), np.nan)
        return Relaxed(False, spending, nothing, np.inf, point, ())
    spending[scaled.columns] = np.clip(solution.columns[:n], 0.0, 1.0) * cell.upper[scaled.columns]
    spending = np.clip(spending, cell.lower, cell.upper)
    duals = solution.duals[p + len(region.limits) :]
    binding = tuple(line for line, weight in zip(lines, duals, strict=True) if weight > 1e-12)
    value = float(solution.columns[n + p :] @ scaled.count_scale[scaled.owners])
    value += sum(
        max(scaled.floor(int(piece)) for piece in np.flatnonzero(pieces.owner == owner))
        for owner in np.setdiff1d(np.arange(pieces.groups), scaled.owners)
    )
    return Relaxed(True, spending, pieces.weights @ spending[: region.real], value, point, binding)
