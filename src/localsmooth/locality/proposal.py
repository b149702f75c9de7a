"""From measured locality to a level matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from localsmooth.errors import InvalidInputError
from localsmooth.layout import derived
from localsmooth.locality.measure import Measurement

__all__ = ["Proposal", "largest_levels", "propose"]

_STEPS = 8


@dataclass(frozen=True, eq=False)
class Proposal:
    """A level matrix for a wanted quality.

    Parameters
    ----------
    levels
        Level of each pair of output and input group.
    tolerance
        Share of votes that each input group alone may disturb at these levels.
    agreement
        Vote agreement of each output group under the proposed noise, all input groups noisy at once.
    wanted
        Mean vote agreement that was asked for.
    """

    levels: Float[np.ndarray, "output_groups input_groups"]
    tolerance: float
    agreement: Float[np.ndarray, "output_groups"]
    wanted: float


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


def propose(
    measurement: Measurement,
    wanted: float,
    joint: Callable[[Float[np.ndarray, "output_groups input_groups"]], Float[np.ndarray, "output_groups"]],
    sizes: Float[np.ndarray, "output_groups"] | None = None,
) -> Proposal:
    """The largest levels, with the same tolerance for every pair of groups, that keep the wanted quality.

    Every input group may disturb an output group equally much, so that noise grows where the model does not look.
    What all of them do together is measured, not guessed: the tolerance is found by bisection.

    Parameters
    ----------
    measurement
        See `measure_locality`.
    wanted
        Mean share of votes that shall be the clean prediction, in (0, 1).
    joint
        Measures the vote agreement of each output group under a level matrix; see `measure_joint`.
    sizes
        Weight of each output group in the mean; equal by default.

    Raises
    ------
    InvalidInputError
        If `wanted` is no share, or is not reached at the smallest measured level either.
    """
    if not 0 < wanted < 1:
        raise InvalidInputError("quality", f"got {wanted}", "Pass a share of votes strictly between 0 and 1")
    weights = None if sizes is None else sizes / sizes.sum()

    def attempt(tolerance: float) -> tuple[float, Proposal]:
        levels = largest_levels(measurement, tolerance)
        agreement = joint(levels)
        return float(np.average(agreement, weights=weights)), Proposal(levels, tolerance, agreement, wanted)

    low, high = 0.0, 1.0
    mean, best = attempt(high)
    if mean >= wanted:
        return best
    mean, best = attempt(low)
    if not mean >= wanted:
        raise InvalidInputError(
            "quality",
            f"{wanted:g} is wanted, and the levels that disturb nothing by themselves reach {mean:.4g} together",
            "Ask for less, or measure smaller levels",
        )
    high = 1 - wanted  # a single group that disturbs more than is allowed in all is out of the question
    mean, found = attempt(high)
    if mean >= wanted:
        return found
    for _ in range(_STEPS):
        middle = (low + high) / 2
        mean, found = attempt(middle)
        if mean >= wanted:
            low, best = middle, found
        else:
            high = middle
    return best
