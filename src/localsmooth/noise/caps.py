"""How many flips of each kind an item leaves room for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int

from localsmooth.layout import Partition
from localsmooth.noise.precision import require_binary

__all__ = ["FlipCaps", "flip_caps"]


class FlipCaps(NamedTuple):
    """Largest number of flips per input group."""

    additions: Int[np.ndarray, "input_groups"]
    """Zeros, channels included: no more can be added."""

    deletions: Int[np.ndarray, "input_groups"]
    """Ones: no more can be deleted."""

    @property
    def changes(self) -> Int[np.ndarray, "input_groups"]:
        """Bits of either kind, the cap for flips that are not told apart."""
        return self.additions + self.deletions

    def columns(self, kinds: tuple[str, ...]) -> Int[np.ndarray, "columns"]:
        """Caps in the order of a noise's columns, from its `kinds`."""
        return np.concatenate([getattr(self, kind) for kind in kinds])


def flip_caps(item: torch.Tensor, inputs: Partition) -> FlipCaps:
    """Count the zeros and ones of each input group, for binary threat models.

    Parameters
    ----------
    item
        The clean item, zeros and ones; its trailing axes have the shape of the partition.
    inputs
        Partition of the input.

    Raises
    ------
    InvalidInputError
        If the item is not binary.
    """
    values = item.detach().to("cpu", torch.float32)
    require_binary(values)
    labels = np.broadcast_to(inputs.labels, tuple(item.shape)).ravel()
    ones = np.bincount(labels, weights=values.numpy().ravel(), minlength=inputs.count).astype(np.int64)
    return FlipCaps(np.bincount(labels, minlength=inputs.count) - ones, ones)
