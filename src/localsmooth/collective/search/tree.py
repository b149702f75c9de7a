"""Branch and bound over what each inequality is fed (Falk and Soland 1969), with ceilings carried along.

Every node is a cell of the adversary's set. Its relaxation is the convex envelope over the cell; its bound is what the
relaxation's dual numbers prove. Splitting at the relaxed attack closes the gap between a group's step function and its
envelope there; every split also lowers what all other inequalities can still be fed, which shortens their intervals.

Dual numbers are worth what rounding leaves of them: they cannot tell a feed from a threshold one unit in the last place
above it. Where spendings are whole numbers, splitting ends in cells of a single spending, and that is counted exactly.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from localsmooth.collective.kernel.attack import alone, survivors
from localsmooth.collective.kernel.ceiling import lowered
from localsmooth.collective.kernel.dual import Cell, DualPoint, evaluate
from localsmooth.collective.kernel.problem import Pieces
from localsmooth.collective.kernel.proof import LARGEST_SPLIT, Leaf, Node, SplitFeed, SplitSpending, Tighten, children
from localsmooth.collective.search.adversary import Adversary
from localsmooth.collective.search.candidates import estimates, fit
from localsmooth.collective.search.minorant import EnvelopeLines
from localsmooth.collective.search.relaxation import Relaxation, Relaxed
from localsmooth.collective.search.setting import Setting
from localsmooth.collective.search.tightener import Tightener

__all__ = ["Search"]

_SCOUTING = 0.2  # of the time there is


def _part(deadline: float | None, share: float) -> float | None:
    """When so much of the time until a deadline is over."""
    now = time.perf_counter()
    return None if deadline is None else now + share * max(0.0, deadline - now)


@dataclass(eq=False)
class _Slot:
    """A place in the proof tree: a leaf until it is split."""

    point: DualPoint
    node: SplitFeed | SplitSpending | Tighten | None = None
    parts: tuple[int, ...] = ()


@dataclass(eq=False)
class _Open:
    """A cell that still has to be split."""

    slot: int
    cell: Cell
    pieces: Pieces
    bound: float
    relaxed: Relaxed
    witnesses: np.ndarray


class Search:
    """One budget's search.

    Parameters
    ----------
    setting
        The budget.
    gap
        Units by which the certified count may fall short of the best attack found; at least the grain of the setting.
    deadline
        Value of ``time.perf_counter`` at which to stop.
    known
        Attacks worth trying first.
    relaxed, points
        The relaxation of the whole set, and dual points that bound it.
    goal
        A count that is enough: what is known to reach it is not searched any further.
    """

    def __init__(
        self,
        setting: Setting,
        gap: float,
        deadline: float | None,
        known: list[Float[np.ndarray, "columns"]],
        relaxed: Relaxed,
        points: list[DualPoint],
        goal: float = math.inf,
    ) -> None:
        self._grain = setting.grain
        self._gap = max(gap, self._grain if self._grain > 1 else 0.0)
        self._setting, self._goal, self._deadline = setting, goal, deadline
        self._relaxation, self._minorant = Relaxation(setting), EnvelopeLines()
        self._tightener, self._adversary = Tightener(setting), Adversary(setting, deadline=deadline)
        # Attacks end a search that is through, and splits raise its bound: before the first split they get a share.
        self._scout = Adversary(setting, deadline=_part(deadline, _SCOUTING))
        self._slots: list[_Slot] = []
        self._queue: list[tuple[float, int, _Open]] = []
        self._closed = math.inf
        self.stuck = False
        self.nodes = 0
        self.attack = np.zeros(setting.region.real)
        self.upper = survivors(setting.problem, self.attack)
        self.prices = np.zeros(len(setting.region.limits))
        self._known, self._relaxed, self._points = known, relaxed, points
        self.tell: Callable[[float, int], None] | None = None

    @property
    def lower(self) -> float:
        """The bound proven so far."""
        return min(self._closed, self._queue[0][0] if self._queue else math.inf)

    @property
    def open(self) -> int:
        """Number of cells that wait to be split."""
        return len(self._queue)

    @property
    def settled(self) -> bool:
        """Whether the gap that was asked for is reached."""
        return self._good(self.lower)

    def _good(self, bound: float) -> bool:
        return math.ceil(min(bound, self.upper)) >= min(self.upper - self._gap, self._goal)

    def run(self) -> None:
        """Search until the gap is closed, the time is up, or nothing is left to split."""
        self._root()
        while self._queue and not self.settled:
            if self._deadline is not None and time.perf_counter() > self._deadline:
                return
            if self.tell is not None:
                self.tell(self.lower, self.upper)
            self._split(heapq.heappop(self._queue)[2])

    def proof(self) -> Node:
        """Return the proof tree of `lower`."""
        built: list[Node | None] = [None] * len(self._slots)
        for index in range(len(self._slots) - 1, -1, -1):
            slot = self._slots[index]
            parts = [part for child in slot.parts if (part := built[child]) is not None]
            match slot.node:
                case None:
                    built[index] = Leaf((slot.point,))
                case Tighten():
                    built[index] = replace(slot.node, child=parts[0])
                case _:
                    built[index] = replace(slot.node, below=parts[0], above=parts[1])
        root = built[0]
        assert root is not None
        return root

    def _root(self) -> None:
        setting = self._setting
        idle = DualPoint.idle(setting.pieces, setting.region, setting.cell)
        points, relaxed = [*self._points, idle], self._relaxed
        values = [evaluate(setting.pieces, setting.region, setting.cell, point) for point in points]
        best = int(np.argmax(values))
        self._slots.append(_Slot(points[best]))
        self.prices = relaxed.point.multipliers
        starts = [relaxed.spending[: setting.region.real], *self._known]
        self._try(self._scout.search(starts))
        for start in starts:
            self._try(start)
        witnesses = self._tightener.unknown
        self._keep(_Open(0, setting.cell, setting.pieces, values[best], relaxed, witnesses))

    def _keep(self, node: _Open) -> None:
        """Queue a node, or close it where its bound is good enough."""
        if self._good(node.bound):
            self._closed = min(self._closed, node.bound)
        else:
            heapq.heappush(self._queue, (node.bound, node.slot, node))

    def _try(self, spending: Float[np.ndarray, "columns"]) -> None:
        setting = self._setting
        if estimates(setting, spending[None])[0] >= self.upper:
            return
        fitted = fit(setting, spending)
        if fitted is not None:
            left = survivors(setting.problem, fitted)
            if left < self.upper:
                self.upper, self.attack = left, fitted

    def _split(self, node: _Open) -> None:
        branch = self._branch(node)
        if branch is None:
            # Nothing to split: bound and attack differ by what floating point cannot tell apart.
            self._closed, self.stuck = min(self._closed, node.bound), True
            return
        slot = self._slots[node.slot]
        first = len(self._slots)
        slot.node, slot.parts = branch, (first, first + 1)
        self._slots.extend([_Slot(slot.point), _Slot(slot.point)])
        for offset, cell in enumerate(children(node.cell, branch)):
            self.nodes += 1
            self._child(node, first + offset, cell)

    def _child(self, parent: _Open, slot: int, cell: Cell) -> None:
        if bool(np.any(cell.stop <= cell.start)) or bool(np.any(cell.lower > cell.upper)):
            return
        left = alone(self._setting.problem, self._setting.index, cell)
        if left is not None:
            self._closed = min(self._closed, left)
            self._try(cell.lower[: self._setting.region.real])
            return
        pieces = self._setting.pieces.within(cell.stop)
        # Only where the envelope was far off does a shorter interval help.
        gaps = self._gaps(parent)[pieces.owner]
        chosen = np.flatnonzero(gaps > 0.2 * max(float(gaps.sum()), 1e-9 * self._grain))
        ceilings, witnesses = self._tightener.tighten(pieces, cell, chosen, parent.witnesses)
        if ceilings:
            inner = len(self._slots)
            self._slots[slot].node = Tighten(ceilings, Leaf(()))
            self._slots[slot].parts = (inner,)
            self._slots.append(_Slot(self._slots[slot].point))
            slot, cell = inner, lowered(pieces, cell, ceilings)
            if bool(np.any(cell.stop <= cell.start)):
                return
            pieces = self._setting.pieces.within(cell.stop)
        node = self._relax(slot, cell, pieces, parent, witnesses)
        if node is not None:
            self._explore(node)
            self._keep(node)

    def _relax(self, slot: int, cell: Cell, pieces: Pieces, parent: _Open, witnesses: np.ndarray) -> _Open | None:
        """Bound a cell; None where its dual numbers prove that it is empty."""
        known, bound = parent.relaxed, parent.bound
        setting = self._setting
        slack = 0.3 * max(0.0, min(self.upper - self._gap, self._goal) - bound) / max(1, pieces.groups)
        # From the parent's basis the solver ends at other, weaker dual numbers, and the search needs more nodes.
        guess = known.feeds if known.feasible else None
        relaxed = self._relaxation.solve(pieces, cell, self._minorant, known.lines, guess=guess, slack=slack)
        point = relaxed.point if relaxed.feasible else self._ray(pieces, cell, relaxed.point)
        proven = evaluate(pieces, setting.region, cell, point)
        if proven > bound:
            self._slots[slot].point, bound = point, proven
        if not relaxed.feasible and proven > setting.problem.worth.total:
            return None
        return _Open(slot, cell, pieces, bound, relaxed, witnesses)

    def _ray(self, pieces: Pieces, cell: Cell, ray: DualPoint) -> DualPoint:
        """Scale a dual ray until it proves more units than there are, if it proves anything."""
        shown = evaluate(pieces, self._setting.region, cell, ray)
        if not (0 < shown < math.inf):
            return ray
        factor = 2.0 * (self._setting.problem.worth.total + 1) / shown
        return DualPoint(ray.slopes * factor, ray.shares, ray.multipliers * factor)

    def _explore(self, node: _Open) -> None:
        """Look for an attack near the relaxed one."""
        if not node.relaxed.feasible:
            return
        spending = node.relaxed.spending[: self._setting.region.real]
        if float(node.pieces.standing(node.relaxed.feeds).sum()) < self.upper:
            self._try(spending)
        rounds = 4 if self.nodes % 16 == 0 else 0
        if rounds:
            self._try(self._adversary.improve(spending, rounds))
        # Feeds that a vertex of the relaxation puts on a threshold may lie a rounding error below it.
        near = np.maximum(0.0, node.pieces.standing(node.relaxed.feeds * (1 + 1e-9)) - node.relaxed.counts)
        if float(near.sum()) < self._grain or self.nodes % 64 == 0:
            steps = self._setting.pieces.steps
            demands = np.array(
                [
                    float(s.thresholds[max(s.reached(float(feed) * (1 + 1e-9)), 1) - 1])
                    for s, feed in zip(steps, node.relaxed.feeds, strict=True)
                ]
            )
            cheapest = self._adversary.reach(demands)
            if cheapest is not None:
                self._try(cheapest)

    def _gaps(self, node: _Open) -> Float[np.ndarray, "groups"]:
        """Return by how much each group's count lies above its envelope at the relaxed attack."""
        return np.maximum(0.0, node.pieces.standing(node.relaxed.feeds) - node.relaxed.counts)

    def _branch(self, node: _Open) -> SplitFeed | SplitSpending | None:
        return self._split_feed(node) or self._split_spending(node)

    def _split_feed(self, node: _Open) -> SplitFeed | None:
        """Split what one inequality is fed; None where no count is off, as long as there are spendings to split."""
        cell, pieces, feeds = node.cell, node.pieces, node.relaxed.feeds
        if not node.relaxed.feasible:
            return None
        gaps, whole = self._gaps(node), bool(np.any(self._free(cell)))
        splittable = cell.stop - cell.start > 1
        best, chosen = -1.0, None
        for owner in np.unique(pieces.owner[splittable]).tolist():
            gap = float(gaps[owner])
            if gap < 0.25 * self._grain and whole:
                continue
            own = np.flatnonzero((pieces.owner == owner) & splittable)
            drops = [
                pieces.steps[p].counts[a] - pieces.steps[p].counts[z - 1]
                for p, a, z in zip(own, cell.start[own], cell.stop[own], strict=True)
            ]
            piece = int(own[int(np.argmax(drops))])
            steps, start, stop = pieces.steps[piece], int(cell.start[piece]), int(cell.stop[piece])
            # Where the function rises farthest above its envelope, a split raises both of the new ones most.
            at, bulge = steps.bulge(start, stop, float(feeds[piece]))
            score = gap + bulge if gap > 1e-6 * self._grain else 0.0
            if score > best:
                at = at or steps.reached(float(feeds[piece]))
                best, chosen = score, SplitFeed(piece, min(max(at, start + 1), stop - 1), Leaf(()), Leaf(()))
        return chosen

    def _split_spending(self, node: _Open) -> SplitSpending | None:
        """Split the integer column whose spending is farthest from a whole number, or else the widest."""
        cell, spending, free = node.cell, node.relaxed.spending, self._free(node.cell)
        if not bool(np.any(free)):
            return None
        off = np.where(free, np.abs(spending - np.round(spending)), 0.0)
        column = int(np.argmax(off if off.max() > 1e-7 else np.where(free, cell.upper - cell.lower, 0.0)))
        at = math.floor(float(spending[column]) + 1e-9)
        if not node.relaxed.feasible:
            at = math.floor((cell.lower[column] + cell.upper[column]) / 2)
        at = min(max(at, math.ceil(cell.lower[column])), math.floor(cell.upper[column]) - 1)
        return SplitSpending(column, at, Leaf(()), Leaf(())) if abs(at) < LARGEST_SPLIT else None

    def _free(self, cell: Cell) -> Bool[np.ndarray, "columns"]:
        """Return the integer columns that may still be split."""
        return self._setting.region.integer & (cell.upper - cell.lower >= 1) & np.isfinite(cell.upper)
