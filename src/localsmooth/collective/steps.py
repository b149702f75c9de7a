"""How many predictions of one output group are left, as a function of what its inequality has been fed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["Steps", "step_function"]


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
            lifted = f[left + 1 : right] - slope * s[left + 1 : right]
            lowest = int(lifted.argmin())
            chord = float(f[left] - slope * s[left])
            if float(lifted[lowest]) >= chord - 1e-12 * (abs(chord) + 1.0):
                break
            middle = left + 1 + lowest
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
