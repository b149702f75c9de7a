"""How far certificates can reach with a number of samples, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Bool

from localsmooth.results.item import ItemResult
from localsmooth.results.names import symbol

__all__ = ["certifies_beyond", "finite_reach", "reach_words", "rounded_down"]

_ALONE = "naive"

Reach = Mapping[str, Mapping[str, float]]
"""The largest budget at which anything can be certified, by kind and by collective bound."""


def finite_reach(reach: Reach) -> dict[str, dict[str, float]]:
    """Leave out what has no limit, and kinds of which nothing is known.

    Parameters
    ----------
    reach
        By kind and by bound.
    """
    finite = {
        kind: {bound: float(value) for bound, value in each.items() if math.isfinite(value)}
        for kind, each in reach.items()
    }
    return {kind: each for kind, each in finite.items() if each}


def reach_words(reach: Reach, budgets: Mapping[str, Sequence[float | int]], bounds: Iterable[str]) -> str:
    """Say how far certificates can reach, and which budgets lie beyond; nothing where that is not known.

    Parameters
    ----------
    reach
        From `finite_reach`.
    budgets
        By kind.
    bounds
        Names of the collective bounds: only where the reach of all is known, budgets are said to lie beyond.
    """
    told: list[str] = []
    beyond: list[str] = []
    for kind, each in reach.items():
        farthest, alone = max(each.values()), each.get(_ALONE)
        more = "" if alone is None else f" (each output alone: {rounded_down(alone)})"
        told.append(f"{symbol(kind)} = {rounded_down(farthest)}{more}")
        sizes = budgets.get(kind, ())
        # The reach is known to a thousandth or so.
        out = sum(size > farthest * 1.002 for size in sizes)
        if out and set(bounds) <= each.keys():
            verb, which = "lies" if out == 1 else "lie", "budgets" if len(reach) == 1 else kind
            beyond.append(
                f"{out} of {len(sizes)} {which} {verb} beyond: there, even votes that all agree certify nothing."
            )
    if not told:
        return ""
    first = f"With these numbers of samples, noise and α, certificates can reach {' and '.join(told)}."
    return " ".join([first, *beyond])


def rounded_down(value: float) -> str:
    """A budget with three digits, never rounded up."""
    if value <= 0 or value == int(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(value))
    return f"{math.floor(value * 10.0**digits * (1 + 1e-12)) * 10.0**-digits:.12g}"


def certifies_beyond(items: Iterable[ItemResult], positive: Bool[np.ndarray, "rows"]) -> bool:
    """Whether anything is certified at a positive budget, of any item and target.

    Parameters
    ----------
    items
        Certified items.
    positive
        Which rows of their curves belong to a positive budget.
    """
    return any(bool((curve.certified[positive] > 0).any()) for item in items for curve in item.curves.values())
