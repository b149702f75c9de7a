"""Parts of an item's outputs that people have words for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

__all__ = ["Places", "choose_places"]

_TENTHS, _THIRDS = 10, 3
_ROWS, _COLUMNS = ("upper", "middle", "lower"), ("left", "middle", "right")


@dataclass(frozen=True, eq=False)
class Places:
    """Which part each output lies in, and what the parts are called.

    Parameters
    ----------
    parts
        Number of the part of each output.
    names
        Of the parts, to follow "weakest in".
    """

    parts: Int[np.ndarray, "*out"]
    names: Sequence[str]


def choose_places(shape: tuple[int, ...]) -> Places | None:
    """Cut outputs of a spatial shape into thirds along their last two axes, or a sequence into tenths.

    Parameters
    ----------
    shape
        Spatial shape of the outputs.

    Returns
    -------
    Places | None
        None where there are too few of them to be cut.
    """
    if sum(side > 1 for side in shape) == 1:
        length = max(shape)
        if length < 2 * _TENTHS:
            return None
        names = [f"the part from {10 * part} to {10 * (part + 1)} % of the length" for part in range(_TENTHS)]
        return Places(_cut(length, _TENTHS).reshape(shape), names)
    if len(shape) < 2 or min(shape[-2:]) < _THIRDS:
        return None
    plane = _THIRDS * _cut(shape[-2], _THIRDS)[:, None] + _cut(shape[-1], _THIRDS)
    names = ["the centre" if x == y == "middle" else f"the {y} {x}" for y in _ROWS for x in _COLUMNS]
    return Places(np.broadcast_to(plane, shape), names)


def _cut(length: int, parts: int) -> Int[np.ndarray, "length"]:
    return np.arange(length) * parts // length
