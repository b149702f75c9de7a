"""What image processors of transformers resize pictures to, as a part of the network."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn
from torch.nn import functional

from localsmooth.errors import InvalidInputError

__all__ = ["Resizing", "resizing_of"]

_MODES = {2: "bilinear", 3: "bicubic"}  # by the numbers that Pillow gives them
_TRIED = ((40, 72), (72, 40))
_GREY_LEVELS = 2.0  # processors round pictures of 8 bits to whole grey levels, along one axis after the other

Size = tuple[int, int]
Pixels = Float[torch.Tensor, "batch channels height width"]


class Resizing(nn.Module):
    """Interpolates pictures to a size; where they shrink, averages over what falls together (antialiasing).

    Parameters
    ----------
    size
        Height and width; None where the edges say it.
    shortest, longest
        Length of the shortest edge, and the largest of the longest.
    divisor
        Both edges are rounded up to a multiple of this.
    mode
        How values between pixels are found.
    """

    def __init__(
        self,
        size: Size | None,
        *,
        shortest: int | None = None,
        longest: int | None = None,
        divisor: int = 1,
        mode: str = "bilinear",
    ) -> None:
        super().__init__()
        self.size = size
        self.shortest = shortest
        self.longest = longest
        self.divisor = divisor
        self.mode = mode

    def target(self, height: int, width: int) -> Size:
        """Size of what is made of a picture."""
        if self.size is not None:
            return self.size
        sizes: Any = importlib.import_module("transformers.image_transforms")
        made = sizes.get_size_with_aspect_ratio((height, width), self.shortest, self.longest)
        up = [-(-int(edge) // self.divisor) * self.divisor for edge in made]
        return up[0], up[1]

    def forward(self, batch: Pixels) -> Float[torch.Tensor, "batch channels new_height new_width"]:
        """Return the batch in the size that the network is given."""
        height, width = self.target(int(batch.shape[-2]), int(batch.shape[-1]))
        return functional.interpolate(batch, (height, width), mode=self.mode, align_corners=False, antialias=True)


def resizing_of(processor: Any, normalised: Callable[[Pixels], Pixels]) -> Resizing | None:
    """Make what an image processor does to the size of a picture, and try it against the processor.

    Parameters
    ----------
    processor
        The image processor.
    normalised
        What the network is given of pictures in grey levels from 0 to 255 that have their size.

    Returns
    -------
    Resizing | None
        None where it leaves sizes as they are.

    Raises
    ------
    InvalidInputError
        Naming `resize` if it does something else to pictures, such as cropping, padding or splitting them.
    """
    resizes, splits = (getattr(processor, f"do_{name}", False) for name in ("resize", "split_image"))
    crops, pads = (getattr(processor, f"do_{name}", False) for name in ("center_crop", "pad"))
    if not resizes and not splits and not crops and not pads:
        return None
    size: Mapping[str, int | None] = dict(getattr(processor, "size", None) or {})
    size = {edge: length for edge, length in size.items() if length}
    # Where a processor's file says null, what it resamples by is a matter of its class and version: not known here.
    mode, divisor = _MODES.get(getattr(processor, "resample", 2)), getattr(processor, "size_divisor", None)
    said = ", ".join(f"{edge} = {length}" for edge, length in size.items())
    if (
        mode is None
        or splits
        or crops
        or not resizes
        or not {*size} <= {"height", "width", "shortest_edge", "longest_edge"}
    ):
        raise _refused(processor, said)
    height, width, shortest = (size.get(edge) for edge in ("height", "width", "shortest_edge"))
    fixed = (height, width) if height and width else None
    if fixed is None and shortest is None:
        raise _refused(processor, said)
    made = Resizing(fixed, shortest=shortest, longest=size.get("longest_edge"), divisor=divisor or 1, mode=mode)
    for tried in _TRIED:
        if not _same(made, processor, tried, normalised):
            raise _refused(processor, said)
    return made


def _same(made: Resizing, processor: Any, size: Size, normalised: Callable[[Pixels], Pixels]) -> bool:
    """Whether it makes of a picture what the processor makes of it, up to the rounding to grey levels."""
    rows, columns = (np.linspace(0, np.pi, edge) for edge in size)
    smooth = [np.sin(rows)[:, None] * np.cos(columns + phase)[None] for phase in (0, 1, 2)]
    picture = np.rint(127.5 + 100 * np.stack(smooth, axis=-1)).astype(np.uint8)
    try:
        given = processor(images=[picture], return_tensors="pt")["pixel_values"]
    except Exception:  # what processors want beside pictures depends on their kind
        return False
    own = normalised(made(torch.from_numpy(picture.transpose(2, 0, 1).astype(np.float32))[None]))
    level = normalised(torch.ones(1, 3, 1, 1)) - normalised(torch.zeros(1, 3, 1, 1))
    return own.shape == given.shape and bool(((own - given).abs() <= _GREY_LEVELS * level.abs()).all())


def _refused(processor: Any, said: str) -> InvalidInputError:
    return InvalidInputError(
        "resize",
        f"what {type(processor).__name__} does to the size of pictures ({said}) is not known here",
        "Pass resize=(height, width) to interpolate them to that inside the model, or resize=False to give the network "
        "pictures in the size that you certify",
    )
