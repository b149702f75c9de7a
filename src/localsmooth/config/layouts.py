"""The sections that say how inputs and outputs are cut into groups."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from localsmooth.config.data import DataSection
from localsmooth.config.faults import ConfigurationError
from localsmooth.config.noises import NoiseSection
from localsmooth.config.section import AnyOf, ExistingPath, Section, value_of
from localsmooth.datasets import ItemSet
from localsmooth.layout import (
    GridLayout,
    Layout,
    LayoutRecipe,
    chebyshev,
    euclidean,
    farthest_of_each_cell,
    farthest_of_grid,
    linear,
    linear_in_variance,
)
from localsmooth.locality import read_levels, require_unseen
from localsmooth.registry import Registry

__all__ = [
    "INTERPOLATIONS",
    "LAYOUT_SECTIONS",
    "REACHES",
    "AnyLayout",
    "GridLayoutSection",
    "LayoutSection",
    "one_level",
]

INTERPOLATIONS = {"linear": linear, "variance": linear_in_variance}
"""How levels grow with the distance, by name."""
REACHES = {"grid": farthest_of_grid, "cell": farthest_of_each_cell}
"""At which distance they are largest, by name."""
_METRICS = {"chebyshev": chebyshev, "euclidean": euclidean}


class LayoutSection(Section):
    """Base of the sections of layouts; each has a key `kind`, which the kind of data fills in where it is left out."""

    @property
    @abstractmethod
    def groups(self) -> int:
        """Number of output groups, at most."""

    @abstractmethod
    def build(self, noise: NoiseSection, data: DataSection | None = None) -> Layout | LayoutRecipe:
        """Make the layout, or the rule for items of any size.

        Parameters
        ----------
        noise
            The section with the levels that are spread.
        data
            The section of what is laid out.
        """

    def isotropic(self) -> Mapping[str, object] | None:
        """Keys that make one group of it, where `localsmooth tune` is to choose among such layouts; None removes a key.

        Returns
        -------
        Mapping[str, object] | None
            None for layouts that are not tuned from files.
        """
        return None

    def tried(self, cells: list[list[int]] | None, margins: list[int] | None) -> list[tuple[str, Mapping[str, object]]]:
        """Groups that `localsmooth tune` is to try, beside one: a name with `{}` for the levels, and the keys.

        Parameters
        ----------
        cells, margins
            `cells` and `window_margins` of the section [tune].

        Raises
        ------
        ConfigurationError
            If these are not of such a layout.
        """
        del cells, margins
        return []

    def require_unseen(self, items: ItemSet) -> None:
        """Refuse items that the layout depends on; a layout that remembers them itself is refused with them anyway.

        Parameters
        ----------
        items
            What is certified.
        """


def one_level(noise: NoiseSection) -> tuple[float, float]:
    """Levels of a noise that has one level for each input.

    Raises
    ------
    ConfigurationError
        If it has several.
    """
    smallest, largest = noise.levels()
    if isinstance(smallest, tuple) or isinstance(largest, tuple):
        raise ConfigurationError("noise.distribution: this layout takes noise of one level. Use gaussian, say.")
    return smallest, largest


class GridLayoutSection(LayoutSection):
    """How inputs and outputs are cut into cells and how the level grows between them."""

    kind: Literal["grid"] = "grid"
    cells: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """Number of cells along each spatial axis; [1, 1] is isotropic smoothing."""
    levels: ExistingPath | None = None
    """Level matrix, cells × cells, to use instead of the distance rule: a .npy array (inf hides a cell), or the .npz
    file that `localsmooth locality` wrote, which refuses to certify items that it was fitted on."""
    metric: Literal["chebyshev", "euclidean"] = "chebyshev"
    """Distance between cells."""
    interpolation: Literal["linear", "variance"] = "linear"
    """Whether the level or its square grows linearly."""
    reach: Literal["grid", "cell"] = "grid"
    """Whether the largest level is reached at the grid's largest distance or at each cell's own."""
    mask_beyond: int | None = Field(default=None, ge=0)
    """Hide inputs farther than this many elements from an output's cell; cells are split along what is hidden."""
    window_margin: int | None = Field(default=None, ge=0)
    """Run the model on each cell and this many elements around it only; cells are split along the windows' borders."""
    window_align: int = Field(default=1, ge=1)
    """Windows start and end at multiples of this, the model's stride."""

    @property
    def groups(self) -> int:
        """Number of cells."""
        return math.prod(self.cells)

    def build(self, noise: NoiseSection, data: DataSection | None = None) -> GridLayout:
        """Make the rule that lays out items of any size.

        Parameters
        ----------
        noise
            The section with the levels that the rule spreads.
        data
            Not looked at.
        """
        del data
        minimum, maximum = noise.levels()
        return GridLayout(
            cells=tuple(self.cells),
            minimum=minimum,
            maximum=maximum,
            levels=None if self.levels is None else read_levels(self.levels).levels,
            metric=_METRICS[self.metric],
            interpolation=INTERPOLATIONS[self.interpolation],
            reach=REACHES[self.reach],
            mask_beyond=self.mask_beyond,
            window_margin=self.window_margin,
            window_align=self.window_align,
        )

    def on(self, cells: Sequence[int], margin: int | None = None) -> dict[str, object]:
        """Keys that put the distance rule on other cells, without masks.

        Parameters
        ----------
        cells
            Their number along each axis.
        margin
            Of windows; None for whole inputs.
        """
        keys: dict[str, object] = {"cells": list(cells), "levels": None, "mask_beyond": None, "window_margin": margin}
        return keys | {"window_align": None if margin is None else self.window_align}

    def isotropic(self) -> dict[str, object]:
        """One cell."""
        return self.on([1] * len(self.cells))

    def tried(self, cells: list[list[int]] | None, margins: list[int] | None) -> list[tuple[str, Mapping[str, object]]]:
        """Other grids; by default these cells and half as many along each axis, with the file's windows and without."""
        halves = [-(-count // 2) for count in self.cells]
        usual = [[k] * len(self.cells) for k in (2, 3)] if self.groups == 1 else [self.cells, halves]
        own = [] if self.window_margin is None else [self.window_margin]
        several = (each for each in dict.fromkeys(map(tuple, usual if cells is None else cells)) if math.prod(each) > 1)
        return [
            (
                "×".join(map(str, each)) + " {}" + ("" if margin is None else f", windows {margin}"),
                self.on(each, margin),
            )
            for each in several
            for margin in (None, *(own if margins is None else margins))
        ]

    def require_unseen(self, items: ItemSet) -> None:
        """Refuse items that the file of levels was fitted on.

        Raises
        ------
        InvalidInputError
            Naming one of them.
        """
        if self.levels is not None:
            require_unseen(read_levels(self.levels), items)


LAYOUT_SECTIONS = Registry[LayoutSection]("section of a layout", value_of("kind"), GridLayoutSection)
"""Sections by kind of layout."""

AnyLayout = Annotated[LayoutSection, AnyOf(LAYOUT_SECTIONS, "kind")]
