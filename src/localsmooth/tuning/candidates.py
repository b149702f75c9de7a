"""What may be chosen: layouts with their levels, isotropic noise always among them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.layout import GridLayout, Layout, LayoutRecipe

__all__ = ["Candidate", "grid_candidates", "isotropic_candidates", "number"]

Changes = Mapping[str, Mapping[str, object]]
"""Keys of a file's sections, by section; None for a key that is left out."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way to smooth.

    Parameters
    ----------
    name
        What tables call it; no other candidate's.
    layout
        Groups and levels, or the rule that makes them for items of any size.
    isotropic
        Whether all outputs share one distribution of one level.
    changes
        What a configuration file says for it.
    origins
        `item_digest` of what its levels were fitted on; the layout itself remembers nothing, so that it can be tried on
        these very items, which it must not certify.
    """

    name: str
    layout: Layout | LayoutRecipe
    isotropic: bool = False
    changes: Changes = field(default_factory=dict[str, Mapping[str, object]])
    origins: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        require_kind("name", self.name, str)
        require_kind("layout", self.layout, Layout, LayoutRecipe)


def isotropic_candidates(levels: Sequence[float | int], axes: int = 2) -> list[Candidate]:
    """Isotropic noise of several levels.

    Parameters
    ----------
    levels
        The levels.
    axes
        Number of spatial axes.
    """
    cells = (1,) * axes
    return [
        Candidate(f"isotropic {number(level)}", GridLayout(cells, level, level), isotropic=True) for level in levels
    ]


def grid_candidates(
    levels: Sequence[float | int],
    *,
    cells: Sequence[Sequence[int]] = ((2, 2), (3, 4)),
    ratios: Sequence[float | int] = (1.5, 2.5, 4.0),
    margins: Sequence[int | None] = (None,),
    align: int = 1,
    most: float = math.inf,
) -> list[Candidate]:
    """Isotropic noise of each level, and on each grid noise of each level that grows by each ratio.

    Parameters
    ----------
    levels
        Levels in an output's own cell, ascending.
    cells
        Grids: numbers of cells along each spatial axis.
    ratios
        Level in the farthest cell over that in the own one.
    margins
        Windows: elements around a cell that its model calls see; None shows all.
    align
        Windows start and end at multiples of this.
    most
        Levels are not larger.

    Raises
    ------
    InvalidInputError
        If there are no levels, or they are not positive and finite.
    """
    own = np.unique(np.asarray(levels, dtype=np.float64)).tolist()
    if not own or not all(0 < level < math.inf for level in own):
        raise InvalidInputError("levels", f"got {list(levels)}", "Pass positive levels")
    if not cells or not all(ratio >= 1 for ratio in ratios):
        raise InvalidInputError("cells, ratios", f"got {cells} and {ratios}", "Pass grids, and ratios of at least 1")
    made = isotropic_candidates(own, len(cells[0]))
    for grid in (tuple(grid) for grid in cells if math.prod(grid) > 1):
        for margin in margins:
            seen = "" if margin is None else f", windows {margin}"
            for level in own:
                for far in dict.fromkeys(min(level * ratio, most) for ratio in ratios):
                    made.append(
                        Candidate(
                            f"{'×'.join(map(str, grid))} {number(level)} … {number(far)}{seen}",
                            GridLayout(grid, level, far, window_margin=margin, window_align=align),
                        )
                    )
    return made


def number(value: float) -> str:
    """A level in as few digits as tell it from its neighbours."""
    return f"{value:.4g}"
