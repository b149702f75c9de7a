"""From measured locality to level matrices."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from localsmooth.layout import derived
from localsmooth.locality.measure import Measurement

__all__ = ["largest_levels"]


def largest_levels(measurement: Measurement, tolerance: float) -> Float[np.ndarray, "output_groups input_groups"]:
    """For each pair, the largest level at which noise in that input group alone disturbs no more than a tolerance.

    Between two measured levels the disturbance is taken to be linear; it is raised to be monotone first, so that a
    lucky measurement at a large level does not hide a bad one at a smaller level. Levels stay within those measured.

    Parameters
    ----------
    measurement
        See `measure_locality`.
    tolerance
        Share of votes that may differ from the clean prediction, in [0, 1].
    """
    levels = measurement.levels
    disturbed = np.maximum.accumulate(1 - measurement.agreement, axis=0)
    made = np.full(disturbed.shape[1:], levels[0])
    for before, after in zip(range(len(levels) - 1), range(1, len(levels)), strict=True):
        low, high = disturbed[before], disturbed[after]
        span = high - low
        share = np.where(span > 0, (tolerance - low) / np.where(span > 0, span, 1), 1.0)
        reached = levels[before] + np.clip(share, 0, 1) * (levels[after] - levels[before])
        made = np.where(low <= tolerance, reached, made)
    return derived(made, *measurement.origins)
