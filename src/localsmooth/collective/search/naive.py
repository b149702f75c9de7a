"""Every prediction on its own: as if the adversary could spend the whole budget anew on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from localsmooth.collective.kernel.dual import DualPoint, evaluate
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.kernel.proof import Leaf
from localsmooth.collective.search.bound import Bound, Outcome, Solver
from localsmooth.collective.search.setting import Setting

__all__ = ["Naive"]


@dataclass(frozen=True)
class Naive(Bound):
    """Count the targets that no allowed attack can break, each taken on its own."""

    name: ClassVar[str] = "naive"

    def solver(self, problem: Problem) -> Solver:
        """Return a solver."""
        return _NaiveSolver()


class _NaiveSolver(Solver):
    def solve(self, setting: Setting, deadline: float | None) -> Outcome:
        point = DualPoint.idle(setting.pieces, setting.region, setting.cell)
        lower = evaluate(setting.pieces, setting.region, setting.cell, point)
        return Outcome(lower, Leaf((point,)), [], np.zeros(len(setting.region.limits)))
