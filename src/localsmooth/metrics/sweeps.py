"""Comparing the points of a parameter sweep."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["pareto_front"]


def pareto_front(scores: Float[np.ndarray, "points objectives"]) -> Bool[np.ndarray, "points"]:
    """Which points no other point beats, where larger is better in every objective.

    A point is beaten by one that is at least as good everywhere and better somewhere; equal points stand together.
    A point with a NaN is not comparable and never on the front.

    Parameters
    ----------
    scores
        One row per point, such as (mIoU, ACR).
    """
    usable = np.asarray(~np.isnan(scores).any(axis=1))
    front = np.array(usable)
    for point in np.flatnonzero(usable):
        others = scores[usable]
        beaten = (others >= scores[point]).all(axis=1) & (others > scores[point]).any(axis=1)
        front[point] = not beaten.any()
    return front
