"""The convex envelope of each group's step function, minimised over one shared attack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from localsmooth.collective.kernel.dual import DualPoint
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.search.bound import Bound, RelaxationSolver, Solver
from localsmooth.collective.search.minorant import EnvelopeLines, ReciprocalLines
from localsmooth.collective.search.relaxation import Relaxed
from localsmooth.collective.search.setting import Setting

__all__ = ["Envelope", "EnvelopeSolver"]

_WIDE = 1e9


@dataclass(frozen=True)
class Envelope(Bound):
    """The largest convex function below each group's count, so the strongest bound of its kind.

    It dominates the linear program of Schuchardt et al. 2023, whose relaxation projects to another convex function
    below the same count, at a cost that does not grow with the number of outputs.
    """

    name: ClassVar[str] = "envelope"

    def solver(self, problem: Problem) -> Solver:
        """Return a solver."""
        return EnvelopeSolver(problem)


class EnvelopeSolver(RelaxationSolver):
    """The envelope, and a second opinion where the solver's word for its optimum is worth less than usual.

    A relaxation's value is whatever its dual numbers prove. Over very wide ranges, or with several certificates per
    output, they may come from a solution that is not quite optimal; then those of the weaker linear program, which hold
    for the step functions themselves, are tried as well.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(EnvelopeLines())
        doubtful = len(problem.weights) > 1 or _spread(problem) > _WIDE
        self._second = RelaxationSolver(ReciprocalLines()) if doubtful else None

    def candidates(self, setting: Setting) -> tuple[Relaxed, list[DualPoint]]:
        """Return the relaxation of a budget and the dual points that may bound it, its own first."""
        relaxed, points = super().candidates(setting)
        if self._second is not None:
            points.append(self._second.relax(setting).point)
        return relaxed, points


def _spread(problem: Problem) -> float:
    """Return the widest ratio between two weights, two thresholds, or two coefficients of the threat."""
    widest = 1.0
    ends = np.array(
        [end for steps in problem.pieces.steps for end in steps.thresholds[[1, -1] if len(steps) > 1 else []]]
    )
    for part in (problem.weights, ends, np.abs(problem.constraints.rows)):
        used = part[(part > 0) & np.isfinite(part)]
        if used.size:
            with np.errstate(over="ignore"):
                widest = max(widest, float(used.max() / used.min()))
    return widest
