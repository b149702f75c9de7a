"""A partition of an array's elements into numbered groups."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int

from localsmooth.blocks import blocks
from localsmooth.errors import InvalidInputError
from localsmooth.layout.origin import origins_of

__all__ = ["Partition"]


@dataclass(frozen=True, eq=False)
class Partition:
    """Group number of every element of an input or an output.

    Parameters
    ----------
    labels
        Group of each element, numbered from 0 without gaps. For inputs the shape may be that of the trailing
        (spatial) axes only: one label then holds for every channel of a pixel.

    Raises
    ------
    InvalidInputError
        If there is no element, a label is negative, or a group number is skipped.
    """

    labels: Int[np.ndarray, "..."]
    sizes: Int[np.ndarray, "groups"] = field(init=False)
    """Number of elements of each group (of the label map, channels not counted)."""
    origins: frozenset[str] = field(init=False)
    """What the label map says that it was computed from (`localsmooth.layout.derived`)."""

    def __post_init__(self) -> None:
        if self.labels.size == 0:
            raise InvalidInputError("labels", "the label map has no element", "Give every element a group number")
        sizes = _sizes(self.labels)
        if sizes is None or not sizes.all():
            present = np.unique(self.labels)
            raise InvalidInputError(
                "labels",
                f"group numbers must be 0, 1, … without gaps, got {present.size} distinct values "
                f"from {present[0]} to {present[-1]}",
                "Renumber them, for example with np.unique(labels, return_inverse=True)",
            )
        owned = np.array(self.labels, dtype=np.int32, order="C")
        owned.flags.writeable = False
        object.__setattr__(self, "origins", origins_of(self.labels))
        object.__setattr__(self, "labels", owned)
        object.__setattr__(self, "sizes", sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the label map."""
        return self.labels.shape

    @property
    def count(self) -> int:
        """Number of groups."""
        return self.sizes.size

    def members(self, group: int) -> Int[np.ndarray, "members"]:
        """Flat positions of one group's elements, ascending."""
        return np.flatnonzero(self.labels == group)

    def mask(self, group: int) -> Bool[np.ndarray, "..."]:
        """Where the elements of one group lie."""
        return np.asarray(self.labels == group)


def _sizes(labels: Int[np.ndarray, "..."]) -> Int[np.ndarray, "groups"] | None:
    """How often each number from 0 to the largest occurs; None where some number is out of any possible range."""
    largest = int(labels.max())
    if labels.min() < 0 or largest >= labels.size:
        return None
    flat = labels.ravel()
    sizes = np.zeros(largest + 1, dtype=np.int64)
    for block in blocks(flat.size):
        sizes += np.bincount(flat[block], minlength=largest + 1)
    return sizes
