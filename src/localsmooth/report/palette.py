"""Colours that stay apart for colour-blind readers and in print."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8
from matplotlib import colormaps

__all__ = ["HATCH", "IGNORED", "METHODS", "class_color", "class_colors", "method_color", "radius_colors", "rgb"]

# Okabe & Ito's colours, with slate instead of black for the first class, which is often a background.
_FEW = ("#5b6770", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")
# For more classes: hues in three lightness steps, neighbours far apart; names in the legend do the rest.
_MANY = (
    *("#5b6770", "#e69f00", "#56b4e9", "#00735c", "#f0e442", "#00437a", "#d55e00", "#f3b6d6", "#7a0f3c", "#7fd6a8"),
    *("#7a5195", "#b8860b", "#c9dff5", "#a3123a", "#3f7f1f", "#1fb8b8", "#4a2c17", "#c77cff", "#ff9e80", "#9aa800"),
)
METHODS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#56b4e9", "#882255", "#444444")
HATCH = ("#ffffff", "#333333")
"""Ground and lines of the hatching that marks abstentions."""
IGNORED = "#ffffff"
"""Outputs that do not count."""


def rgb(color: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour like #0072b2."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def class_colors(classes: int) -> list[str]:
    """One colour per class; beyond 20 classes they repeat."""
    colors = _FEW if classes <= len(_FEW) else _MANY
    return [colors[index % len(colors)] for index in range(classes)]


def class_color(index: int, classes: int) -> str:
    """Colour of one class among so many."""
    return class_colors(classes)[index]


def method_color(index: int) -> str:
    """Colour of the curves of one method."""
    return METHODS[index % len(METHODS)]


def radius_colors() -> UInt8[np.ndarray, "256 3"]:
    """Colour table for certified radii, from 0 to the largest."""
    return (colormaps["viridis"](np.arange(256))[:, :3] * 255).round().astype(np.uint8)
