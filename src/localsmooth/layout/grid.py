"""Regular grids over any number of spatial axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError, require_number, require_several, require_whole_number
from localsmooth.layout.layout import Layout
from localsmooth.layout.levels import (
    Interpolation,
    Metric,
    Reach,
    chebyshev,
    distance_levels,
    farthest_of_grid,
    linear,
)
from localsmooth.layout.locality import masked, windowed
from localsmooth.layout.partition import Partition

__all__ = ["Grid", "GridLayout", "LayoutRecipe", "grid_layout"]

_MOST_CELLS = 16384  # the level matrix has a number for each two of them


@dataclass(frozen=True)
class Grid:
    """A regular grid of cells; element i of an axis of n elements cut into c cells lies in cell ⌊i·c/n⌋.

    Parameters
    ----------
    cells
        Number of cells along each spatial axis, for example (3, 5) for 3 rows of 5 cells.

    Raises
    ------
    InvalidInputError
        If an axis has no cell, or there are too many cells.
    """

    cells: tuple[int, ...]

    def __post_init__(self) -> None:
        require_several("cells", self.cells, "numbers of cells, one for each spatial axis")
        for number in self.cells if len(self.cells) else (0,):
            require_whole_number("cells", number, 1, "Pass at least one cell along every axis")
        if self.count > _MOST_CELLS:
            raise InvalidInputError(
                "cells",
                f"{self.count} cells, each with a level of its own for every other",
                f"Use at most {_MOST_CELLS}",
            )

    @property
    def count(self) -> int:
        """Number of cells."""
        return math.prod(self.cells)

    def positions(self) -> Int[np.ndarray, "cells axes"]:
        """Integer coordinates of each cell, in the order of the group numbers."""
        axes = np.meshgrid(*(np.arange(c) for c in self.cells), indexing="ij")
        return np.stack([a.ravel() for a in axes], axis=-1)

    def partition(self, shape: tuple[int, ...]) -> Partition:
        """Cut an array of this shape into the grid's cells.

        Raises
        ------
        InvalidInputError
            If the shape has another number of axes, or fewer elements than cells along one.
        """
        if len(shape) != len(self.cells):
            raise InvalidInputError(
                "cells",
                f"a grid over {len(self.cells)} axes cannot cut a shape {shape}",
                "Give one number of cells per spatial axis",
            )
        labels = np.zeros((), dtype=np.int32)
        for size, cells in zip(shape, self.cells, strict=True):
            if size < cells:
                raise InvalidInputError(
                    "cells", f"{cells} cells along an axis of {size} elements", "Use at most one cell per element"
                )
            labels = labels[..., None] * cells + np.arange(size, dtype=np.int64) * cells // size
        return Partition(labels.astype(np.int32))


@runtime_checkable
class LayoutRecipe(Protocol):
    """Makes the layout for one item from the shapes alone, so that items of different sizes can share a rule."""

    def layout(self, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> Layout:
        """Make the layout.

        Parameters
        ----------
        input_shape
            Whole shape of one item, channels included.
        output_shape
            Shape of the model's predictions for one item.
        """
        ...


@dataclass(frozen=True, eq=False)
class GridLayout:
    """A rule: the same grid over inputs and outputs, with levels that grow with the distance between cells.

    Parameters
    ----------
    cells
        Number of cells along each spatial axis; (1, 1) is isotropic smoothing.
    minimum, maximum
        Level in a cell itself and at the farthest cell; a tuple for noise with several parameters.
    levels
        A level matrix to use instead of the distance rule.
    metric, reach, interpolation
        See `distance_levels`.
    mask_beyond
        Hide inputs farther than this many elements from the cell (see `masked`); None to hide nothing.
    window_margin
        Evaluate the model on the cell plus this margin only (see `windowed`); None for the whole input.
    window_align
        Windows start and end at multiples of this many elements (a model's stride).

    Raises
    ------
    InvalidInputError
        Naming `cells`, `minimum` or `maximum`, if they are no such numbers.
    """

    cells: tuple[int, ...]
    minimum: float | tuple[float, ...]
    maximum: float | tuple[float, ...]
    levels: Float[np.ndarray, "cells cells *parameters"] | None = None
    metric: Metric = chebyshev
    reach: Reach = farthest_of_grid
    interpolation: Interpolation = linear
    mask_beyond: int | None = None
    window_margin: int | None = None
    window_align: int = 1

    def __post_init__(self) -> None:
        Grid(self.cells)
        for field in ("minimum", "maximum"):
            given = getattr(self, field)
            for level in given if isinstance(given, tuple) else (given,):
                require_number(field, level, "Pass a noise level, or a tuple for noise with several parameters")

    def layout(self, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> Layout:
        """Make the layout for one item; leading axes of the input beyond the grid's are channels."""
        made = grid_layout(
            self.cells,
            input_shape[len(input_shape) - len(self.cells) :],
            output_shape,
            minimum=self.minimum,
            maximum=self.maximum,
            levels=self.levels,
            metric=self.metric,
            reach=self.reach,
            interpolation=self.interpolation,
        )
        if self.mask_beyond is not None:
            made = masked(made, self.mask_beyond)
        if self.window_margin is not None:
            made = windowed(made, self.window_margin, align=self.window_align)
        return made


def grid_layout(
    cells: tuple[int, ...],
    input_shape: tuple[int, ...],
    output_shape: tuple[int, ...] | None = None,
    *,
    minimum: float | tuple[float, ...],
    maximum: float | tuple[float, ...],
    levels: Float[np.ndarray, "cells cells *parameters"] | None = None,
    metric: Metric = chebyshev,
    reach: Reach = farthest_of_grid,
    interpolation: Interpolation = linear,
) -> Layout:
    """Cut inputs and outputs by the same grid and let the level grow with the distance between cells.

    Parameters
    ----------
    cells
        Number of cells along each spatial axis.
    input_shape, output_shape
        Spatial shapes; they may differ (a model with an output stride). The output shape defaults to the input's.
    minimum, maximum
        Level in a cell itself and at the farthest cell; a tuple for noise with several parameters.
    levels
        A level matrix to use instead of the distance rule.
    metric, reach, interpolation
        See `distance_levels`.

    Raises
    ------
    InvalidInputError
        If smallest and largest levels differ in length, or the grid does not fit the shapes.
    """
    grid = Grid(tuple(cells))
    if levels is None:
        lows, highs = np.atleast_1d(minimum), np.atleast_1d(maximum)
        if lows.shape != highs.shape:
            raise InvalidInputError(
                "levels", "minimum and maximum differ in length", "Give as many of one as the other"
            )
        parameters = [
            distance_levels(
                grid.positions(), float(low), float(high), metric=metric, reach=reach, interpolation=interpolation
            )
            for low, high in zip(lows, highs, strict=True)
        ]
        levels = np.stack(parameters, axis=-1) if isinstance(minimum, tuple) else parameters[0]
    outputs = input_shape if output_shape is None else output_shape
    return Layout(grid.partition(tuple(outputs)), grid.partition(tuple(input_shape)), levels)
