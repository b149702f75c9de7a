"""The items of a run: inputs, and labels where they are known."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError, require_distinct, require_several

__all__ = ["Item", "ItemSet"]


@dataclass(frozen=True, eq=False)
class Item:
    """One input to certify.

    Parameters
    ----------
    index
        Number of the item within its data set, for the record. (The noise depends on its place in the run.)
    name
        How the item is called in reports.
    image
        The input, in the units of the model's declared bounds; channels first.
    label
        Known class of every output, or None.

    Raises
    ------
    InvalidInputError
        If the input has NaN or infinite values.
    """

    index: int
    name: str
    image: Float[np.ndarray, "channels *spatial"]
    label: Int[np.ndarray, "..."] | None = None

    def __post_init__(self) -> None:
        if self.index < 0:
            raise InvalidInputError("index", f"got {self.index}", "Number items from 0")
        if self.image.size == 0 or not np.isfinite(self.image).all():
            raise InvalidInputError(
                "images", f'item "{self.name}" is empty or contains NaN or infinity', "Repair it or leave the item out"
            )
        if self.label is not None and not np.issubdtype(self.label.dtype, np.integer):
            raise InvalidInputError(
                "labels", f'item "{self.name}" has labels of type {self.label.dtype}', "Pass integers"
            )


@dataclass(frozen=True, eq=False)
class ItemSet:
    """The items of a run and what their labels mean.

    Parameters
    ----------
    items
        What to certify; indices must be distinct.
    class_names
        Name of each class, in the order of the class numbers; None if unknown.
    ignore_label
        Label of outputs that count neither for nor against the model.

    Raises
    ------
    InvalidInputError
        If there is no item, one is listed twice, two items or classes share a name, some have no label, or axes and
        channels differ.
    """

    items: Sequence[Item]
    class_names: Sequence[str] | None = None
    ignore_label: int | None = None

    def __post_init__(self) -> None:
        if len(self.items) == 0:
            raise InvalidInputError("items", "there is nothing to certify", "Name at least one item")
        indices = [item.index for item in self.items]
        if len(set(indices)) != len(indices):
            raise InvalidInputError("items", "an item is listed twice", "List every item once")
        if len({item.name for item in self.items}) != len(indices):
            raise InvalidInputError("items", "two items share a name", "Give every item a name of its own")
        if self.class_names is not None:
            require_several("class_names", self.class_names, "names")
            require_distinct("class_names", self.class_names, "classes")
        if len({(item.image.ndim, item.image.shape[0]) for item in self.items}) > 1:
            raise InvalidInputError("images", "items differ in axes or channels", "Certify them in separate runs")
        if len({item.label is None for item in self.items}) > 1:
            raise InvalidInputError("labels", "some items have labels and some have none", "Label all items or none")

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def labelled(self) -> bool:
        """Whether labels are known."""
        return self.items[0].label is not None

    def require_labels_within(self, classes: int, output_shapes: Sequence[tuple[int, ...]]) -> None:
        """Check labels against what the model predicts, given the shape of its predictions for each item.

        Raises
        ------
        InvalidInputError
            If a label map has another shape than the predictions, or a label that is neither a class nor ignored.
        """
        seen: set[int] = set()
        for item, output_shape in zip(self.items, output_shapes, strict=True):
            if item.label is None:
                continue
            if item.label.shape != tuple(output_shape):
                raise InvalidInputError(
                    "labels",
                    f'item "{item.name}": labels have shape {item.label.shape}, predictions {output_shape}',
                    "Give one label per prediction; a model whose scores are coarser can have them interpolated "
                    "(upsample=True), one whose classes lie on another axis names it (class_axis=)",
                )
            if self.ignore_label is not None and bool((item.label == self.ignore_label).all()):
                raise InvalidInputError(
                    "labels", f'every output of item "{item.name}" is ignored', "Leave the item out"
                )
            wrong = (item.label < 0) | (item.label >= classes)
            if self.ignore_label is not None:
                wrong &= item.label != self.ignore_label
            found = set(np.unique(item.label).tolist())
            seen |= found
            if wrong.any():
                raise InvalidInputError(
                    "labels",
                    f'item "{item.name}" has label {item.label[wrong].flat[0]}, outside 0 … {classes - 1}',
                    "Divide the mask by 255: it seems to store class 1 as 255"
                    if found <= {0, 255}
                    else "Correct the labels, or declare that number as ignore_label of these items; in a file, "
                    "[data] and [calibration] have one each",
                )
        if self.ignore_label == 255 and seen == {0, 255}:
            warnings.warn(
                "labels: there are only 0 and the ignored 255. If 255 stands for class 1, divide the masks by 255",
                stacklevel=2,
            )
