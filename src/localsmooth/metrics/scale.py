"""Budgets in units that people have a feeling for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

__all__ = ["scale_words"]

_GREY = 255.0


def scale_words(
    norm: int, items: Sequence[Float[np.ndarray, "..."]], bounds: tuple[float, float] | None, budget: float = 1.0
) -> str | None:
    """Say what a budget amounts to if it is spread evenly over an item: grey levels, a share of the range, decibels.

    Parameters
    ----------
    norm
        1 or 2; under others a budget counts changes, which need no other unit.
    items
        What is certified, channels first.
    bounds
        Smallest and largest input value; None where they are not known.
    budget
        ε.

    Returns
    -------
    str | None
        A sentence; None if there is nothing to say.
    """
    sizes = sorted({item.size for item in items})
    if norm not in (1, 2) or not sizes or not sizes[0] or budget <= 0:
        return None
    each = [budget * float(size) ** (-1 / norm) for size in (sizes[-1], sizes[0])]
    if bounds in ((0.0, 1.0), (0.0, 255.0)):
        each, unit = [_GREY * one / bounds[1] for one in each], f"grey levels of {_GREY:g}"
    elif bounds is None:
        unit = "units"
    else:
        each, unit = [100 * one / (bounds[1] - bounds[0]) for one in each], "% of the range"
    values = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    words = (
        f"ε = {budget:.4g} is {_range(each)} {unit} a value if it is spread evenly over all {values} values of an item"
    )
    if norm == 2 and all(sum(side > 1 for side in item.shape[1:]) == 1 for item in items):  # a sequence, such as sound
        energies = [float(np.sum(np.square(item, dtype=np.float64))) for item in items]
        if min(energies) > 0:
            ratios = [10 * math.log10(energy / budget**2) for energy in (min(energies), max(energies))]
            words += f", {_range(ratios)} dB below the signal (6 dB more for every doubling of ε)"
    return words + "."


def _range(values: Sequence[float]) -> str:
    """One number, or the smallest and the largest, where they differ."""
    shown = list(dict.fromkeys(f"{value:.3g}" for value in values))
    return " to ".join(shown)
