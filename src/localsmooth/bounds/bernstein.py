"""Empirical Bernstein bounds on scores, from their moments.

Source: Maurer and Pontil 2009, Theorem 4: with probability 1 − δ, the mean of N samples in [0, 1] with sample variance
v is within sqrt(2 v ln(2/δ) / N) + 7 ln(2/δ) / (3 (N − 1)) of its expectation, on the side asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from localsmooth.bounds.rounding import finish, require_level
from localsmooth.bounds.scores import Reference, ScoreBounds, ScoreHistogram, ScoreMoments
from localsmooth.errors import InvalidInputError

__all__ = ["EmpiricalBernstein"]


@dataclass(frozen=True)
class EmpiricalBernstein:
    """Half of the level bounds the mean of the score s, half the mean of (s − ν)², scaled to [0, 1]."""

    name: ClassVar[str] = "empirical_bernstein"
    needs_histogram: ClassVar[bool] = False

    def bounds(
        self, tally: ScoreMoments | ScoreHistogram, level: float | Float[np.ndarray, " outputs"], reference: Reference
    ) -> ScoreBounds:
        """Bound μ from below and ζ from above; see `ScoreBound.bounds`.

        Raises
        ------
        InvalidInputError
            If a level or reference is out of range or there are fewer than two samples.
        """
        if tally.count < 2:
            raise InvalidInputError("count", "one sample has no variance", "Draw at least two samples")
        levels = require_level(level, tally.n_outputs)
        centre = tally.snap(reference)
        mean, variance = tally.scores()
        deviation, spread = tally.deviations(centre)
        largest = np.maximum(centre, 1 - centre) ** 2
        return finish(
            mean - _radius(variance, 1.0, levels / 2, tally.count),
            deviation + _radius(spread, largest, levels / 2, tally.count),
            centre,
            tally.resolution,
        )


def _radius(
    variance: Float[np.ndarray, " outputs"],
    largest: float | Float[np.ndarray, " outputs"],
    level: Float[np.ndarray, " outputs"],
    count: int,
) -> Float[np.ndarray, " outputs"]:
    """Distance of the bound from the mean of variables in [0, largest]."""
    log = np.log(2 / level)
    return np.sqrt(2 * variance * log / count) + largest * (7 * log / (3 * (count - 1)))
