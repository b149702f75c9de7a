"""Work on long arrays piece by piece, so that what is made on the way stays small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Integer, Shaped

__all__ = ["blocks", "look_up"]

_BLOCK = 1 << 18


def blocks(size: int) -> Iterator[slice]:
    """Cut 0 … size − 1 into slices of a few hundred thousand elements."""
    return (slice(start, min(size, start + _BLOCK)) for start in range(0, size, _BLOCK))


def look_up(
    values: Shaped[np.ndarray, " cases"], index: Integer[np.ndarray, " outputs"]
) -> Shaped[np.ndarray, "outputs"]:
    """Return ``values[index]``; numpy alone would make an index of eight bytes an output on the way."""
    found = np.empty(index.shape, dtype=values.dtype)
    for block in blocks(index.size):
        found[block] = values[index[block]]
    return found
