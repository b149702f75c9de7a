"""The contract of every collective bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.answer import Status
from localsmooth.collective.kernel.arrays import Number
from localsmooth.collective.kernel.dual import DualPoint, evaluate
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.kernel.proof import Leaf, Node
from localsmooth.collective.search.linear_program import Basis
from localsmooth.collective.search.minorant import Minorant
from localsmooth.collective.search.relaxation import Line, Relaxation, Relaxed
from localsmooth.collective.search.setting import Setting

__all__ = ["Bound", "Outcome", "RelaxationSolver", "Solver"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a bound found at one budget.

    Parameters
    ----------
    lower
        A proven bound, in units of the problem's values (`Problem.worth`): targets, where each counts 1.
    root
        The dual points that prove it, or at least as much.
    attacks
        Spendings worth evaluating as attacks; they need not respect the threat exactly.
    prices
        Row multipliers of the relaxation.
    status
        How the bound ended.
    claimed
        What a solver claims without proof, in the same units, for comparison.
    """

    lower: float
    root: Node
    attacks: list[Float[np.ndarray, "columns"]]
    prices: Float[np.ndarray, "rows"]
    status: Status = Status.RELAXED
    claimed: float | None = None


class Solver(ABC):
    """A bound at work on one problem; it keeps what one budget teaches for the next."""

    tell: Callable[[float, int], None] | None = None
    """Told, again and again, what is proven and how many units the best attack leaves."""

    @abstractmethod
    def solve(self, setting: Setting, deadline: float | None) -> Outcome:
        """Bound one budget.

        Parameters
        ----------
        setting
            The budget.
        deadline
            Value of ``time.perf_counter`` by which to return the best bound proven so far.
        """


class Bound(ABC):
    """A way to bound the collective problem from below.

    `Naive` ≤ `LinearProgram` ≤ `Envelope` ≤ `Exact`, in strength and in cost.
    """

    name: ClassVar[str]
    """Name in configuration files and results; what has none of its own is called by its class."""

    searches: ClassVar[bool] = False
    """Whether it looks for exact answers, for seconds or more, where relaxations take milliseconds."""

    time_limit: Number | None = None
    """Seconds for the whole curve, None for no limit."""

    @abstractmethod
    def solver(self, problem: Problem) -> Solver:
        """Return a solver for a problem."""


class RelaxationSolver(Solver):
    """Solves one convex relaxation per budget; lines and bases stay from budget to budget while they hold."""

    def __init__(self, minorant: Minorant) -> None:
        self._minorant = minorant
        self._lines: tuple[Line, ...] = ()
        self._basis: Basis | None = None
        self._ceilings: Float[np.ndarray, "pieces"] | None = None
        self._feeds: Float[np.ndarray, "pieces"] | None = None

    def relax(self, setting: Setting) -> Relaxed:
        """Solve the relaxation at a budget."""
        ceilings = setting.cell.ceiling
        several = len(setting.problem.weights) > 1
        # A line lies below the function up to the ceiling it was made for; beyond it, the function falls further.
        if several or self._ceilings is None or bool(np.any(ceilings > self._ceilings)):
            self._lines, self._basis = (), None
        guess = None
        if self._feeds is not None and self._ceilings is not None:
            # The best attack keeps its shape from one budget to the next, more or less.
            known = (self._ceilings > 0) & np.isfinite(self._ceilings) & np.isfinite(ceilings)
            ratio = np.divide(ceilings, self._ceilings, out=np.ones(len(ceilings)), where=known)
            guess = np.nan_to_num(self._feeds * ratio)
        self._ceilings = ceilings
        relaxed = Relaxation(setting).solve(
            setting.pieces, setting.cell, self._minorant, self._lines, self._basis, guess
        )
        self._feeds = relaxed.feeds
        self._lines, self._basis = relaxed.lines, relaxed.basis
        return relaxed

    def candidates(self, setting: Setting) -> tuple[Relaxed, list[DualPoint]]:
        """Return the relaxation of a budget and the dual points that may bound it, its own first."""
        relaxed = self.relax(setting)
        return relaxed, [relaxed.point]

    def solve(self, setting: Setting, deadline: float | None) -> Outcome:
        """Bound one budget by the best of the relaxation and the naive bound."""
        relaxed, points = self.candidates(setting)
        values = [self.value(setting, point) for point in points]
        idle = DualPoint.idle(setting.pieces, setting.region, setting.cell)
        points.append(idle)
        values.append(evaluate(setting.pieces, setting.region, setting.cell, idle))
        best = int(np.argmax(values))
        return Outcome(
            values[best],
            Leaf((points[best],)),
            [relaxed.spending[: setting.region.real]],
            relaxed.point.multipliers,
        )

    def value(self, setting: Setting, point: DualPoint) -> float:
        """Return what a dual point proves."""
        return evaluate(setting.pieces, setting.region, setting.cell, point)
