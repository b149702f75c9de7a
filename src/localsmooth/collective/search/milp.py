"""The mixed-integer program of Schuchardt et al. 2023 (Theorem 4.2), solved by HiGHS: a reference for `Exact`."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import ClassVar

from localsmooth.collective.kernel.answer import Status
from localsmooth.collective.kernel.arrays import Number
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.search.bound import Bound, Outcome, Solver
from localsmooth.collective.search.direct import Claim, ask, polished
from localsmooth.collective.search.envelope import EnvelopeSolver
from localsmooth.collective.search.setting import Setting
from localsmooth.collective.search.tree import Search
from localsmooth.errors import InvalidInputError

__all__ = ["Milp"]


@dataclass(frozen=True)
class Milp(Bound):
    """The direct program: a binary variable per step, which may fall only once its inequality has been fed enough.

    HiGHS's *dual bound* is a claim, made in floating point and up to tolerances; it is handed out as `Answer.claimed`.
    Certified is what can be proven of it: a branch and bound like that of `Exact` takes the claim, rounded up, as its
    goal, and stops as soon as a tree of dual points shows that count. Where it does not get there in time, the answer
    is what it did prove, at least the envelope, with a status that says so.

    With several certificates per output there is a binary variable per output.

    Parameters
    ----------
    bins
        Quantise each inequality's thresholds down into so many steps (the paper's N_bins), None for all thresholds.
        For one certificate per output only.
    time_limit
        Seconds for all budgets together, None for no limit. HiGHS gets half of it, the proof what is left.

    Raises
    ------
    InvalidInputError
        If the number of bins is below 1, or the time limit is negative or NaN.
    """

    name: ClassVar[str] = "milp"
    searches: ClassVar[bool] = True

    bins: int | None = None
    time_limit: Number | None = 60.0

    def __post_init__(self) -> None:
        if self.bins is not None and not (self.bins >= 1 and self.bins == int(self.bins)):
            raise InvalidInputError("bins", f"is {self.bins}", "give a whole number ≥ 1, or None for all thresholds")
        if self.time_limit is not None and not self.time_limit >= 0:
            raise InvalidInputError("time_limit", f"is {self.time_limit}", "give seconds ≥ 0, or None")

    def solver(self, problem: Problem) -> Solver:
        """Return a solver.

        Raises
        ------
        InvalidInputError
            If there are bins, and several certificates per output.
        """
        if self.bins is not None and len(problem.weights) > 1:
            raise InvalidInputError("bins", "needs one certificate per output", "leave it out, or use Exact")
        return _MilpSolver(problem, self.bins)


class _MilpSolver(Solver):
    def __init__(self, problem: Problem, bins: int | None) -> None:
        self._bins, self._envelope = bins, EnvelopeSolver(problem)

    def solve(self, setting: Setting, deadline: float | None) -> Outcome:
        relaxed, points = self._envelope.candidates(setting)
        now = time.perf_counter()
        if deadline is not None and now >= deadline:
            claim = Claim(-math.inf, None, False)
        else:
            claim = ask(setting, self._bins, None if deadline is None else now + 0.5 * (deadline - now))
        known = [] if claim.spending is None else [claim.spending, polished(setting, claim.spending)]
        goal = _goal(claim, setting.grain)
        search = Search(setting, 0.0, deadline, known, relaxed, points, goal)
        search.tell = self.tell
        search.run()
        return Outcome(
            search.lower,
            search.proof(),
            [search.attack],
            search.prices,
            _status(claim, goal, search.lower),
            claim.bound,
        )


def _goal(claim: Claim, grain: float) -> float:
    """Return the whole number of units that a claim amounts to, 0 for none.

    Counts are whole: less than half of one off, a dual bound still rounds up to the same number.
    """
    bound = claim.bound
    slack = 1e-3 * grain * max(1.0, abs(bound) / grain) ** 0.5
    return float(math.ceil(bound - slack)) if math.isfinite(bound) else 0.0


def _status(claim: Claim, goal: float, proven: float) -> Status:
    if not (math.isfinite(proven) and math.ceil(proven) >= goal):
        return Status.UNPROVEN
    return Status.RELAXED if claim.finished else Status.TIME_LIMIT
