"""The optimum, by branch and bound, or as close to it as the gap and the time allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.answer import Status
from localsmooth.collective.kernel.arrays import Number
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.search.bound import Bound, Outcome, Solver
from localsmooth.collective.search.envelope import EnvelopeSolver
from localsmooth.collective.search.setting import Setting
from localsmooth.collective.search.tree import Search
from localsmooth.errors import InvalidInputError

__all__ = ["Exact"]


@dataclass(frozen=True)
class Exact(Bound):
    """Branch and bound from the envelope's root; whenever it stops, its bound is proven.

    Parameters
    ----------
    gap
        Targets (or value) by which the certified count may fall short of the best attack found; 0 asks for the optimum.
        Values without a common measure (whose sum is more than 10⁹ of their largest common unit) have sums as close as
        rounding errors: then a gap of 10⁻⁹ of the sum is always allowed, and the answer says that it is within a gap.
    time_limit
        Seconds for all budgets together, None for no limit.

    Raises
    ------
    InvalidInputError
        If the gap or the time limit is negative or NaN.
    """

    name: ClassVar[str] = "exact"
    searches: ClassVar[bool] = True

    gap: Number = 0
    time_limit: Number | None = 60.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.gap) and self.gap >= 0):
            raise InvalidInputError("gap", f"is {self.gap}", "give a number of targets ≥ 0")
        if self.time_limit is not None and not self.time_limit >= 0:
            raise InvalidInputError("time_limit", f"is {self.time_limit}", "give seconds ≥ 0, or None")

    def solver(self, problem: Problem) -> Solver:
        """Return a solver."""
        return _ExactSolver(problem, float(self.gap) / float(problem.worth.unit))


class _ExactSolver(Solver):
    def __init__(self, problem: Problem, gap: float) -> None:
        self._gap, self._envelope = gap, EnvelopeSolver(problem)
        self._last: list[Float[np.ndarray, "columns"]] = []

    def solve(self, setting: Setting, deadline: float | None) -> Outcome:
        # The search starts from what the envelope proves, so that no time limit leaves it with less.
        relaxed, points = self._envelope.candidates(setting)
        search = Search(setting, self._gap, deadline, self._last, relaxed, points)
        search.tell = self.tell
        search.run()
        self._last = [search.attack]
        if search.settled:
            status = Status.WITHIN_GAP
        else:
            status = Status.TIED if search.stuck and not search.open else Status.TIME_LIMIT
        return Outcome(search.lower, search.proof(), [search.attack], search.prices, status)
