"""Certified counts over a list of budgets: shares, curves and the average certifiable radius."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Real

from localsmooth.errors import InvalidInputError

__all__ = ["AverageRadius", "average_certifiable_radius", "certified_fractions", "mean_curve"]


class AverageRadius(NamedTuple):
    """Average certifiable radius (ACR), in the units of the budgets.

    Parameters
    ----------
    value
        The lower Riemann sum Σ_{n<N} ε_n (ξ(ε_n) − ξ(ε_{n+1})).
    tail
        ε_N ξ(ε_N), which `value` leaves out: what the outputs add that are still certified at the largest budget.
        Where it is not 0, the list of budgets ends too early, and `value + tail` is proven as well.
    """

    value: float
    tail: float


def certified_fractions(
    certified: Real[np.ndarray, "items budgets"], total: Real[np.ndarray, "items"]
) -> Float[np.ndarray, "items budgets"]:
    """Share of each item's counted outputs that is certified, per budget.

    Parameters
    ----------
    certified
        Certified count of each item at each budget, or what it is worth.
    total
        Number of outputs that count in each item (ignored ones left out), or what they are worth. An item with
        none gives NaN.

    Raises
    ------
    InvalidInputError
        If a count is negative or larger than its total.
    """
    if (total < 0).any():
        raise InvalidInputError("total", "an item has a negative number of outputs", "Pass counts >= 0")
    if (certified < 0).any() or (certified > total[:, None]).any():
        raise InvalidInputError(
            "certified", "a certified count lies outside 0 … total", "Pass counts and totals of the same outputs"
        )
    fractions = np.full(certified.shape, np.nan)
    counted = total > 0
    fractions[counted] = certified[counted] / total[counted, None]
    return fractions


def mean_curve(
    certified: Real[np.ndarray, "items budgets"], total: Real[np.ndarray, "items"]
) -> Float[np.ndarray, "budgets"]:
    """Certified ratio or accuracy ξ(ε): the mean over items of certified / total.

    Items without counted outputs (unlabelled ones, for certified accuracy) are left out of the mean. The mean is a
    description of the data set: each item's count holds with its own probability, the mean has no joint guarantee.

    Raises
    ------
    InvalidInputError
        If no item has a counted output, or a count does not fit its total.
    """
    fractions = certified_fractions(certified, total)
    counted = total > 0
    if not counted.any():
        raise InvalidInputError("total", "no item has an output that counts", "Pass at least one item with outputs")
    return fractions[counted].mean(axis=0)


def average_certifiable_radius(
    budgets: Float[np.ndarray, "budgets"], curve: Float[np.ndarray, "budgets"]
) -> AverageRadius:
    """Average certifiable radius of a certified-ratio or certified-accuracy curve, as a lower Riemann sum.

    Computes Σ_{n<N} ε_n (ξ(ε_n) − ξ(ε_{n+1})) (Schuchardt et al. 2023, Section 8, where ε_1 = 0). It never exceeds
    the area under the true curve; compare two methods on the same budgets only. What is certified at a budget is
    certified at every smaller one, so a curve that rises somewhere is first raised to its left.

    Parameters
    ----------
    budgets
        ε, ascending, not negative.
    curve
        ξ(ε) in [0, 1].

    Raises
    ------
    InvalidInputError
        If the budgets are not ascending, or the curve leaves [0, 1] or holds NaN.
    """
    finite = bool(np.isfinite(budgets).all())
    if budgets.size == 0 or not finite or budgets[0] < 0 or not (np.diff(budgets) > 0).all():
        raise InvalidInputError("budgets", "are not ascending numbers >= 0", "Sort them and drop repeated ones")
    if not ((curve >= 0) & (curve <= 1)).all():
        raise InvalidInputError("curve", "leaves [0, 1] or holds NaN", "Pass certified shares")
    falling = np.maximum.accumulate(curve[::-1])[::-1]
    value = float(np.sum(budgets[:-1] * (falling[:-1] - falling[1:])))
    return AverageRadius(value, float(budgets[-1] * falling[-1]))
