"""Level matrices: how strongly each output group's distribution perturbs each input group.

Sources: Schuchardt et al. 2023, Section 6 and Appendix C. The distance is divided by the largest distance that
occurs, so that the maximal level is attained, as in the authors' experiments.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Real

from localsmooth.errors import InvalidInputError

__all__ = [
    "Interpolation",
    "Metric",
    "Reach",
    "chebyshev",
    "distance_levels",
    "euclidean",
    "farthest_of_each_cell",
    "farthest_of_grid",
    "linear",
    "linear_in_variance",
]

Metric = Callable[[np.ndarray], np.ndarray]
"""Maps cell positions [cells × axes] to pairwise distances [cells × cells]."""

Reach = Callable[[np.ndarray], np.ndarray]
"""Maps distances [cells × cells] to the distance at which the maximal level is reached, per row [cells × 1]."""

Interpolation = Callable[[float, float, np.ndarray], np.ndarray]
"""Maps (smallest level, largest level, fraction in [0, 1]) to levels."""


def _differences(positions: Real[np.ndarray, "cells axes"]) -> Real[np.ndarray, "cells cells axes"]:
    return np.abs(positions[:, None, :] - positions[None, :, :])


def chebyshev(positions: Real[np.ndarray, "cells axes"]) -> Real[np.ndarray, "cells cells"]:
    """Largest difference over the axes, the distance used in the paper."""
    return _differences(positions).max(axis=-1)


def euclidean(positions: Real[np.ndarray, "cells axes"]) -> Real[np.ndarray, "cells cells"]:
    """Straight-line distance between cell positions."""
    return np.sqrt((_differences(positions).astype(np.float64) ** 2).sum(axis=-1))


def farthest_of_grid(distances: Real[np.ndarray, "cells cells"]) -> Real[np.ndarray, "cells 1"]:
    """One reach for the whole grid: the largest distance between any two cells."""
    return np.full((distances.shape[0], 1), distances.max())


def farthest_of_each_cell(distances: Real[np.ndarray, "cells cells"]) -> Real[np.ndarray, "cells 1"]:
    """Each cell's own farthest cell attains the maximal level."""
    return distances.max(axis=1, keepdims=True)


def linear(minimum: float, maximum: float, fraction: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Interpolate the level itself."""
    return np.where(fraction >= 1.0, maximum, minimum + (maximum - minimum) * fraction)


def linear_in_variance(minimum: float, maximum: float, fraction: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Interpolate the squared level (the variance of Gaussian noise)."""
    inner = np.sqrt(minimum**2 + (maximum**2 - minimum**2) * fraction)
    return np.where(fraction <= 0.0, minimum, np.where(fraction >= 1.0, maximum, inner))


def distance_levels(
    positions: Real[np.ndarray, "cells axes"],
    minimum: float,
    maximum: float,
    *,
    metric: Metric = chebyshev,
    reach: Reach = farthest_of_grid,
    interpolation: Interpolation = linear,
) -> Float[np.ndarray, "cells cells"]:
    """Levels that grow with the distance between the output's cell and the input's cell.

    Parameters
    ----------
    positions
        Coordinates of each cell, in a grid or in space.
    minimum, maximum
        Level in a cell itself and at the reach, in the noise's own unit.
    metric
        Distance between cells.
    reach
        The distance at which `maximum` is attained.
    interpolation
        How the level grows in between.

    Raises
    ------
    InvalidInputError
        If a level is not finite or `maximum` is below `minimum`.
    """
    if not (np.isfinite(minimum) and np.isfinite(maximum) and minimum <= maximum):
        raise InvalidInputError(
            "levels",
            f"the smallest level {minimum} and the largest {maximum} do not form an interval",
            "Pass finite levels with minimum <= maximum",
        )
    distances = metric(positions)
    far = reach(distances)
    fraction = np.where(far > 0, distances / np.where(far > 0, far, 1), 0.0)
    return interpolation(float(minimum), float(maximum), fraction)
