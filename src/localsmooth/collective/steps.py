"""How many predictions of one output group are left, as a function of what its inequality has been fed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["Steps", "step_function"]

_SHORT = 8192


@dataclass(frozen=True, eq=False)
class Steps:
    """A falling step function F(s): the number of targets whose threshold exceeds s.

    Parameters
    ----------
    thresholds
        0 followed by the distinct positive finite thresholds, rising: the left ends of the steps.
    counts
        F at each left end. F is constant from there to the next left end, so that a falling line added to F is
        smallest at a left end: the conjugate of F needs no convex hull.
    """

    thresholds: Float[np.ndarray, "steps"]
    counts: Float[np.ndarray, "steps"]

    def __len__(self) -> int:
        return len(self.thresholds)

    def reached(self, ceiling: float) -> int:
        """Return the number of left ends in [0, ceiling]."""
        return int(self.thresholds.searchsorted(ceiling, side="right"))

    def count(self, feed: float) -> float:
        """Return F at one value."""
        return float(self.counts[self.thresholds.searchsorted(feed, side="right") - 1])

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
        s, f = self.thresholds, self.counts
        left, right = start, stop - 1
        # The hull ends where F has reached its smallest value: left ends hold falling values, so at the last one.
        if feed >= s[right]:
            return right, right
        while right - left > 1:
            slope = float((f[right] - f[left]) / (s[right] - s[left]))
            middle, value = self.lowest(left + 1, right, slope)
            chord = float(f[left] - slope * s[left])
            if value >= chord - 1e-12 * (abs(chord) + 1.0):
                break
            if s[middle] <= feed:
                left = middle
            else:
                right = middle
        return left, right


def step_function(eta: Float[np.ndarray, "targets"]) -> Steps:
    """Count the targets that each feed leaves standing.

    Parameters
    ----------
    eta
        Thresholds η ≥ 0 of one output group's targets; 0 never stands, +∞ always does.
    """
    values, inverse = np.unique(eta[(eta > 0) & np.isfinite(eta)], return_counts=True)
    standing = float(np.count_nonzero(eta > 0))
    thresholds = np.concatenate([[0.0], values])
    counts = standing - np.concatenate([[0.0], np.cumsum(inverse, dtype=np.float64)])
    return Steps(thresholds, counts)


def split_by_group(
    eta: Float[np.ndarray, "targets"], group: Int[np.ndarray, "targets"], groups: int
) -> list[Float[np.ndarray, "_"]]:
    """Return the thresholds of each group, in one pass over the targets."""
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(groups + 1))
    arranged = eta[order]
    return [arranged[ends[i] : ends[i + 1]] for i in range(groups)]


def fallen(feed: Float[np.ndarray, "outputs"], eta: Float[np.ndarray, "outputs"]) -> Bool[np.ndarray, "outputs"]:
    """Return which outputs have been fed up to their threshold; written so that NaN counts as fallen."""
    return ~(feed < eta)
