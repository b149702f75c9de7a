"""A partition of an array's elements into numbered groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from localsmooth.errors import InvalidInputError

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

    def __post_init__(self) -> None:
        if self.labels.size == 0:
            raise InvalidInputError("labels", "the label map has no element", "Give every element a group number")
        present = np.unique(self.labels)
        if present[0] != 0 or present[-1] != present.size - 1:
            raise InvalidInputError(
                "labels",
                f"group numbers must be 0, 1, … without gaps, got {present.size} distinct values "
                f"from {present[0]} to {present[-1]}",
                "Renumber them, for example with np.unique(labels, return_inverse=True)",
            )
        owned = np.array(self.labels, dtype=np.int32, order="C")
        owned.flags.writeable = False
        object.__setattr__(self, "labels", owned)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the label map."""
        return self.labels.shape

    @cached_property
    def count(self) -> int:
        """Number of groups."""
        return int(self.labels.max()) + 1

    @cached_property
    def sizes(self) -> Int[np.ndarray, "groups"]:
        """Number of elements of each group (of the label map, channels not counted)."""
        return np.bincount(self.labels.ravel(), minlength=self.count)

    def members(self, group: int) -> Int[np.ndarray, "members"]:
        """Flat positions of one group's elements, ascending."""
        return np.flatnonzero(self.labels == group)

    def mask(self, group: int) -> Bool[np.ndarray, "..."]:
        """Where the elements of one group lie."""
        return np.asarray(self.labels == group)
