"""Convex functions below a step function, known by the lines that support them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from localsmooth.collective.steps import Steps

__all__ = ["EnvelopeLines", "Minorant", "ReciprocalLines"]


@runtime_checkable
class Minorant(Protocol):
    """A convex function below F on the left ends start … stop − 1, given by its lines."""

    def line(self, steps: Steps, start: int, stop: int, feed: float) -> tuple[float, float]:
        """Return (intercept, slope) of the line that touches the function at ``feed``."""
        ...

    def intercept(self, steps: Steps, start: int, stop: int, slope: float) -> float:
        """Return the largest intercept of a line of this slope below the function."""
        ...


class EnvelopeLines:
    """The convex envelope: the largest convex function below F on the interval, the lower hull of the left ends."""

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

    def line(self, steps: Steps, start: int, stop: int, feed: float) -> tuple[float, float]:
        """Return a line that touches Σ max(0, 1 − s/η) + (number of targets out of reach)."""
        if start:
            raise ValueError("the linear program is a bound over the whole interval")
        position = min(max(steps.reached(feed), 1), stop) - 1
        slope = -float(steps.reciprocals[position + 1] - steps.reciprocals[stop])
        return float(steps.counts[position]), slope

    def intercept(self, steps: Steps, start: int, stop: int, slope: float) -> float:
        """Return the least of φ(s) − slope · s."""
        return self.conjugate(steps, stop, 1.0, slope)

    def conjugate(self, steps: Steps, stop: int, share: float, slope: float) -> float:
        """Return min over s ≥ 0 of share · φ(s) − slope · s, to floating-point accuracy."""
        feed, tails = steps.thresholds[:stop], steps.reciprocals[1 : stop + 1] - steps.reciprocals[stop]
        return float((share * (steps.counts[:stop] - feed * tails) - slope * feed).min())
