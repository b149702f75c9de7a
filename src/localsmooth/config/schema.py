"""The sections of a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from localsmooth.config.certificate import CertificateSection
from localsmooth.config.data import AnyData
from localsmooth.config.execution import ExecutionSection
from localsmooth.config.faults import ConfigurationError
from localsmooth.config.models import AnyModel
from localsmooth.config.noises import AnyNoise, NoiseSection
from localsmooth.config.plugins import PluginsSection
from localsmooth.config.sampling import SamplingSection
from localsmooth.config.section import ExistingPath, Section
from localsmooth.datasets import ItemSet
from localsmooth.layout import (
    GridLayout,
    chebyshev,
    euclidean,
    farthest_of_each_cell,
    farthest_of_grid,
    linear,
    linear_in_variance,
)
from localsmooth.locality import LevelsFile, item_digest, read_levels, require_unseen
from localsmooth.tasks import Smoothing
from localsmooth.tasks.arrays import ArrayTask, Settings

__all__ = ["Configuration", "LayoutSection", "LocalitySection"]

_METRICS = {"chebyshev": chebyshev, "euclidean": euclidean}
_INTERPOLATIONS = {"linear": linear, "variance": linear_in_variance}
_REACHES = {"grid": farthest_of_grid, "cell": farthest_of_each_cell}


class LayoutSection(Section):
    """How inputs and outputs are cut into cells and how the level grows between them."""

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
    """Hide inputs farther than this many elements from an output's cell."""
    window_margin: int | None = Field(default=None, ge=0)
    """Run the model on each cell and this many elements around it only."""
    window_align: int = Field(default=1, ge=1)
    """Windows start and end at multiples of this, the model's stride."""

    def build(self, noise: NoiseSection) -> GridLayout:
        """Make the rule that lays out items of any size.

        Parameters
        ----------
        noise
            The section with the levels that the rule spreads.
        """
        minimum, maximum = noise.levels()
        return GridLayout(
            cells=tuple(self.cells),
            minimum=minimum,
            maximum=maximum,
            levels=None if self.levels is None else read_levels(self.levels).levels,
            metric=_METRICS[self.metric],
            interpolation=_INTERPOLATIONS[self.interpolation],
            reach=_REACHES[self.reach],
            mask_beyond=self.mask_beyond,
            window_margin=self.window_margin,
            window_align=self.window_align,
        )


class LocalitySection(Section):
    """How `localsmooth locality` measures what noise in one cell does to the predictions of another."""

    quality: float | None = Field(default=None, gt=0, lt=1)
    """Wanted share of votes that are the clean prediction; by default what the file's distance rule attains."""
    levels: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(default=None, min_length=2)
    """Noise levels to try, between which the proposal stays; by default as `count` says."""
    count: int = Field(default=6, ge=2, le=100)
    """Number of levels that are tried, in equal ratios from the smallest to the largest of `[noise]`."""
    samples: int = Field(default=16, ge=1)
    """Samples of each item at each level and cell."""
    seed: int = Field(default=0, ge=0)
    """Seed of the noise, whose streams no certification uses."""


class Configuration(Section):
    """All that a file asks for: one certification run."""

    name: str = "localized"
    """What reports call the method."""
    model: AnyModel
    """The base classifier."""
    data: AnyData
    """What is certified."""
    layout: LayoutSection
    """Cells of inputs and outputs."""
    noise: AnyNoise
    """The smoothing distribution."""
    sampling: SamplingSection
    """How samples are drawn."""
    certificate: CertificateSection
    """What is proven from them."""
    execution: ExecutionSection = Field(default_factory=ExecutionSection)
    """Where samples are drawn."""
    calibration: AnyData | None = None
    """Items for `localsmooth locality`; none of them may be among those that are certified."""
    locality: LocalitySection | None = None
    """How `localsmooth locality` measures, if not by its defaults; not used otherwise."""
    plugins: PluginsSection = Field(default_factory=PluginsSection)
    """Modules with noises, certificates and bounds of your own."""

    def build(self, file: Path) -> tuple[ArrayTask, Smoothing, Settings]:
        """Make task, smoothing and settings.

        Parameters
        ----------
        file
            Not used: nothing is trained.

        Raises
        ------
        ConfigurationError, InvalidInputError
            Naming the key at fault.
        """
        del file
        return (
            ArrayTask(self.model.build(self.sampling), self.items()),
            Smoothing(self.layout.build(self.noise), self.sampling.build(), self.noise.build()),
            self.certificate.build(self.noise),
        )

    def items(self) -> ItemSet:
        """Load the items to certify.

        Raises
        ------
        InvalidInputError
            If the layout's levels were fitted on one of them.
        """
        items = self.data.build()
        if self.layout.levels is not None:
            require_unseen(read_levels(self.layout.levels), items)
        return items

    def calibration_items(self) -> ItemSet:
        """Load the items that levels are fitted on.

        Raises
        ------
        ConfigurationError
            If the file names none.
        InvalidInputError
            If one of them is to be certified.
        """
        if self.calibration is None:
            raise ConfigurationError(
                "calibration: this section is missing. Name items that are not certified, as in [data]."
            )
        items = self.calibration.build()
        fitted = LevelsFile(np.empty((0, 0)), frozenset(item_digest(item.image) for item in items))
        require_unseen(fitted, self.data.build(), "calibration")
        return items
