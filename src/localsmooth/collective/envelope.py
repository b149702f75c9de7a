"""The convex envelope of each group's step function, minimised over one shared attack."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.collective.bound import Bound, RelaxationWorker, Worker
from localsmooth.collective.minorant import EnvelopeLines
from localsmooth.collective.problem import Problem

__all__ = ["Envelope"]


@dataclass(frozen=True)
class Envelope(Bound):
    """The largest convex function below each group's count, so the strongest bound of its kind.

    It dominates the linear program of Schuchardt et al. 2023, whose relaxation projects to another convex function
    below the same count, at a cost that does not grow with the number of outputs.
    """

    def worker(self, problem: Problem) -> Worker:
        """Return a worker."""
        return RelaxationWorker(EnvelopeLines())
