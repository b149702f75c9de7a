"""Spatial arrays of any rank as flat pictures of a sensible size."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

__all__ = ["Picturing", "Plane", "choose_plane"]

_LARGEST = 400
_SHOWN = 320
_STRIP = (30, 1160)


class Picturing(ABC):
    """How an array over an item's positions becomes a picture: in elements, each of which takes some pixels.

    Attributes
    ----------
    scale
        Vertical and horizontal size of an element in pixels.
    """

    scale: tuple[int, int]

    @property
    def note(self) -> str:
        """What a reader must know about the picture; empty where there is nothing to say."""
        return ""

    @abstractmethod
    def __call__(self, array: np.ndarray, outside: float | int | bool = 0) -> np.ndarray:
        """Arrange an array whose last axes are the positions in rows and columns.

        Parameters
        ----------
        array
            Values, possibly with channels first.
        outside
            What elements get that show no position.
        """

    def shown(
        self, image: np.ndarray, bounds: tuple[float, float] | None
    ) -> tuple[np.ndarray, tuple[float, float] | None]:
        """What is drawn of an input: channels over its positions, and their bounds; the input itself by default.

        Parameters
        ----------
        image
            The input, channels first.
        bounds
            Its declared bounds, if any.
        """
        return image, bounds

    def magnify(self, picture: np.ndarray) -> np.ndarray:
        """Repeat each element of a picture (rows × columns, possibly with colours last) to its size in pixels."""
        return picture.repeat(self.scale[0], axis=0).repeat(self.scale[1], axis=1)


@dataclass(frozen=True)
class Plane(Picturing):
    """How a spatial array becomes a picture.

    Parameters
    ----------
    rank
        Number of spatial axes: 1 is shown as a strip, 3 as the middle slice along the first axis.
    stride
        Every how manyth element is shown.
    scale
        Vertical and horizontal size of an element in pixels.
    """

    rank: int
    stride: int
    scale: tuple[int, int]

    @property
    def note(self) -> str:
        """What a reader must know about the picture; empty where it is the whole array."""
        parts = ["middle slice along the first axis"] if self.rank == 3 else []
        if self.stride > 1:
            parts.append(f"one element in {self.stride} along each axis")
        return ", ".join(parts)

    def __call__(self, array: np.ndarray, outside: float | int | bool = 0) -> np.ndarray:
        """Cut the picture's elements out of an array whose last axes are the spatial ones."""
        if self.rank == 1:
            array = array[..., None, :]
        if self.rank == 3:
            array = array[..., array.shape[-3] // 2, :, :]
        rows = 1 if self.rank == 1 else self.stride
        return array[..., ::rows, :: self.stride]


def choose_plane(shape: tuple[int, ...]) -> Plane | None:
    """How to show an array of this spatial shape; None where it has no picture (no axes, or more than three)."""
    rank = len(shape)
    if rank not in (1, 2, 3):
        return None
    sides = shape if rank < 3 else shape[1:]
    largest = _LARGEST if rank > 1 else 2 * _LARGEST
    stride = max(1, math.ceil(max(sides) / largest))
    width = math.ceil(sides[-1] / stride)
    if rank == 1:
        return Plane(rank, stride, (_STRIP[0], max(1, round(_STRIP[1] / width))))
    height = math.ceil(sides[-2] / stride)
    scale = min(16, max(1, round(_SHOWN / max(width, height))))
    return Plane(rank, stride, (scale, scale))
