"""Items from picture files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from PIL.TiffImagePlugin import TiffImageFile

from localsmooth.datasets.items import Item, ItemSet
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError

__all__ = ["load_pictures", "read_classes", "read_pixels"]

# Read as the numbers they hold; everything else (palettes, transparency, CMYK) as RGB.
_NUMERIC_MODES = ("L", "RGB", "I", "F", "I;16", "I;16L", "I;16B")
_DEEP_MODES = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
_BITS_PER_SAMPLE = 258
_DEPTH = re.compile(r";(\d+)[BLN]")
_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"}


def _files(path: Path, field: str) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InvalidInputError(field, f"there is no {path}", "Name a picture, or a folder of pictures")
    found = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES)
    if not found:
        raise InvalidInputError(field, f"{path} holds no pictures", f"Put {', '.join(sorted(_SUFFIXES))} files there")
    known = set(Image.registered_extensions()) - _SUFFIXES
    others = sorted(p.name for p in path.iterdir() if p.suffix.lower() in known)
    if others:
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        warnings.warn(f"{field}: {path} also holds {shown}, which are not of the kinds that are read", stacklevel=3)
    return found


def _open(path: Path, field: str) -> Image.Image:
    try:
        with Image.open(path) as picture:
            _require_whole(picture, path, field)
            picture.load()
            return picture.copy()
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError, SyntaxError) as error:
        raise InvalidInputError(field, f"{path} cannot be read ({error})", "Replace or remove the file") from None


def _require_whole(picture: Image.Image, path: Path, field: str) -> None:
    """Refuse files of which Pillow would read a part without a word: further pages, or the lower bits of values."""
    pages = getattr(picture, "n_frames", 1)
    # Cameras add previews to their JPEG files, which Pillow then calls MPO: the first is the picture.
    if pages > 1 and picture.format != "MPO":
        raise InvalidInputError(
            field, f"{path} holds {pages} pictures", "Store each in a file of its own, or all of them as a .npy array"
        )
    if picture.mode not in _DEEP_MODES and _bits(picture) > 8:
        raise InvalidInputError(
            field,
            f"{path} has {_bits(picture)} bits in each of several channels, of which Pillow reads 8",
            "Read it with another program, and store its values as a .npy array",
        )


def _bits(picture: Image.Image) -> int:
    """Bits of a stored value, as far as the decoders tell; asked before the pixels are read."""
    found = [8]
    if isinstance(picture, TiffImageFile):
        found += [int(bits) for bits in picture.tag_v2.get(_BITS_PER_SAMPLE, ())]
    tiles: Sequence[Any] = getattr(picture, "tile", ())
    for tile in tiles:
        arguments = tile.args if isinstance(tile.args, tuple) else (tile.args,)
        for argument in arguments:
            if isinstance(argument, str) and (depth := _DEPTH.search(argument)):
                found.append(int(depth[1]))  # raw modes such as RGB;16B; without a byte order, pixels are packed
            elif picture.format == "PPM" and isinstance(argument, int):
                found.append(argument.bit_length())  # the largest value
    return max(found)


def _upright(picture: Image.Image) -> tuple[Image.Image, bool]:
    """The picture as its EXIF tag says that it is to be seen, and whether it was turned for that."""
    turned = picture.getexif().get(ExifTags.Base.Orientation, 1) in range(2, 9)
    return ImageOps.exif_transpose(picture), turned


def read_pixels(path: Path, scale: float) -> Float[np.ndarray, "channels height width"]:
    """Read a picture, channels first, its values divided by a scale.

    Raises
    ------
    InvalidInputError
        If the file cannot be read.
    """
    return _pixels(_upright(_open(path, "images"))[0], scale)


def _pixels(picture: Image.Image, scale: float) -> Float[np.ndarray, "channels height width"]:
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
    return _classes(_upright(_open(path, "labels"))[0], path)


def _classes(picture: Image.Image, path: Path) -> Int[np.ndarray, "height width"]:
    values = np.asarray(picture)
    if values.dtype == np.bool_:
        values = values.astype(np.uint8)
    if values.ndim != 2 or not np.issubdtype(values.dtype, np.integer):
        raise InvalidInputError(
            "labels", f"{path} has mode {picture.mode}", "Store class numbers in a single-channel or palette picture"
        )
    return values.astype(np.int64)


def _by_stem(paths: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in paths:
        other = found.setdefault(path.stem, path)
        if other is not path:
            raise InvalidInputError(
                "labels", f"{other.name} and {path.name} are of the same stem", "Keep one of them in the folder"
            )
    return found


def _item(index: int, path: Path, label_path: Path | None, scale: float) -> Item:
    """One picture and its labels, both as their EXIF tags say that they are to be seen."""
    picture, turned = _upright(_open(path, "images"))
    image = _pixels(picture, scale)
    if label_path is None:
        return Item(index, path.stem, image)
    mask, mask_turned = _upright(_open(label_path, "labels"))
    label = _classes(mask, label_path)
    if turned != mask_turned:
        one, other = (path, label_path) if turned else (label_path, path)
        if label.shape != image.shape[1:] and label.shape == image.shape[:0:-1]:
            raise InvalidInputError(
                "labels",
                f"{one} was turned by its EXIF tag, and {other} has no such tag: their shapes are {image.shape[1:]} "
                f"and {label.shape}",
                "Store both without the tag, the way round in which they fit",
            )
        warnings.warn(
            f"{one} was turned by its EXIF tag, and {other} has no such tag. If the two do not fit now, store both "
            "without the tag",
            stacklevel=3,
        )
    return Item(index, path.stem, image, label)


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

    Grey pictures among coloured ones become coloured. Pictures and labels are turned as their EXIF tags say.

    Parameters
    ----------
    images, labels
        A picture or a folder of pictures each.
    items
        Positions in that order; all by default.
    scale
        Pixel values are divided by this: 255 for pictures of 8 bits, 65535 for grey ones of 16.
    class_names, ignore_label
        As in `ItemSet`.

    Raises
    ------
    InvalidInputError
        For unreadable files, files with several pages or with more than 8 bits in each of several channels, missing
        label pictures, several of one stem, and item numbers out of range.
    """
    images = expanded(images)
    labels = None if labels is None else expanded(labels)
    inputs = _files(images, "images")
    truth = None if labels is None else _by_stem(_files(labels, "labels"))
    if truth is not None and labels is not None and labels.is_file() and len(inputs) == 1:
        truth = {inputs[0].stem: labels}
    made: list[Item] = []
    for index in range(len(inputs)) if items is None else items:
        if not 0 <= index < len(inputs):
            raise InvalidInputError("items", f"item {index} of {len(inputs)}", f"Number items 0 … {len(inputs) - 1}")
        path = inputs[index]
        if truth is not None and path.stem not in truth:
            raise InvalidInputError("labels", f"no label picture for {path.name}", "Give it one of the same stem")
        made.append(_item(index, path, None if truth is None else truth[path.stem], scale))
    if {item.image.shape[0] for item in made} == {1, 3}:
        made = [replace(item, image=np.broadcast_to(item.image, (3, *item.image.shape[1:])).copy()) for item in made]
    return ItemSet(made, class_names, ignore_label)
