"""How far something has come, and when it is time to say so again."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Pace", "WorkPace"]


class Pace:
    """Counts what is done of a total.

    Parameters
    ----------
    every
        Seconds between two reports, at least; the end is always due.
    clock
        Seconds, monotonic.
    """

    def __init__(self, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self.start(0, 0)

    def start(self, total: int, done: int) -> None:
        """Begin with so many of a total done already."""
        self.total, self.done, self._before = total, done, done
        self._begun = self._told = self._now = self._clock()

    def advance(self, more: int) -> bool:
        """Count some more; whether a report is due."""
        self.done += more
        self._now = self._clock()
        due = self._now - self._told >= self._every or self.done >= self.total
        if due:
            self._told = self._now
        return due

    @property
    def seconds(self) -> float:
        """From the start to what was counted last."""
        return max(self._now - self._begun, 1e-9)

    @property
    def rate(self) -> float:
        """Done per second in that time."""
        return (self.done - self._before) / self.seconds

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate; None if nothing is known."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


class WorkPace:
    """Estimates when work will be done, in passes of the model over an item.

    Parameters
    ----------
    clock
        Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.done = self.total = self._before = 0.0
        self._begun: float | None = None
        self._now = 0.0

    def work(self, done: float, total: float) -> None:
        """Note how much is done of how much; the first call begins."""
        self._now = self._clock()
        if self._begun is None:
            self._begun, self._before = self._now, done
        self.done, self.total = done, total

    @property
    def left(self) -> float | None:
        """Seconds until all is done; None if nothing is known."""
        if self._begun is None or self.done <= self._before or self._now <= self._begun:
            return None
        return (self.total - self.done) * (self._now - self._begun) / (self.done - self._before)

    @property
    def words(self) -> str:
        """How much of how much."""
        return f"{self.done:,.0f} of {self.total:,.0f} passes"
