"""How far a curve has come, for those who wait."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

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
        Targets proven to survive so far, and what the best attack found leaves.
    targets
        Number of targets.
    seconds
        Time spent on the whole curve.
    """

    budget: int
    budgets: int
    lower: int
    upper: int
    targets: int
    seconds: float

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"budget {self.budget} of {self.budgets}: {self.lower} of {self.targets} certified so far, best attack "
            f"leaves {self.upper} (gap {self.upper - self.lower}), {self.seconds:.0f} s"
        )


Tell = Callable[[Progress], None]
"""What is told about progress."""


class Reporter:
    """Passes progress on, at most once in so many seconds: what is over sooner says nothing.

    Parameters
    ----------
    tell
        What is told.
    budgets, targets
        Numbers of budgets and of targets.
    every
        Seconds.
    """

    def __init__(self, tell: Tell, budgets: int, targets: int, every: float = _SECONDS) -> None:
        self._tell, self._budgets, self._targets, self._every = tell, budgets, targets, every
        self._start = self._said = time.perf_counter()

    def report(self, budget: int, lower: float, upper: int) -> None:
        """Note what is proven about a budget, and what the best attack leaves."""
        now = time.perf_counter()
        if now - self._said >= self._every:
            self._said = now
            proven = max(0, math.ceil(min(lower, upper)))
            self._tell(Progress(budget, self._budgets, proven, upper, self._targets, now - self._start))
