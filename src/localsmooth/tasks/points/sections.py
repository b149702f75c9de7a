"""The sections of configuration files that are about point clouds."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from localsmooth.config import (
    DATA_SECTIONS,
    INTERPOLATIONS,
    LAYOUT_SECTIONS,
    REACHES,
    THREAT_SECTIONS,
    ConfigurationError,
    DataSection,
    ExistingPath,
    LayoutSection,
    NoiseSection,
    PerPositionSection,
    one_level,
)
from localsmooth.datasets import load_array, load_sequences, read_arrays
from localsmooth.layout import Layout
from localsmooth.models import Model
from localsmooth.tasks.points.cells import cell_layout, fit_centres, nearest_cells
from localsmooth.tasks.points.task import PointTask
from localsmooth.tasks.points.threat import PerPoint

__all__ = ["CellsSection", "PerPointSection", "PointsSection"]


@DATA_SECTIONS.register
class PointsSection(DataSection):
    """Point clouds with as many points each, from a file of coordinates."""

    lays_out: ClassVar[str] = "cells"

    kind: Literal["points"]
    points: ExistingPath
    """Coordinates, items × points × coordinates: a .npy file, or an .npz or .safetensors file with an array `points`
    and, possibly, one `labels`."""
    labels: ExistingPath | None = None
    """Class of every point, items × points, as a .npy file; by default the file's array `labels`, if it has one."""
    items: list[int] | None = None
    """Which clouds to certify; all by default."""
    names: list[str] | None = None
    """What reports call the clouds that are certified."""
    ignore_label: int | None = None
    """Label of points that count neither for nor against the model."""
    class_names: list[str] | None = None
    """Name of every class, in order."""
    units: str = "coordinates"
    """Units of coordinates and budgets."""

    @property
    def labelled(self) -> bool:
        """Whether there are labels."""
        return self.labels is not None or "labels" in read_arrays(self.points, "points")

    def task(self, model: Model) -> PointTask:
        """Load the clouds."""
        numbers, clouds, labels = load_sequences(self.points, "points", self.labels, items=self.items)
        return PointTask(
            model,
            clouds,
            labels,
            names=[f"cloud {number}" for number in numbers] if self.names is None else self.names,
            class_names=self.class_names,
            ignore_label=self.ignore_label,
            units=self.units,
        )

    def cloud(self, number: int | None = None) -> np.ndarray:
        """Load one cloud of the file; by default the first that is certified."""
        wanted = [number] if number is not None else self.items[:1] if self.items else [0]
        return load_sequences(self.points, "points", items=wanted)[1][0]


@LAYOUT_SECTIONS.register
class CellsSection(LayoutSection):
    """Cells of points that are near in a reference, which has the points in the same order and is not certified."""

    kind: Literal["cells"] = "cells"
    cells: int | None = Field(default=None, ge=1)
    """Number of cells, by k-means on the reference; 1 is isotropic smoothing, and needs no reference."""
    centres: ExistingPath | None = None
    """Where the cells are, in place of their number: cells × coordinates, as a .npy file."""
    reference: ExistingPath | None = None
    """A template, an earlier scan: points × coordinates, as a .npy file."""
    reference_item: int | None = Field(default=None, ge=0)
    """A cloud of the data's file as the reference, by its number; it must not be among those that are certified."""
    seed: int = Field(default=0, ge=0)
    """Seed of k-means."""
    interpolation: Literal["linear", "variance"] = "linear"
    """Whether the level or its square grows linearly with the distance of centres."""
    reach: Literal["grid", "cell"] = "grid"
    """Whether the largest level is reached at the largest distance of all or at each cell's own."""

    @model_validator(mode="after")
    def _complete(self) -> CellsSection:
        if (self.cells is None) == (self.centres is None):
            raise ValueError("name either cells, their number, or centres, a file with where they are")
        if self.reference is not None and self.reference_item is not None:
            raise ValueError("name one of reference and reference_item")
        if self.reference is None and self.reference_item is None and self.cells != 1:
            raise ValueError(
                "cells are of points that are near in something else than what is certified: name a reference, or a "
                "reference_item that is not certified"
            )
        return self

    @property
    def groups(self) -> int:
        """Number of cells."""
        return len(load_array(self.centres, "centres")) if self.centres is not None else self.cells or 1

    def build(self, noise: NoiseSection, data: DataSection | None = None) -> Layout:
        """Find the cells.

        Parameters
        ----------
        noise
            The section with the levels.
        data
            The section of the clouds.

        Raises
        ------
        ConfigurationError
            If the data are no point clouds, or the noise has several levels.
        InvalidInputError
            If the reference is no cloud.
        """
        if not isinstance(data, PointsSection):
            raise ConfigurationError('layout.kind: cells are of points. Use data of kind "points", or another layout.')
        levels = one_level(noise)
        if self.reference is None and self.reference_item is None:
            points, coordinates = data.cloud().shape
            return cell_layout(np.zeros(points, np.int64), np.zeros((1, coordinates)), *levels)
        reference = (
            data.cloud(self.reference_item) if self.reference is None else load_array(self.reference, "reference")
        )
        centres = (
            fit_centres(reference, self.groups, self.seed)
            if self.centres is None
            else load_array(self.centres, "centres")
        )
        return cell_layout(
            nearest_cells(reference, centres),
            centres,
            *levels,
            reach=REACHES[self.reach],
            interpolation=INTERPOLATIONS[self.interpolation],
        )


@THREAT_SECTIONS.register
class PerPointSection(PerPositionSection):
    """Every point moves by at most ε, in the norm of the noise; `most` also limits how many cells are attacked."""

    kind: Literal["per-point"]  # pyright: ignore[reportIncompatibleVariableOverride]

    def build(self) -> PerPoint:
        """Make the threat."""
        return PerPoint(self.most)
