"""Items from .npy files, and from archives of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from localsmooth.datasets.items import Item, ItemSet
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError

__all__ = ["load_array", "load_arrays", "load_sequences", "read_arrays"]

_ARCHIVES = (".npz", ".safetensors")
_LABELS = "labels"


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


def read_arrays(path: Path, field: str) -> dict[str, np.ndarray]:
    """Read all arrays of an .npz or .safetensors file by their names, or of an .npy file under the name `field`.

    Raises
    ------
    InvalidInputError
        Naming `field` if the file is none of these. Nothing is unpickled.
    """
    path = expanded(path)
    if path.suffix not in _ARCHIVES:
        return {field: load_array(path, field)}
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except (ValueError, OSError, EOFError, BadZipFile, SafetensorError) as error:
        raise InvalidInputError(
            field, f"{path} cannot be read ({error})", "Save it with numpy.savez or safetensors, as numbers"
        ) from None


def load_sequences(
    path: Path, field: str, labels: Path | None = None, *, items: Sequence[int] | None = None
) -> tuple[list[int], list[np.ndarray], list[np.ndarray] | None]:
    """Read point clouds or embedded sequences, items × elements × features, and a label of every element.

    Parameters
    ----------
    path
        An .npy file, or an .npz or .safetensors file with arrays called `field` and, possibly, "labels".
    field
        What they are called.
    labels
        An .npy file of labels, items × elements, in place of those in the file.
    items
        Which to take; all by default.

    Returns
    -------
    tuple[list[int], list[np.ndarray], list[np.ndarray] | None]
        Number of each item, its elements × features, and its labels where there are any.

    Raises
    ------
    InvalidInputError
        For files that cannot be read, arrays that are missing or do not match, and item numbers out of range.
    """
    held = read_arrays(path, field)
    if field not in held:
        raise InvalidInputError(
            field, f"{path} holds {', '.join(held) or 'nothing'}", f'Save the array under the name "{field}"'
        )
    values, truth = held[field], held.get(_LABELS) if labels is None else load_array(labels, _LABELS)
    if values.ndim != 3:
        raise InvalidInputError(field, f"an array of shape {values.shape}", f"Store items × {field} × features")
    if truth is not None and (truth.shape != values.shape[:2] or truth.dtype.kind not in "iub"):
        raise InvalidInputError(
            _LABELS,
            f"an array of shape {truth.shape} and type {truth.dtype} for {field} of shape {values.shape}",
            f"Store whole numbers of shape {values.shape[:2]}",
        )
    chosen = _chosen(items, len(values))
    return (
        chosen,
        [np.array(values[i]) for i in chosen],
        None if truth is None else [np.array(truth[i]) for i in chosen],
    )


def _chosen(items: Sequence[int] | None, total: int) -> list[int]:
    chosen = list(range(total) if items is None else items)
    for index in chosen:
        if not 0 <= index < total:
            raise InvalidInputError("items", f"item {index} of {total}", f"Number items 0 … {total - 1}")
    return chosen


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
    chosen = _chosen(items, len(inputs))
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
