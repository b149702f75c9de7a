"""Colours that stay apart for colour-blind readers and in print."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8
from matplotlib import colormaps

__all__ = ["HATCH", "IGNORED", "class_colors", "method_color", "radius_colors", "rgb"]

# Okabe & Ito's colours, with slate instead of black for the first class, which is often a background; then, each as far
# from all others as can be for full, red-blind, green-blind and blue-blind sight (CIEDE2000 of 9 and more between any
# two, with white and the hatching's dark gray kept as far).
_CLASSES = (
    *("#5b6770", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#4d0066", "#991a00"),
    *("#b3e6b3", "#0000cc", "#994d4d", "#3380ff", "#66e6ff", "#660000", "#ffb3cc", "#b3b380", "#803380", "#0033ff"),
)
_METHODS = ("#0072b2", "#d55e00", "#330000", "#00004d", "#804d4d", "#b30000", "#1a1ab3", "#b38099")
HATCH = ("#ffffff", "#333333")
"""Ground and lines of the hatching that marks abstentions."""
IGNORED = "#ffffff"
"""Outputs that do not count."""


def rgb(color: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour like #0072b2."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def class_colors(classes: int) -> list[str]:
    """One colour per class; beyond 20 classes they repeat."""
    return [_CLASSES[index % len(_CLASSES)] for index in range(classes)]


def method_color(index: int) -> str:
    """Colour of the curves of one method."""
    return _METHODS[index % len(_METHODS)]


def radius_colors() -> UInt8[np.ndarray, "256 3"]:
    """Colour table for certified radii, from 0 to the largest."""
    return (colormaps["viridis"](np.arange(256))[:, :3] * 255).round().astype(np.uint8)
