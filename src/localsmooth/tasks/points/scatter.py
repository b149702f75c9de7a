"""Points as discs in a raster, the nearest in front."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from localsmooth.report import Picturing

__all__ = ["Scatter", "scatter"]

_SIDE, _PIXELS = 160, 2
_LARGEST_DISC = 4
_AROUND, _ABOVE = math.radians(-60), math.radians(22)  # where 3-D points are seen from


@dataclass(frozen=True, eq=False)
class Scatter(Picturing):
    """A picture of points.

    Parameters
    ----------
    seen
        Number of the point that each element shows; -1 for none.
    points
        How many points there are.
    near
        How near each point is, from 0 (farthest) to 1.
    view
        Along which axes they are seen.
    """

    seen: Int[np.ndarray, "rows columns"]
    near: Float[np.ndarray, "points"]
    view: str
    scale = (_PIXELS, _PIXELS)

    @property
    def note(self) -> str:
        """From where the points are seen, and how many are covered by nearer ones."""
        covered = self.near.size - np.unique(self.seen[self.seen >= 0]).size
        return self.view + (f", {covered} of {self.near.size} covered by nearer ones" if covered else "")

    def __call__(self, array: np.ndarray, outside: float | int | bool = 0) -> np.ndarray:
        """Put the values of points, which are the last axis, where these are seen."""
        return np.where(self.seen >= 0, array[..., self.seen], np.asarray(outside).astype(array.dtype))

    def shown(
        self, image: np.ndarray, bounds: tuple[float, float] | None
    ) -> tuple[np.ndarray, tuple[float, float] | None]:
        """Draw points as grays, the nearest darkest, on white."""
        del image, bounds
        return 0.75 * (1 - self.near)[None], (0.0, 1.0)


def scatter(cloud: Float[np.ndarray, "coordinates points"]) -> Scatter:
    """Draw a cloud: three coordinates from a fixed place, others along the two axes of largest extent.

    Parameters
    ----------
    cloud
        Coordinates, which come first.
    """
    places, depth, view = _projected(cloud.astype(np.float64))
    low, high = places.min(axis=1, keepdims=True), places.max(axis=1, keepdims=True)
    disc = max(1, min(_LARGEST_DISC, round(_SIDE / 4 / math.sqrt(cloud.shape[1]))))
    span = max(float((high - low).max()), np.finfo(np.float64).tiny)
    shown = (places - (low + high) / 2) / span * (_SIDE - 1 - 2 * disc)
    extent = np.abs(shown).max(axis=1)
    middle = np.ceil(extent).astype(np.int64) + disc
    columns, rows = np.round(shown + middle[:, None]).astype(np.int64)
    seen = np.full((2 * int(middle[1]) + 1, 2 * int(middle[0]) + 1), -1, dtype=np.int64)
    reach = np.arange(-disc, disc + 1)
    y, x = np.meshgrid(reach, reach, indexing="ij")
    inside = x**2 + y**2 <= (disc + 0.3) ** 2
    order = np.argsort(depth, kind="stable")  # the last one drawn is in front
    seen[rows[order, None] + y[inside], columns[order, None] + x[inside]] = order[:, None]
    depth = depth - depth.min()
    return Scatter(seen[::-1].copy(), depth / depth.max() if depth.max() > 0 else depth + 1, view)


def _projected(
    cloud: Float[np.ndarray, "coordinates points"],
) -> tuple[Float[np.ndarray, "2 points"], Float[np.ndarray, "points"], str]:
    """Where points are seen, to the right and up; how near they are; and the view in words."""
    coordinates, points = cloud.shape
    if coordinates == 3:
        sine, cosine, up = math.sin(_AROUND), math.cos(_AROUND), math.sin(_ABOVE)
        towards = np.array([math.cos(_ABOVE) * cosine, math.cos(_ABOVE) * sine, up])
        across = np.array([-sine, cosine, 0.0])
        places = np.stack([across, np.cross(towards, across)]) @ cloud
        return places, towards @ cloud, "seen from above one corner, the third coordinate up"
    if coordinates < 3:
        places = np.concatenate([cloud, np.zeros((2 - coordinates, points))])
        return places, np.zeros(points), "the two coordinates" if coordinates == 2 else "the coordinate"
    widest = np.sort(np.argsort(-np.ptp(cloud, axis=1), kind="stable")[:2])
    view = f"coordinates {widest[0] + 1} and {widest[1] + 1} of {coordinates}, which extend farthest"
    return cloud[widest], np.zeros(points), view
