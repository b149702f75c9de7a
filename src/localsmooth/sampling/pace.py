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
        self._begun = self._told = self._clock()

    def advance(self, more: int) -> bool:
        """Count some more; whether a report is due."""
        self.done += more
        now = self._clock()
        due = now - self._told >= self._every or self.done >= self.total
        if due:
            self._told = now
        return due

    @property
    def seconds(self) -> float:
        """Since the start."""
        return max(self._clock() - self._begun, 1e-9)

    @property
    def rate(self) -> float:
        """Done per second since the start."""
        return (self.done - self._before) / self.seconds

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate; None if nothing is known."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None
