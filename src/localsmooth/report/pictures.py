"""Pictures of an item's arrays, as PNG data addresses that a page can hold."""

from __future__ import annotations

import base64
import io

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from PIL import Image

from localsmooth.certificates import ABSTAIN
from localsmooth.report.palette import HATCH, IGNORED, class_colors, radius_colors, rgb
from localsmooth.report.plane import Picturing

__all__ = ["class_picture", "input_picture", "png", "radius_picture", "scale_picture"]


def png(picture: UInt8[np.ndarray, "rows columns 3"]) -> str:
    """Data address of a picture."""
    stream = io.BytesIO()
    image = Image.fromarray(picture)
    if len(image.getcolors(picture.size) or ()) <= 256:
        image = image.quantize(256, dither=Image.Dither.NONE) if picture.size > 3 * 4096 else image
    image.save(stream, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def input_picture(
    image: Float[np.ndarray, "channels *space"],
    plane: Picturing,
    bounds: tuple[float, float] | None,
    gray: bool = False,
) -> UInt8[np.ndarray, "rows columns 3"]:
    """The input: three channels as colours, any other number as the gray of their mean, or all as a pale gray."""
    image, bounds = plane.shown(image, bounds)
    flat = plane(image, 1.0 if bounds is None else bounds[1]).astype(np.float64)
    if flat.shape[0] != 3 or gray:
        flat = np.broadcast_to(flat.mean(axis=0), (3, *flat.shape[1:]))
    low, high = bounds if bounds is not None else (float(flat.min()), float(flat.max()))
    span = high - low if high > low else 1.0
    shown = np.clip((flat - low) / span, 0, 1)
    if gray:
        shown = 0.55 + 0.45 * shown
    return plane.magnify((shown * 255).round().astype(np.uint8).transpose(1, 2, 0))


def class_picture(
    classes: Int[np.ndarray, "*out"], hidden: Bool[np.ndarray, "*out"], plane: Picturing, n_classes: int
) -> UInt8[np.ndarray, "rows columns 3"]:
    """A label map: one colour per class, abstentions hatched, hidden outputs white."""
    table = np.array([rgb(color) for color in class_colors(n_classes)], dtype=np.uint8)
    flat = plane(classes)
    colors = table[np.where(flat >= 0, flat, 0)]
    return _finish(colors, flat == ABSTAIN, plane(hidden, True), plane)


def radius_picture(
    radius: Float[np.ndarray, "*out"],
    abstains: Bool[np.ndarray, "*out"],
    hidden: Bool[np.ndarray, "*out"],
    plane: Picturing,
    largest: float,
) -> UInt8[np.ndarray, "rows columns 3"]:
    """Certified radii from 0 to the largest, abstentions hatched, hidden outputs white."""
    share = np.clip(plane(radius) / largest, 0, 1) if largest > 0 else np.zeros(plane(radius).shape)
    colors = radius_colors()[(share * 255).round().astype(np.intp)]
    return _finish(colors, plane(abstains), plane(hidden, True), plane)


def scale_picture() -> UInt8[np.ndarray, "rows columns 3"]:
    """The colour table of the radii, from left to right."""
    return radius_colors()[None, :, :]


def _finish(
    colors: UInt8[np.ndarray, "rows columns 3"],
    abstains: Bool[np.ndarray, "rows columns"],
    hidden: Bool[np.ndarray, "rows columns"],
    plane: Picturing,
) -> UInt8[np.ndarray, "height width 3"]:
    picture = plane.magnify(colors)
    y, x = np.mgrid[: picture.shape[0], : picture.shape[1]]
    ground, lines = (np.array(rgb(color), dtype=np.uint8) for color in HATCH)
    hatching = np.where((((x + y) % 6) < 2)[..., None], lines, ground)
    picture = np.where(plane.magnify(abstains)[..., None], hatching, picture)
    return np.where(plane.magnify(hidden)[..., None], np.array(rgb(IGNORED), dtype=np.uint8), picture)
