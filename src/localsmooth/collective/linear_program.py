"""A thin, typed layer over HiGHS: arrays in, numbers out. Nothing it returns is trusted by a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from jaxtyping import Float

__all__ = ["LinearModel", "Solution", "sparse_rows"]


@dataclass(frozen=True, eq=False)
class Solution:
    """What the solver said.

    Parameters
    ----------
    feasible
        False where the solver found no point (``duals`` then is a ray that shows it, if the solver had one).
    columns
        Primal values.
    duals
        Row duals; ≥ 0 for rows bounded below, ≤ 0 for rows bounded above, in a minimisation.
    """

    feasible: bool
    columns: Float[np.ndarray, "columns"]
    duals: Float[np.ndarray, "rows"]


class _Quiet(highspy.Highs):
    """A solver that keeps its banner off standard output, where answers go; it runs no callbacks."""

    def enableCallbacks(self) -> None:  # noqa: N802 (the solver's own name; called while it is being made)
        self.setOptionValue("output_flag", False)


class LinearModel:
    """One warm linear program: minimise cost · x over column and row bounds."""

    def __init__(self) -> None:
        self._solver: Any = _Quiet()
        # The number of threads stays unset: HiGHS keeps one pool per process and refuses to run with another number.
        for name, value in {
            "output_flag": False,
            "parallel": "off",
            "presolve": "off",
            "primal_feasibility_tolerance": 1e-9,
            "dual_feasibility_tolerance": 1e-9,
            "small_matrix_value": 1e-12,
        }.items():
            self._solver.setOptionValue(name, value)

    def load(
        self,
        cost: Float[np.ndarray, "columns"],
        lower: Float[np.ndarray, "columns"],
        upper: Float[np.ndarray, "columns"],
        rows: Float[np.ndarray, "rows columns"],
        row_lower: Float[np.ndarray, "rows"],
        row_upper: Float[np.ndarray, "rows"],
    ) -> None:
        """Replace the whole program."""
        number, width = rows.shape
        starts, index, value = _sparse(rows)
        self._solver.passModel(
            width,
            number,
            len(value),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            cost,
            lower,
            upper,
            row_lower,
            row_upper,
            starts,
            index,
            value,
            np.zeros(width, dtype=np.int32),
        )

    @staticmethod
    def quiet() -> Any:
        """Return a bare solver that prints nothing."""
        return _Quiet()

    @classmethod
    def over_region(
        cls, rows: Float[np.ndarray, "rows columns"], limits: Float[np.ndarray, "rows"], upper: Float[np.ndarray, "c"]
    ) -> LinearModel:
        """Return the model of a threat's set alone, without an objective."""
        width = rows.shape[1]
        below = np.full(len(limits), -np.inf)
        model = cls()
        model.load(np.zeros(width), np.zeros(width), upper, rows, below, limits)
        return model

    def maximise(self, weights: Float[np.ndarray, "columns"]) -> Float[np.ndarray, "rows"] | None:
        """Maximise weights · x and return the rows' multipliers y ≥ 0, or None where there is no optimum."""
        size = float(np.max(np.abs(weights), initial=0.0)) or 1.0
        self.aim(-weights / size)
        solution = self.solve()
        return np.maximum(0.0, -solution.duals * size) if solution.feasible else None

    def add_rows(self, rows: Float[np.ndarray, "rows columns"], lower: Float[np.ndarray, "rows"]) -> None:
        """Add rows that are bounded below."""
        starts, index, value = _sparse(rows)
        number = len(rows)
        self._solver.addRows(number, lower, np.full(number, np.inf), len(value), starts, index, value)

    def bound_rows(self, lower: Float[np.ndarray, "rows"], upper: Float[np.ndarray, "rows"]) -> None:
        """Change the bounds of the first rows."""
        for row, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
            self._solver.changeRowBounds(row, low, high)

    def bound_columns(self, lower: Float[np.ndarray, "columns"], upper: Float[np.ndarray, "columns"]) -> None:
        """Change every column's bounds."""
        self._solver.changeColsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)

    def aim(self, cost: Float[np.ndarray, "columns"]) -> None:
        """Change the objective."""
        self._solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)

    def solve(self) -> Solution:
        """Solve from the last basis."""
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            found = self._solver.getSolution()
            return Solution(True, np.array(found.col_value), np.array(found.row_dual))
        duals = np.zeros(self._solver.getNumRow())
        if status == highspy.HighsModelStatus.kInfeasible:
            _, exists, ray = self._solver.getDualRay()
            if exists:
                duals = np.array(ray, dtype=np.float64)
        return Solution(False, np.full(self._solver.getNumCol(), np.nan), duals)


def sparse_rows(
    entries: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, "nonzeros"]]:
    """Return row starts, column indices and values of rows given as (indices, values)."""
    starts = np.concatenate([[0], np.cumsum([len(index) for index, _ in entries])[:-1]]).astype(np.int32)
    index = np.concatenate([index for index, _ in entries]).astype(np.int32)
    return starts, index, np.concatenate([value for _, value in entries]).astype(np.float64)


def _sparse(
    rows: Float[np.ndarray, "rows columns"],
) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, "nonzeros"]]:
    """Return row starts, column indices and values of the nonzeros."""
    where, index = np.nonzero(rows)
    starts = np.searchsorted(where, np.arange(len(rows))).astype(np.int32)
    return starts, index.astype(np.int32), rows[where, index]
