"""How many predictions of one output group are left, as a function of what its inequality has been fed."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from localsmooth.collective.kernel.hull import Hull

__all__ = ["Steps", "left_behind", "step_functions"]

_SHORT = 8192
_HULLED = 4096
_REMEMBERED = 256


@dataclass(frozen=True, eq=False)
class Steps:
    """A falling step function F(s): the number of targets whose threshold exceeds s, or the units (`Worth`) of these.

    Parameters
    ----------
    thresholds
        0 followed by the distinct positive finite thresholds, rising: the left ends of the steps.
    counts
        F at each left end. F is constant from there to the next left end, so that a falling line added to F is
        smallest at a left end: the conjugate of F needs no convex hull.
    hull
        Hulls of all ranges, where so many questions are to come that preparing them pays.
    """

    thresholds: Float[np.ndarray, "steps"]
    counts: Float[np.ndarray, "steps"]
    hull: Hull | None = None

    def __len__(self) -> int:
        return len(self.thresholds)

    def reached(self, ceiling: float) -> int:
        """Return the number of left ends in [0, ceiling]."""
        return int(self.thresholds.searchsorted(ceiling, "right"))

    def count(self, feed: float) -> float:
        """Return F at one value."""
        return self.counts.item(self.thresholds.searchsorted(feed, "right") - 1)

    def at(self, feed: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Return F at each value."""
        return self.counts[np.searchsorted(self.thresholds, feed, side="right") - 1]

    @cached_property
    def reciprocals(self) -> Float[np.ndarray, "steps_and_one"]:
        """Σ 1/η over the targets with η at or above each left end, summed from the right (finite η only)."""
        fallen = -np.diff(self.counts)
        with np.errstate(over="ignore"):
            terms = fallen / self.thresholds[1:]
        sums = np.concatenate([np.cumsum(terms[::-1])[::-1], [0.0]])
        return np.concatenate([sums[:1], sums])

    def lowest(self, start: int, stop: int, slope: float, share: float = 1.0) -> tuple[int, float]:
        """Return the left end in start … stop − 1 where share · F(s) − slope · s is smallest, and that value.

        The slope must not be positive. Long ranges are searched in blocks: within one, share · F at its end less
        slope · s at its start bounds all values from below, and most blocks are ruled out by that.
        """
        s, f = self.thresholds, self.counts
        size = stop - start
        if self.hull is not None and size > _HULLED:
            points = self.hull.vertices(start, stop)
            lifted = share * f[points] - slope * s[points]
            index = int(lifted.argmin())
            return int(points[index]), float(lifted[index])
        if size <= _SHORT:
            lifted = share * f[start:stop] - slope * s[start:stop]
            index = int(lifted.argmin())
            return start + index, float(lifted[index])
        width = int(size**0.5)
        begins = np.arange(start, stop, width)
        ends = np.minimum(begins + width, stop)
        least = share * f[ends - 1] - slope * s[begins]
        values = share * f[begins] - slope * s[begins]
        best = int(values.argmin())
        index, value = int(begins[best]), float(values[best])
        for block in np.argsort(least, kind="stable"):
            if float(least[block]) >= value:
                break
            a, z = int(begins[block]), int(ends[block])
            lifted = share * f[a:z] - slope * s[a:z]
            inner = int(lifted.argmin())
            if float(lifted[inner]) < value:
                index, value = a + inner, float(lifted[inner])
        return index, value

    def edge(self, start: int, stop: int, feed: float, share: float = 1.0) -> tuple[int, int]:
        """Find the edge of the lower convex hull of the left ends start … stop − 1 that lies over ``feed``.

        Returns
        -------
        tuple of int
            The edge's two left ends; twice the same one where ``feed`` lies beyond the hull's last vertex.
        """
        if self.hull is not None and stop - start > _HULLED:
            points = self.hull.vertices(start, stop)
            few = Steps(self.thresholds[points], self.counts[points])
            left, right = few.edge(0, len(points), feed)
            return int(points[left]), int(points[right])
        s, f = self.thresholds, self.counts
        # The hull ends where F has reached its smallest value: left ends hold falling values, so at the last one.
        if feed >= s[stop - 1] or stop - start == 1:
            return stop - 1, stop - 1
        vertices, ends, edges = self._known(start, stop)
        at = max(1, bisect_right(ends, feed))
        left, right = vertices[at - 1], vertices[at]
        while right - left > 1 and left not in edges:
            slope = float((f[right] - f[left]) / (s[right] - s[left]))
            middle, value = self.lowest(left + 1, right, slope)
            chord = float(f[left] - slope * s[left])
            if value >= chord - 1e-12 * (abs(chord) + 1.0):
                edges.add(left)
                break
            vertices.insert(at, middle)
            ends.insert(at, float(s[middle]))
            if s[middle] <= feed:
                left, at = middle, at + 1
            else:
                right = middle
        return left, right

    def _known(self, start: int, stop: int) -> tuple[list[int], list[float], set[int]]:
        """Return the hull's vertices found so far, their thresholds, and the vertices at which a known edge begins.

        A search asks for the edges of one range again and again.
        """
        if (start, stop) not in self._ranges:
            if len(self._ranges) >= _REMEMBERED:
                self._ranges.clear()
            ends = [float(self.thresholds[start]), float(self.thresholds[stop - 1])]
            self._ranges[start, stop] = [start, stop - 1], ends, set()
        return self._ranges[start, stop]

    @cached_property
    def _ranges(self) -> dict[tuple[int, int], tuple[list[int], list[float], set[int]]]:
        return {}

    def bulge(self, start: int, stop: int, feed: float) -> tuple[int, float]:
        """Find where F rises farthest above the edge of its lower hull over ``feed``.

        Returns
        -------
        tuple
            The left end before which it does, and by how much; (0, 0.0) where no edge lies over ``feed``.
        """
        left, right = self.edge(start, stop, feed)
        if left == right:
            return 0, 0.0
        s, f = self.thresholds[left : right + 1], self.counts[left : right + 1]
        above = f[:-1] - f[0] + (f[0] - f[-1]) * ((s[1:] - s[0]) / (s[-1] - s[0]))
        index = int(above.argmax())
        return left + 1 + index, float(above[index])


def step_functions(
    eta: Float[np.ndarray, "targets"],
    group: Int[np.ndarray, "targets"],
    groups: int,
    hulls: bool = False,
    parts: Float[np.ndarray, "targets"] | None = None,
) -> list[Steps]:
    """Count each group's targets, with one sort per group.

    Parameters
    ----------
    eta
        Threshold η ≥ 0 of each target; 0 never stands, +∞ always does.
    group
        Group of each target.
    groups
        Number of groups.
    hulls
        Prepare the hulls of long step functions.
    parts
        Whole number of units of each target, which sum to less than 2⁵³; None for one each.
    """
    return [_sorted_steps(*sorted_group, hulls) for sorted_group in split_by_group(eta, group, groups, parts)]


def left_behind(
    parts: Float[np.ndarray, "targets"] | None, number: int, fallen: Int[np.ndarray, "steps"]
) -> Float[np.ndarray, "steps"]:
    """Return the units of all but the first ``fallen`` of a number of targets; exact, as units are whole."""
    if parts is None:
        return (number - fallen).astype(np.float64)
    return np.append(np.cumsum(parts[::-1])[::-1], 0.0)[fallen]


def _sorted_steps(eta: Float[np.ndarray, "targets"], parts: Float[np.ndarray, "targets"] | None, hulls: bool) -> Steps:
    first = int(eta.searchsorted(0.0, side="right"))
    end = int(eta.searchsorted(np.inf, side="left"))
    finite = eta[first:end]
    fresh = np.ones(len(finite), dtype=np.bool_)
    fresh[1:] = finite[1:] != finite[:-1]
    begins = np.flatnonzero(fresh)
    thresholds = np.concatenate([[0.0], finite[begins]])
    # What stands at a threshold is everything sorted behind its last copy.
    fallen_so_far = np.append(begins, len(finite))
    counts = left_behind(None if parts is None else parts[first:], len(eta) - first, fallen_so_far)
    hull = Hull(thresholds, counts) if hulls and len(thresholds) > _HULLED else None
    return Steps(thresholds, counts, hull)


def split_by_group(
    eta: Float[np.ndarray, "targets"],
    group: Int[np.ndarray, "targets"],
    groups: int,
    parts: Float[np.ndarray, "targets"] | None = None,
) -> list[tuple[Float[np.ndarray, "_"], Float[np.ndarray, "_"] | None]]:
    """Return the sorted thresholds of each group, and the units in the same order."""
    # Small labels sort in linear time.
    labels = group.astype(np.uint16) if groups <= 1 << 16 else group
    order = np.argsort(labels, kind="stable") if parts is None else np.lexsort((eta, labels))
    arranged = eta[order]
    ends = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))]).tolist()
    slices = [slice(a, z) for a, z in itertools.pairwise(ends)]
    for own in slices if parts is None else ():
        arranged[own].sort()
    return [(arranged[own], None if parts is None else parts[order[own]]) for own in slices]
