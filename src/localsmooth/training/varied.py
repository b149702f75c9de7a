"""One network for all layouts: layouts are drawn anew with every step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout, Layout, LayoutRecipe
from localsmooth.training.losses import Loss
from localsmooth.training.noise import Augmentation, GroupNoise, OneGroup

__all__ = ["LayoutDraw", "RandomGrids", "VariedLayouts"]

LayoutDraw = Callable[[np.random.Generator], Layout | LayoutRecipe]
"""Draws a layout, or a rule that makes one of any shape."""

_LAYOUTS = 106  # first entry of the keys of streams, apart from those of noise and of the loop


@dataclass(frozen=True)
class RandomGrids:
    """Draws grids with levels that grow with the distance, of which some show windows only.

    Parameters
    ----------
    cells
        Most cells along each axis.
    smallest, largest
        Between which levels lie; the level in a cell itself is drawn evenly by its logarithm, and that of the farthest
        cell evenly by its logarithm from there on.
    isotropic
        Share of the layouts with one cell, so that all outputs count.
    windows
        Share of the layouts whose groups see a window only.
    align
        Windows start and end at multiples of this, the network's stride.
    widest
        Largest margin of a window around a cell.

    Raises
    ------
    InvalidInputError
        If levels or shares are out of range.
    """

    cells: tuple[int, ...]
    smallest: float
    largest: float
    isotropic: float = 0.25
    windows: float = 0.0
    align: int = 1
    widest: int = 16

    def __post_init__(self) -> None:
        if not 0 < self.smallest <= self.largest < math.inf:
            problem = f"got {self.smallest} and {self.largest}"
            raise InvalidInputError("smallest, largest", problem, "Pass positive levels, the smallest first")
        for field in ("isotropic", "windows"):
            if not 0 <= getattr(self, field) <= 1:
                raise InvalidInputError(field, f"got {getattr(self, field)}", "Pass a share from 0 to 1")
        if not self.cells or min(self.cells) < 1 or self.align < 1 or self.widest < 0:
            problem = f"got cells {self.cells}, align {self.align}, widest {self.widest}"
            raise InvalidInputError("cells, align, widest", problem, "Pass cells and align of at least 1, widest >= 0")

    def __call__(self, generator: np.random.Generator) -> GridLayout:
        """Draw one."""
        alone = generator.random() < self.isotropic
        cells = tuple(1 if alone else int(generator.integers(1, most + 1)) for most in self.cells)
        low = math.exp(generator.uniform(math.log(self.smallest), math.log(self.largest)))
        high = low if alone else math.exp(generator.uniform(math.log(low), math.log(self.largest)))
        margin = int(generator.integers(self.widest + 1)) if generator.random() < self.windows else None
        return GridLayout(cells, low, max(low, high), window_margin=margin, window_align=self.align)


class VariedLayouts(Augmentation):
    """Every part of a batch has a layout of its own, drawn anew with every step; the loss is that of `OneGroup`.

    It makes one network for many layouts, best one that is told the noise. Validation goes by one layout, that of
    `noise`.

    Parameters
    ----------
    noise
        The family of distributions, its seed and bounds, whether the network is told, and the layout of validation.
    draw
        Draws layouts, such as `RandomGrids`.
    parts
        Layouts in a batch, each with as many images.

    Raises
    ------
    InvalidInputError
        If there is no part.
    """

    def __init__(self, noise: GroupNoise, draw: LayoutDraw, *, parts: int = 4) -> None:
        super().__init__(noise)
        if parts < 1:
            raise InvalidInputError("parts", f"got {parts}", "Pass at least 1")
        self.draw = draw
        self.parts = parts

    @property
    def name(self) -> str:
        """Which layouts there are, too."""
        return f"{super().name} {self.draw!r} {self.parts}"

    def loss(
        self,
        network: nn.Module,
        images: Float[torch.Tensor, "batch *item"],
        labels: Int[torch.Tensor, "batch *outputs"],
        loss: Loss,
        step: int,
    ) -> Float[torch.Tensor, ""]:
        """The mean of the losses of all parts, by their numbers of images."""
        noise, parts = self.noise, min(self.parts, len(images))
        generator = noise.generator(_LAYOUTS, step)
        made: list[torch.Tensor] = []
        for part in range(parts):
            chosen = images[part::parts], labels[part::parts]
            drawn = GroupNoise(self.draw(generator), noise.noise, bounds=noise.bounds, seed=noise.seed, told=noise.told)
            made.append(
                OneGroup(drawn).loss(network, *chosen, loss, step * self.parts + part) * (len(chosen[0]) / len(images))
            )
        return torch.stack(made).sum()
