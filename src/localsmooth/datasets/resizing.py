"""Smaller pictures and label maps: areas are averaged, labels are picked."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch.nn import functional

from localsmooth.errors import InvalidInputError

__all__ = ["shrink_image", "shrink_labels"]


def shrink_image(
    image: Float[np.ndarray, "channels height width"], scale: float
) -> Float[np.ndarray, "channels smaller_height smaller_width"]:
    """Shrink a picture; every new pixel is the mean of the area that it covers.

    Parameters
    ----------
    image
        The picture.
    scale
        Ratio of new to old lengths, in (0, 1]; new lengths are rounded down: at ½, 333 × 500
        pixels become 166 × 250.

    Raises
    ------
    InvalidInputError
        If the ratio is out of range, or nothing would be left.
    """
    size = _smaller((image.shape[1], image.shape[2]), scale)
    if size == image.shape[1:]:
        return image
    return functional.interpolate(torch.from_numpy(image)[None], size=size, mode="area")[0].numpy()


def shrink_labels(
    labels: Int[np.ndarray, "height width"], scale: float
) -> Int[np.ndarray, "smaller_height smaller_width"]:
    """Shrink a label map; every new pixel has the label at its centre.

    Parameters
    ----------
    labels, scale
        As in `shrink_image`.
    """
    size = _smaller((labels.shape[0], labels.shape[1]), scale)
    rows, columns = (
        ((np.arange(new) + 0.5) * (old / new)).astype(np.int64) for new, old in zip(size, labels.shape, strict=True)
    )
    return labels[np.ix_(rows, columns)]


def _smaller(shape: tuple[int, int], scale: float) -> tuple[int, int]:
    if not 0 < scale <= 1:
        raise InvalidInputError("scale", f"got {scale}", "Pass a ratio in (0, 1], such as 0.5")
    size = int(shape[0] * scale), int(shape[1] * scale)
    if min(size) < 1:
        raise InvalidInputError("scale", f"nothing is left of {shape[0]} × {shape[1]} pixels", "Pass a larger ratio")
    return size
