"""Items from .npy files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from localsmooth.datasets.items import Item, ItemSet
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError

__all__ = ["load_array", "load_arrays"]


def load_array(path: Path, field: str) -> np.ndarray:
    """Read one .npy file, memory-mapped and without unpickling.

    Raises
    ------
    InvalidInputError
        Naming `field` if the file is not a plain numeric array.
    """
    path = expanded(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInputError(
            field, f"{path} is not a readable .npy array ({error})", "Save it with numpy.save, as numbers"
        ) from None
    if not isinstance(array, np.ndarray):
        raise InvalidInputError(field, f"{path} is an archive of arrays", "Pass a single .npy array")
    return array


def load_arrays(
    images: Path,
    labels: Path | None = None,
    *,
    items: Sequence[int] | None = None,
    class_names: Sequence[str] | None = None,
    ignore_label: int | None = None,
) -> ItemSet:
    """Read inputs (items × channels × spatial axes) and labels (items × outputs).

    Raises
    ------
    InvalidInputError
        For files that are not arrays, shapes that do not match, and item numbers out of range.
    """
    inputs = load_array(images, "images")
    truth = None if labels is None else load_array(labels, "labels")
    if inputs.ndim < 3:
        raise InvalidInputError(
            "images", f"shape {inputs.shape} has fewer than three axes", "Store items × channels × spatial axes"
        )
    if inputs.dtype.kind not in "fiub":  # booleans are bits
        raise InvalidInputError("images", f"values have type {inputs.dtype}", "Store real numbers")
    if truth is not None and len(truth) != len(inputs):
        raise InvalidInputError("labels", f"{len(truth)} label maps for {len(inputs)} inputs", "Give one per input")
    if truth is not None and truth.dtype.kind not in "iub":
        raise InvalidInputError("labels", f"labels have type {truth.dtype}", "Store whole numbers")
    chosen = range(len(inputs)) if items is None else items
    for index in chosen:
        if not 0 <= index < len(inputs):
            raise InvalidInputError("items", f"item {index} of {len(inputs)}", f"Number items 0 … {len(inputs) - 1}")
    return ItemSet(
        [
            Item(
                index,
                f"item {index}",
                np.array(inputs[index], dtype=np.float32),
                None if truth is None else np.array(truth[index], dtype=np.int64),
            )
            for index in chosen
        ],
        class_names,
        ignore_label,
    )
