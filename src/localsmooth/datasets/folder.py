"""Labelled pictures in a data set's own folder, read when they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from localsmooth.datasets.items import Item, ItemSet
from localsmooth.datasets.resizing import shrink_image, shrink_labels
from localsmooth.errors import InvalidInputError

__all__ = ["SegmentationFolder"]


class SegmentationFolder(ABC):
    """A sequence of labelled pictures.

    Parameters
    ----------
    names
        Name of each picture, in a fixed order.
    scale
        Ratio by which pictures and labels are shrunk, in (0, 1].
    """

    class_names: Sequence[str]
    ignore_label = 255

    def __init__(self, names: Sequence[str], scale: float) -> None:
        self.names = tuple(names)
        self.scale = scale

    @abstractmethod
    def read_image(self, name: str) -> Float[np.ndarray, "channels height width"]:
        """A picture in its full size, with values in [0, 1]."""

    @abstractmethod
    def read_labels(self, name: str) -> Int[np.ndarray, "height width"]:
        """Its labels in full size."""

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Item:
        if not 0 <= index < len(self):
            raise InvalidInputError("items", f"item {index} of {len(self)}", f"Number items 0 … {len(self) - 1}")
        name = self.names[index]
        image, labels = self.read_image(name), self.read_labels(name)
        if image.shape[1:] != labels.shape:
            raise InvalidInputError(
                "labels", f'"{name}" has labels of {labels.shape} for {image.shape[1:]} pixels', "Repair the data set"
            )
        return Item(index, name, shrink_image(image, self.scale), shrink_labels(labels, self.scale))

    def item_set(self, items: Sequence[int]) -> ItemSet:
        """Read some items.

        Raises
        ------
        InvalidInputError
            For item numbers out of range, and files that are missing or damaged.
        """
        return ItemSet([self[index] for index in items], self.class_names, self.ignore_label)
