"""Items from picture files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from PIL import Image, ImageOps, UnidentifiedImageError

from localsmooth.datasets.items import Item, ItemSet
from localsmooth.errors import InvalidInputError

__all__ = ["load_pictures", "read_classes", "read_pixels"]

# Read as the numbers they hold; everything else (palettes, transparency, CMYK) as RGB.
_NUMERIC_MODES = ("L", "RGB", "I", "F", "I;16", "I;16L", "I;16B")
_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"}


def _files(path: Path, field: str) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES)
    if not found:
        raise InvalidInputError(field, f"{path} holds no pictures", f"Put {', '.join(sorted(_SUFFIXES))} files there")
    return found


def _open(path: Path, field: str) -> Image.Image:
    try:
        with Image.open(path) as picture:
            picture.load()
            return picture.copy()
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise InvalidInputError(field, f"{path} cannot be read ({error})", "Replace or remove the file") from None


def read_pixels(path: Path, scale: float) -> Float[np.ndarray, "channels height width"]:
    """Read a picture, channels first, its values divided by a scale.

    Raises
    ------
    InvalidInputError
        If the file cannot be read.
    """
    picture = ImageOps.exif_transpose(_open(path, "images"))
    if picture.mode not in _NUMERIC_MODES:
        picture = picture.convert("RGB")
    values = np.asarray(picture, dtype=np.float32) / np.float32(scale)
    return values[None] if values.ndim == 2 else np.ascontiguousarray(values.transpose(2, 0, 1))


def read_classes(path: Path) -> Int[np.ndarray, "height width"]:
    """Read the class numbers of a single-channel or palette picture.

    Raises
    ------
    InvalidInputError
        If the file cannot be read or holds no class numbers.
    """
    picture = _open(path, "labels")
    values = np.asarray(picture)
    if values.ndim != 2 or not np.issubdtype(values.dtype, np.integer):
        raise InvalidInputError(
            "labels", f"{path} has mode {picture.mode}", "Store class numbers in a single-channel or palette picture"
        )
    return values.astype(np.int64)


def load_pictures(
    images: Path,
    labels: Path | None = None,
    *,
    items: Sequence[int] | None = None,
    scale: float = 255.0,
    class_names: Sequence[str] | None = None,
    ignore_label: int | None = None,
) -> ItemSet:
    """Read pictures in the order of their names, with label pictures of the same stem.

    Grey pictures among coloured ones become coloured.

    Parameters
    ----------
    images, labels
        A picture or a folder of pictures each.
    items
        Positions in that order; all by default.
    scale
        Pixel values are divided by this: 255 for pictures of 8 bits, 65535 for 16.
    class_names, ignore_label
        As in `ItemSet`.

    Raises
    ------
    InvalidInputError
        For unreadable files, missing label pictures, and item numbers out of range.
    """
    inputs = _files(images, "images")
    truth = None if labels is None else {p.stem: p for p in _files(labels, "labels")}
    if truth is not None and labels is not None and labels.is_file() and len(inputs) == 1:
        truth = {inputs[0].stem: labels}
    made: list[Item] = []
    for index in range(len(inputs)) if items is None else items:
        if not 0 <= index < len(inputs):
            raise InvalidInputError("items", f"item {index} of {len(inputs)}", f"Number items 0 … {len(inputs) - 1}")
        path = inputs[index]
        if truth is not None and path.stem not in truth:
            raise InvalidInputError("labels", f"no label picture for {path.name}", "Give it one of the same stem")
        label = None if truth is None else read_classes(truth[path.stem])
        made.append(Item(index, path.stem, read_pixels(path, scale), label))
    if {item.image.shape[0] for item in made} == {1, 3}:
        made = [replace(item, image=np.broadcast_to(item.image, (3, *item.image.shape[1:])).copy()) for item in made]
    return ItemSet(made, class_names, ignore_label)
