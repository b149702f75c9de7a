"""A bound that does not always get as far as it could."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.collective import Bound, Envelope, Naive, Problem
from localsmooth.collective.search.bound import Worker


@dataclass(frozen=True)
class OutOfTime(Bound):
    """A bound that gets nowhere with more than so many targets, as a search does whose time is up."""

    most: int

    def worker(self, problem: Problem) -> Worker:
        """Return a worker."""
        return (Envelope() if problem.targets.size <= self.most else Naive()).worker(problem)
