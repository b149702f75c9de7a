"""Convex functions below a step function, known by the lines that support them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from localsmooth.collective.kernel.steps import Steps

__all__ = ["EnvelopeLines", "Minorant", "ReciprocalLines"]


@runtime_checkable
class Minorant(Protocol):
    """A convex function below F on the left ends start … stop − 1, given by its lines."""

    @property
    def starts(self) -> tuple[float, ...]:
        """Where to draw the first lines, as shares of the interval."""
        ...

    @property
    def around(self) -> tuple[float, ...]:
        """Where to draw the first lines instead, as multiples of a guess."""
        ...

    @property
    def spread(self) -> tuple[float, ...]:
        """Where to draw further lines on both sides of one that is missing, as shares of the way to the next ones."""
        ...

    def line(self, steps: Steps, start: int, stop: int, feed: float) -> tuple[float, float]:
        """Return (intercept, slope) of the line that touches the function at ``feed``."""
        ...

    def intercept(self, steps: Steps, start: int, stop: int, slope: float) -> float:
        """Return the largest intercept of a line of this slope below the function."""
        ...


class EnvelopeLines:
    """The convex envelope: the largest convex function below F on the interval, the lower hull of the left ends."""

    starts = (0.5,)
    around = (1.0,)
    spread = ()

    def line(self, steps: Steps, start: int, stop: int, feed: float) -> tuple[float, float]:
        """Return the hull edge over ``feed``."""
        left, right = steps.edge(start, stop, feed)
        if left == right:
            return float(steps.counts[left]), 0.0
        rise = float(steps.counts[right] - steps.counts[left])
        with np.errstate(over="ignore"):
            slope = float(np.float64(rise) / (steps.thresholds[right] - steps.thresholds[left]))
        return float(steps.counts[left]) - slope * float(steps.thresholds[left]), slope

    def intercept(self, steps: Steps, start: int, stop: int, slope: float) -> float:
        """Return the least of F(s) − slope · s."""
        return steps.lowest(start, stop, slope)[1]


class ReciprocalLines:
    """The linear program of Schuchardt et al. 2023 (Theorem 4.2, relaxed), its indicator variables projected out.

    Targets that cannot be reached count in full; each other one contributes max(0, 1 − s/η).
    """

    # Its lines cost next to nothing, and it is curved: several of them save half of the rounds.
    starts = (0.06, 0.12, 0.25, 0.4)
    around = (1.0, 0.9, 1.1)
    spread = (0.5,)

    def line(self, steps: Steps, start: int, stop: int, feed: float) -> tuple[float, float]:
        """Return a line that touches Σ max(0, 1 − s/η) + (number of targets out of reach).

        Raises
        ------
        ValueError
            For a part of the interval: this is a bound over the whole of it.
        """
        if start:
            raise ValueError("the linear program is a bound over the whole interval")
        position = min(max(steps.reached(feed), 1), stop) - 1
        reciprocals = steps.reciprocals
        return steps.counts.item(position), reciprocals.item(stop) - reciprocals.item(position + 1)

    def intercept(self, steps: Steps, start: int, stop: int, slope: float) -> float:
        """Return the least of φ(s) − slope · s."""
        return self.conjugate(steps, stop, 1.0, slope)

    def conjugate(self, steps: Steps, stop: int, share: float, slope: float) -> float:
        """Return min over s ≥ 0 of share · φ(s) − slope · s, to floating-point accuracy."""
        if share <= 0:
            return min(0.0, -slope * float(steps.thresholds[stop - 1]))
        # φ falls by R_j − R_stop between left ends j − 1 and j, less and less: the slopes cross once.
        rising = steps.reciprocals[stop:0:-1]
        crossing = stop - int(rising.searchsorted(steps.reciprocals[stop] - slope / share))
        begin, end = max(0, crossing - 2), min(stop, crossing + 3)
        feed, tails = steps.thresholds[begin:end], steps.reciprocals[begin + 1 : end + 1] - steps.reciprocals[stop]
        return float((share * (steps.counts[begin:end] - feed * tails) - slope * feed).min())
