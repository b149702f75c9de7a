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
_THIN = 8  # from how many times as long as wide on an array is stretched
_STRETCHED = 4


class Picturing(ABC):
    """How an array over an item's positions becomes a picture: in elements, each of which takes some pixels.

    Attributes
    ----------
    scale
        Vertical and horizontal size of an element in pixels.
    line
        Whether it is one row, from left to right, to be shown as wide as the page.
    """

    scale: tuple[int, int]
    line: bool = False

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
        Number of spatial axes: 3 are shown as the middle slice along the first one.
    stride
        Every how manyth row and column is shown.
    scale
        Vertical and horizontal size of an element in pixels.
    line
        Whether no more than one axis is longer than 1, which is then shown from left to right, as wide as the page.
    """

    rank: int
    stride: tuple[int, int]
    scale: tuple[int, int]
    line: bool = False

    @property
    def note(self) -> str:
        """What a reader must know about the picture; empty where it is the whole array."""
        parts = ["middle slice along the first axis"] if self.rank == 3 and not self.line else []
        rows, columns = self.stride
        if self.line and columns > 1:
            parts.append(f"one element in {columns}")
        elif rows == columns > 1:
            parts.append(f"one element in {rows} along each axis")
        elif max(rows, columns) > 1:
            parts += [f"one {name} in {each}" for name, each in (("row", rows), ("column", columns)) if each > 1]
        return ", ".join(parts)

    def __call__(self, array: np.ndarray, outside: float | int | bool = 0) -> np.ndarray:
        """Cut the picture's elements out of an array whose last axes are the spatial ones."""
        if self.line:
            array = array.reshape(*array.shape[: array.ndim - self.rank], 1, -1)
        elif self.rank == 3:
            array = array[..., array.shape[-3] // 2, :, :]
        return array[..., :: self.stride[0], :: self.stride[1]]


def choose_plane(shape: tuple[int, ...]) -> Plane | None:
    """How to show an array of this spatial shape; None where it has no picture (no axes, or more than three)."""
    rank = len(shape)
    if rank == 1 or sum(side > 1 for side in shape) == 1:
        stride = max(1, math.ceil(max(shape) / (2 * _LARGEST)))
        width = math.ceil(max(shape) / stride)
        return Plane(rank, (1, stride), (_STRIP[0], max(1, round(_STRIP[1] / width))), line=True)
    if rank not in (2, 3):
        return None
    height, width = shape[-2:]
    if max(height, width) > _THIN * min(height, width):
        return _thin(rank, height, width)
    stride = max(1, math.ceil(max(height, width) / _LARGEST))
    scale = min(16, max(1, round(_SHOWN / math.ceil(max(height, width) / stride))))
    return Plane(rank, (stride, stride), (scale, scale))


def _thin(rank: int, height: int, width: int) -> Plane:
    """Show what is very tall or very wide: every element of its short side, stretched until it can be seen."""
    rows, columns = (max(1, math.ceil(side / _LARGEST)) for side in (height, width))
    shown = math.ceil(height / rows), math.ceil(width / columns)
    along = max(1, round(_SHOWN / max(shown)))
    across = max(along, math.ceil(along * max(shown) / (_STRETCHED * min(shown))))
    return Plane(rank, (rows, columns), (along, across) if height > width else (across, along))
