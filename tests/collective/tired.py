"""A bound that does not always get as far as it could."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.collective import Bound, Envelope, Naive, Problem
from localsmooth.collective.search.bound import Solver


@dataclass(frozen=True)
class OutOfTime(Bound):
    """A bound that gets nowhere with more than so many targets, as a search does whose time is up."""

    most: int

    def solver(self, problem: Problem) -> Solver:
        """Return a solver."""
        return (Envelope() if problem.targets.size <= self.most else Naive()).solver(problem)
