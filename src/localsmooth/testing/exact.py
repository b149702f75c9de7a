"""A base classifier in integer arithmetic: its tallies are the same wherever and however they are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from localsmooth.layout import Layout, grid_layout
from localsmooth.models import Model, OutputKind

__all__ = ["SHAPE", "ExactModel", "make_item", "make_layout"]

SHAPE = (8, 12)


class ExactModel(Model):
    """Quantises the input, adds up each pixel's neighbourhood, and scores class c by −(sum − 3c)².

    Parameters
    ----------
    classes
        Number of classes.
    stride
        Every so many pixels, along both axes, have an output.
    output
        Whether it returns logits or labels.
    watch
        Called with every batch.
    name
        What distinguishes it from others.
    """

    def __init__(
        self,
        classes: int = 4,
        stride: int = 1,
        output: OutputKind = OutputKind.LOGITS,
        watch: Callable[[torch.Tensor], None] | None = None,
        name: str = "exact",
    ) -> None:
        self.bounds = None
        self.output = output
        self.classes = classes
        self.device = torch.device("cpu")
        self.stride = stride
        self.watch = watch
        self.name = name

    def scores(self, batch: torch.Tensor) -> torch.Tensor:
        """Scores of all classes."""
        quantised = (batch.sum(dim=1) * 2).floor().clamp(-50, 50)
        padded = torch.nn.functional.pad(quantised, (1, 1, 1, 1))
        height, width = quantised.shape[1:]
        total = sum(padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3))
        assert isinstance(total, torch.Tensor)
        total = total[:, :: self.stride, :: self.stride]
        return torch.stack([-((total - 3 * c) ** 2) for c in range(self.classes)], dim=1)

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        """Scores, or labels where the model says so."""
        if self.watch is not None:
            self.watch(batch)
        scores = self.scores(batch)
        return scores.argmax(dim=1) if self.output is OutputKind.LABELS else scores

    def fingerprint(self) -> str:
        """Name and parameters."""
        return f"{self.name} {self.classes} {self.stride}"


def make_item(seed: int = 0, channels: int = 1, shape: tuple[int, ...] = SHAPE) -> torch.Tensor:
    """Make an item at random."""
    return torch.as_tensor(np.random.default_rng(seed).random((channels, *shape)).astype(np.float32))


def make_layout(stride: int = 1, cells: tuple[int, int] = (2, 2)) -> Layout:
    """Make a grid for it, with levels from 0.3 to 1."""
    outputs = tuple(-(-n // stride) for n in SHAPE)
    return grid_layout(cells, SHAPE, outputs, minimum=0.3, maximum=1.0)
