"""A thin, typed layer over HiGHS: arrays in, numbers out. Nothing it returns is trusted by a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from jaxtyping import Float

__all__ = ["Basis", "LinearModel", "Solution", "sparse_rows"]


@dataclass(frozen=True, eq=False)
class Basis:
    """Which columns and rows of a solved program are basic, in the solver's own marks."""

    columns: list[Any]
    rows: list[Any]

    def nonbasic(self, row: int) -> bool:
        """Return whether a row is held at one of its bounds."""
        return self.rows[row] != highspy.HighsBasisStatus.kBasic

    def extended(self, rows: int) -> Basis:
        """Return the basis of a program with so many further rows."""
        return Basis(self.columns, [*self.rows, *[highspy.HighsBasisStatus.kBasic] * rows])


@dataclass(frozen=True, eq=False)
class Solution:
    """What the solver said.

    Parameters
    ----------
    feasible
        False where the solver found no point, or refused the program (``duals`` then is a ray that shows that there is
        none, if the solver had one, and zero otherwise).
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


_SECONDS = 10.0


class LinearModel:
    """One warm linear program: minimise cost · x over column and row bounds.

    What the solver refuses (numbers out of its range) leaves no solution, never one of another program. Neither does
    what it cannot finish: over very wide ranges its simplex method may go round in circles for ever.

    Parameters
    ----------
    seconds
        Most time that one solve may take: far more than these small programs need.

    Raises
    ------
    ValueError
        If HiGHS does not know an option.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
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
            if self._solver.setOptionValue(name, value) == highspy.HighsStatus.kError:
                raise ValueError(f"HiGHS does not know its option {name}")
        self._width = self._height = 0
        self._refused: set[str] = set()

    def _note(self, part: str, status: Any) -> None:
        """Remember whether the solver holds a part of the program as it was given."""
        if status == highspy.HighsStatus.kError:
            self._refused.add(part)
        else:
            self._refused.discard(part)

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
        self._width, self._height = width, number
        self._refused.clear()
        status = self._solver.passModel(
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
        self._note("program", status)

    @staticmethod
    def quiet() -> Any:
        """Return a bare solver that prints nothing."""
        return _Quiet()

    def add_rows(self, rows: Float[np.ndarray, "rows columns"], lower: Float[np.ndarray, "rows"]) -> None:
        """Add rows that are bounded below."""
        starts, index, value = _sparse(rows)
        number = len(rows)
        self._height += number
        added = self._solver.addRows(number, lower, np.full(number, np.inf), len(value), starts, index, value)
        if added == highspy.HighsStatus.kError:
            self._refused.add("program")  # rows refused once stay missing

    def bound_rows(self, lower: Float[np.ndarray, "rows"], upper: Float[np.ndarray, "rows"]) -> None:
        """Change the bounds of the first rows."""
        bounds = enumerate(zip(lower.tolist(), upper.tolist(), strict=True))
        statuses = [self._solver.changeRowBounds(row, low, high) for row, (low, high) in bounds]
        error = highspy.HighsStatus.kError
        self._note("row bounds", error if error in statuses else highspy.HighsStatus.kOk)

    def bound_columns(self, lower: Float[np.ndarray, "columns"], upper: Float[np.ndarray, "columns"]) -> None:
        """Change every column's bounds."""
        columns = np.arange(len(lower), dtype=np.int32)
        self._note("column bounds", self._solver.changeColsBounds(len(lower), columns, lower, upper))

    def aim(self, cost: Float[np.ndarray, "columns"]) -> None:
        """Change the objective."""
        self._note("cost", self._solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost))

    @property
    def height(self) -> int:
        """Number of rows."""
        return self._height

    @property
    def basis(self) -> Basis:
        """The basis of the last solution."""
        known = self._solver.getBasis()
        return Basis(list(known.col_status), list(known.row_status))

    def start_from(self, basis: Basis) -> None:
        """Begin the next solve at a basis; one that does not fit is ignored."""
        if len(basis.columns) == self._width and len(basis.rows) == self._height:
            given = highspy.HighsBasis()
            given.col_status, given.row_status, given.valid = basis.columns, basis.rows, True
            self._solver.setBasis(given)  # refused where it does not fit: the solver then starts afresh

    def solve(self) -> Solution:
        """Solve from the last basis."""
        nothing = Solution(False, np.full(self._width, np.nan), np.zeros(self._height))
        # Hundreds of times what a program of this size takes; the clock runs on from solve to solve.
        self._solver.setOptionValue("simplex_iteration_limit", 2000 + 50 * (self._width + self._height))
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + self._seconds)
        if self._refused or self._solver.run() == highspy.HighsStatus.kError:
            return nothing
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            found = self._solver.getSolution()
            return self._checked(Solution(True, np.array(found.col_value), np.array(found.row_dual)), nothing)
        if status == highspy.HighsModelStatus.kInfeasible:
            _, exists, ray = self._solver.getDualRay()
            if exists:
                return self._checked(Solution(False, nothing.columns, np.array(ray, dtype=np.float64)), nothing)
        return nothing

    def _checked(self, solution: Solution, nothing: Solution) -> Solution:
        """Return a solution that fits the program and is finite, or nothing."""
        if len(solution.columns) != self._width or len(solution.duals) != self._height:
            return nothing
        known = bool(np.all(np.isfinite(solution.duals)))
        return solution if known and (not solution.feasible or bool(np.all(np.isfinite(solution.columns)))) else nothing


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
