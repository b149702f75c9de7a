"""How far a curve has come, for those who wait."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from localsmooth.collective.kernel.worth import Worth

__all__ = ["Progress", "Reporter", "Tell"]

_SECONDS = 2.0


@dataclass(frozen=True)
class Progress:
    """What is known about the budget that is being solved.

    Parameters
    ----------
    budget, budgets
        Which one it is, counted from 1 in the order in which they are solved, and how many there are.
    lower, upper
        Targets (or their values) proven to survive so far, and what the best attack found leaves.
    targets
        Number of targets, or the sum of their values.
    seconds
        Time spent on the whole curve.
    """

    budget: int
    budgets: int
    lower: int | float
    upper: int | float
    targets: int | float
    seconds: float

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"budget {self.budget} of {self.budgets}: {self.lower:.10g} of {self.targets:.10g} certified so far, best "
            f"attack leaves {self.upper:.10g} (gap {self.upper - self.lower:.10g}), {self.seconds:.0f} s"
        )


Tell = Callable[[Progress], None]
"""What is told about progress."""


class Reporter:
    """Passes progress on, at most once in so many seconds: what is over sooner says nothing.

    Parameters
    ----------
    tell
        What is told.
    budgets
        Number of budgets.
    worth
        What all targets count.
    every
        Seconds.
    """

    def __init__(self, tell: Tell, budgets: int, worth: Worth, every: float = _SECONDS) -> None:
        self._tell, self._budgets, self._worth, self._every = tell, budgets, worth, every
        self._start = self._said = time.perf_counter()

    def report(self, budget: int, lower: float, upper: int) -> None:
        """Note what is proven about a budget, and what the best attack leaves, in units of value."""
        now = time.perf_counter()
        if now - self._said >= self._every:
            self._said = now
            proven, worth = max(0, math.ceil(min(lower, upper))), self._worth
            values = worth.least(proven), worth.most(upper), worth.most(worth.total)
            self._tell(Progress(budget, self._budgets, *values, now - self._start))
