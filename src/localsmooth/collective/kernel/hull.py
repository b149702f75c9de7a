"""Lower convex hulls of any range of points on a falling curve, from blocks prepared once.

Blocks double in size from level to level, and each keeps the points that may be vertices of its own lower hull. A
range is a few blocks and two short ends, so its hull costs no look at all of its points. A point is dropped only where
it lies above a chord for certain, whatever was rounded: no vertex is ever lost, and a few points too many are kept.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["Hull"]

_SMALLEST = 64
_UNIT = 2.0**-53
_REMEMBERED = 64


class Hull:
    """The lower hulls of ranges of points (x rising, y falling and whole).

    Parameters
    ----------
    x, y
        Coordinates of the points.
    """

    def __init__(self, x: Float[np.ndarray, "points"], y: Float[np.ndarray, "points"]) -> None:
        self._x, self._y = x, y
        self._levels: list[tuple[Int[np.ndarray, "_"], Int[np.ndarray, "_"]]] = []
        self._ranges: dict[tuple[int, int], Int[np.ndarray, "_"]] = {}
        kept, width = np.arange(len(x)), _SMALLEST
        while width <= len(x):
            kept = self._pruned(kept, width)
            self._levels.append((kept, np.searchsorted(kept, np.arange(0, len(x) + width, width))))
            width *= 2

    def vertices(self, start: int, stop: int) -> Int[np.ndarray, "vertices"]:
        """Return points, in order, among which are all vertices of the lower hull of points start … stop − 1."""
        known = self._ranges.get((start, stop))
        if known is None:
            known = self._pruned(self.covering(start, stop), len(self._x))
            if len(self._ranges) >= _REMEMBERED:
                self._ranges.clear()
            self._ranges[start, stop] = known
        return known

    def covering(self, start: int, stop: int) -> Int[np.ndarray, "points"]:
        """Return the points that the largest blocks which fit into a range keep."""
        parts: list[Int[np.ndarray, "_"]] = []
        at = start
        while at < stop:
            level = -1
            while level + 1 < len(self._levels):
                width = _SMALLEST << (level + 1)
                if at % width or at + width > stop:
                    break
                level += 1
            if level < 0:
                end = min(stop, (at // _SMALLEST + 1) * _SMALLEST)
                parts.append(np.arange(at, end))
            else:
                width = _SMALLEST << level
                kept, begins = self._levels[level]
                parts.append(kept[begins[at // width] : begins[at // width + 1]])
                end = at + width
            at = end
        return np.concatenate(parts)

    def _pruned(self, points: Int[np.ndarray, "_"], width: int) -> Int[np.ndarray, "_"]:
        """Drop points above a chord of their neighbours within the same block until none is left."""
        x, y, block = self._x[points], self._y[points], points // width
        inner = block[:-2] == block[2:]
        # All points at first; later only those with a new neighbour.
        above = 1 + np.flatnonzero(_above(x[:-2], x[1:-1], x[2:], y[:-2], y[1:-1], y[2:]) & inner)
        while len(above):
            keep = np.ones(len(points), dtype=np.bool_)
            keep[above] = False
            stays = np.flatnonzero(keep)
            points, x, y, block = points[stays], x[stays], y[stays], block[stays]
            gap = stays[1:] - stays[:-1] > 1
            fresh = np.flatnonzero(gap[1:] | gap[:-1]) + 1
            left, right = fresh - 1, fresh + 1
            bent = _above(x[left], x[fresh], x[right], y[left], y[fresh], y[right])
            above = fresh[bent & (block[left] == block[right])]
        return points


def _above(
    left: Float[np.ndarray, "_"],
    x: Float[np.ndarray, "_"],
    right: Float[np.ndarray, "_"],
    high: Float[np.ndarray, "_"],
    y: Float[np.ndarray, "_"],
    low: Float[np.ndarray, "_"],
) -> Bool[np.ndarray, "_"]:
    """Return where (x, y) lies above the chord from (left, high) to (right, low) for certain.

    Differences of whole numbers are exact, and every other operation rounds once, relative to its result. What leaves
    the range compares as false.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return (y - high) * (right - left) > (low - high) * (x - left) * (1 - 32 * _UNIT)
