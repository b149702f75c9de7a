"""Outputs that have names, such as the words of a sentence, as coloured cells of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.certificates import ABSTAIN
from localsmooth.report.palette import IGNORED, class_colors, radius_colors, rgb

__all__ = ["MethodWords", "Word", "class_words", "radius_words"]

_LIGHT = 140  # brightness from which on a ground takes dark letters


@dataclass(frozen=True)
class Word:
    """A cell: its text, the colours of ground and letters, what it means, and whether it abstains."""

    text: str
    color: str
    ink: str
    title: str
    abstains: bool = False


@dataclass(frozen=True)
class MethodWords:
    """One method's cells of one item: predicted classes, and certified radii."""

    prediction: list[Word]
    radius: list[Word]


def class_words(
    names: Sequence[str],
    classes: Int[np.ndarray, "outputs"],
    hidden: Bool[np.ndarray, "outputs"],
    class_names: Sequence[str],
) -> list[Word]:
    """Words in the colour of their class."""
    colors = class_colors(len(class_names))
    made: list[Word] = []
    for name, one, ignored in zip(names, classes.tolist(), hidden.tolist(), strict=True):
        known = one >= 0 and not ignored
        title = "ignored" if ignored else "abstains" if one == ABSTAIN else class_names[int(one)] if known else ""
        made.append(_word(name, colors[one] if known else IGNORED, title, one == ABSTAIN and not ignored))
    return made


def radius_words(
    names: Sequence[str],
    radius: Float[np.ndarray, "outputs"],
    abstains: Bool[np.ndarray, "outputs"],
    hidden: Bool[np.ndarray, "outputs"],
    largest: float,
) -> list[Word]:
    """Words in the colour of their certified radius."""
    share = np.clip(radius / largest, 0, 1) if largest > 0 else np.zeros(radius.shape)
    colors = radius_colors()[(share * 255).round().astype(np.intp)]
    made: list[Word] = []
    for place, name in enumerate(names):
        if hidden[place] or abstains[place]:
            made.append(_word(name, IGNORED, "ignored" if hidden[place] else "abstains", not hidden[place]))
        else:
            made.append(_word(name, f"#{bytes(colors[place]).hex()}", f"radius {radius[place]:.3g}"))
    return made


def _word(text: str, color: str, title: str, abstains: bool = False) -> Word:
    red, green, blue = rgb(color)
    light = 0.299 * red + 0.587 * green + 0.114 * blue > _LIGHT
    return Word(text, color, "#1b1f24" if light else "#ffffff", title, abstains)
