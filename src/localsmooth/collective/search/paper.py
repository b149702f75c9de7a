"""The linear program of Schuchardt et al. 2023 (Section 5), with its indicator variables projected out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from localsmooth.collective.kernel.dual import DualPoint, evaluate
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.search.bound import Bound, RelaxationSolver, Solver
from localsmooth.collective.search.minorant import ReciprocalLines
from localsmooth.collective.search.setting import Setting

__all__ = ["LinearProgram"]


@dataclass(frozen=True)
class LinearProgram(Bound):
    """The relaxed collective certificate of Schuchardt et al. 2023: same value, N_in + N_out variables.

    Every relaxed indicator t_n ≥ 1 − W·b/η_n takes its smallest value, so a group counts Σ_n max(0, 1 − s/η_n).
    """

    name: ClassVar[str] = "lp"

    def solver(self, problem: Problem) -> Solver:
        """Return a solver."""
        return _PaperSolver()


class _PaperSolver(RelaxationSolver):
    def __init__(self) -> None:
        self._paper = ReciprocalLines()
        super().__init__(self._paper)

    def value(self, setting: Setting, point: DualPoint) -> float:
        """Return the value of the linear program at a dual point, and no more than what the point proves."""
        proven = evaluate(setting.pieces, setting.region, setting.cell, point)
        if not np.isfinite(proven):
            return proven
        surplus = 0.0
        for piece, steps in enumerate(setting.pieces.steps):
            share, slope = float(point.shares[piece]), min(0.0, float(point.slopes[piece]))
            stop = int(setting.cell.stop[piece])
            envelope = steps.lowest(0, stop, slope, share)[1]
            # The step function lies above the linear program's: what the same numbers prove is never less.
            surplus += max(0.0, envelope - self._paper.conjugate(steps, stop, share, slope))
        return proven - surplus
