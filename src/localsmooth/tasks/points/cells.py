"""Layouts over cells of points: whoever is near in a reference shares a noise level.

Which cell a point is in must not depend on the coordinates that are certified: cells would change with the
perturbation, and the smoothed classifier with them. So cells are given, or come from a *reference* whose points have
the same order: a template, an earlier scan. What is computed here remembers its reference, and does not certify it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int, Num, Real
from scipy.spatial import KDTree
from sklearn.cluster import KMeans

from localsmooth.errors import InvalidInputError
from localsmooth.layout import (
    Interpolation,
    Layout,
    Partition,
    Reach,
    derived,
    distance_levels,
    euclidean,
    farthest_of_grid,
    item_digest,
    linear,
    origins_of,
)

__all__ = ["cell_layout", "fit_centres", "nearest_cells"]

Cloud = Num[np.ndarray, "points coordinates"]


def cell_layout(
    cells: Int[np.ndarray, "points"],
    centres: Real[np.ndarray, "cells coordinates"],
    minimum: float,
    maximum: float,
    *,
    reach: Reach = farthest_of_grid,
    interpolation: Interpolation = linear,
) -> Layout:
    """Let the noise grow with the distance between the cells of an output's point and an input's point.

    Parameters
    ----------
    cells
        Cell of each point, for example from `nearest_cells`; cells without points are left out.
    centres
        Where each cell is.
    minimum, maximum
        Noise level in a point's own cell and at the farthest cell, in the units of the coordinates.
    reach, interpolation
        See `distance_levels`.

    Raises
    ------
    InvalidInputError
        If a cell has no centre, a centre is not finite, or the levels form no interval.
    """
    used, labels = np.unique(np.asarray(cells), return_inverse=True)
    if used.size == 0 or used[0] < 0 or used[-1] >= len(centres):
        numbers = f"from {used[0]} to {used[-1]}" if used.size else "of no point at all"
        raise InvalidInputError(
            "cells", f"there are cells {numbers} and {len(centres)} centres", "Number the cells as the centres"
        )
    _require_finite("centres", centres)
    levels = distance_levels(
        np.asarray(centres, dtype=np.float64)[used],
        minimum,
        maximum,
        metric=euclidean,
        reach=reach,
        interpolation=interpolation,
    )
    partition = Partition(derived(labels.astype(np.int32), *origins_of(cells)))
    return Layout(partition, partition, derived(levels, *origins_of(centres)))


def nearest_cells(reference: Cloud, centres: Real[np.ndarray, "cells axes"]) -> Int[np.ndarray, "points"]:
    """Cell of each point: the number of the centre that is nearest in a reference.

    Parameters
    ----------
    reference
        Where each point is in something else than what is certified, with the points in the same order.
    centres
        Where the cells are, for example from `fit_centres`.

    Returns
    -------
    Int[np.ndarray, "points"]
        Cells that remember the reference: a layout made of them does not certify it.

    Raises
    ------
    InvalidInputError
        If the two have different coordinates, or one is empty or not finite.
    """
    _require_finite("reference", reference)
    _require_finite("centres", centres)
    if reference.shape[1] != centres.shape[1]:
        raise InvalidInputError(
            "centres",
            f"they have {centres.shape[1]} coordinates, and the points of the reference {reference.shape[1]}",
            "Pass arrays of shape (points, coordinates)",
        )
    found = KDTree(np.asarray(centres, dtype=np.float64)).query(np.asarray(reference, dtype=np.float64))[1]
    return derived(np.asarray(found, dtype=np.int64), item_digest(reference), *origins_of(reference, centres))


def fit_centres(
    reference: Cloud | Sequence[Num[np.ndarray, "_ coordinates"]], count: int, seed: int = 0
) -> Float[np.ndarray, "cells coordinates"]:
    """Find centres of cells by k-means.

    Parameters
    ----------
    reference
        One cloud or several, none of which is certified with these centres.
    count
        Number of cells.
    seed
        Seed of the first guess.

    Returns
    -------
    Float[np.ndarray, "cells coordinates"]
        Centres that remember the reference: a layout made of them does not certify it.

    Raises
    ------
    InvalidInputError
        If a reference is empty or not finite, or has fewer different points than there are to be cells.
    """
    references = [reference] if isinstance(reference, np.ndarray) else list(reference)
    for one in references or [np.zeros((0, 0))]:
        _require_finite("reference", one)
    points = np.concatenate([np.asarray(one, dtype=np.float64) for one in references])
    distinct = len(np.unique(points, axis=0))
    if not 1 <= count <= distinct:
        raise InvalidInputError(
            "count", f"got {count} for {distinct} different points", "Ask for at least one cell, and no more than that"
        )
    fitted = KMeans(count, random_state=seed).fit(points).cluster_centers_
    return derived(np.ascontiguousarray(fitted), *map(item_digest, references), *origins_of(*references))


def _require_finite(field: str, points: Num[np.ndarray, "..."]) -> None:
    if points.ndim != 2 or points.size == 0 or not np.isfinite(points).all():
        raise InvalidInputError(
            field,
            f"an array of shape {points.shape} that is empty, not two-dimensional, or holds NaN or infinity",
            "Pass finite numbers of shape (points, coordinates)",
        )
