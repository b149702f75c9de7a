"""A problem at one of its budgets: everything the bounds need, prepared once."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.collective.kernel.dual import Cell, root_cell
from localsmooth.collective.kernel.problem import Pieces, Problem
from localsmooth.collective.kernel.region import Region, Supports, region_at
from localsmooth.collective.search.supports import supports

__all__ = ["Setting", "setting_at"]

_FINEST = 1e-9


@dataclass(frozen=True, eq=False)
class Setting:
    """One budget of a problem.

    Parameters
    ----------
    problem
        The problem with all its budgets.
    index
        Which budget this is.
    region
        What the adversary may spend.
    supports
        The most that each inequality can be fed, with proof.
    pieces
        The inequalities and their step functions.
    cell
        The adversary's whole set.
    """

    problem: Problem
    index: int
    region: Region
    supports: Supports
    pieces: Pieces
    cell: Cell

    @property
    def grain(self) -> float:
        """The least difference between two counts that a search tells apart, in units of value.

        That is one unit, where the whole is few enough of them: counts are whole, and the last one is found by rounding
        up. Where values have no common measure, units are as small as rounding errors.
        """
        return max(1.0, _FINEST * self.problem.worth.total)


def setting_at(problem: Problem, index: int) -> Setting:
    """Prepare one budget."""
    region = region_at(problem.constraints, index, problem.column_enough)
    held = supports(problem.pieces.weights, region)
    pieces = problem.pieces_under(held.values)
    return Setting(problem, index, region, held, pieces, root_cell(pieces, region, held.values))
