"""How far something has come, and when it is time to say so again."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Pace"]


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
