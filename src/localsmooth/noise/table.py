"""Tables from which rounded noise is drawn with 64 random bits a number."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from localsmooth.noise.cumulative import UNIT, RoundedLaw

__all__ = ["GUIDE_BITS", "DrawingTable"]

GUIDE_BITS = 14
_HALF = 1 << 63
_NONE = np.iinfo(np.int64).max  # no random number is above


@dataclass(frozen=True, eq=False)
class DrawingTable:
    """A random int64 u, all values equally likely, becomes the whole number first + #{thresholds below u}.

    Parameters
    ----------
    first
        The smallest number that comes out.
    thresholds
        Ascending; the last one is below no u.
    low, high
        For each value of the first 14 bits of u, the fewest and the most thresholds that lie below u.
    error
        Bound on the total variation distance between the number and the noise, rounded, that it stands for.
    """

    first: int
    thresholds: Int[np.ndarray, " thresholds"]
    low: Int[np.ndarray, " cells"]
    high: Int[np.ndarray, " cells"]
    error: float

    @classmethod
    def of(cls, law: RoundedLaw) -> DrawingTable:
        """Round a law to multiples of 2⁻⁶⁴, and bound what that changes.

        The distance is at most that of the law to the one whose numbers beyond `first` are put on ±first, which is
        Pr[|K| > −first], and half the sum of all differences of probabilities, where each cumulative one is known up to
        the law's slack.

        Parameters
        ----------
        law
            Of the noise.
        """
        scale = UNIT >> 64
        rounded = [(value + scale // 2) // scale for value in law.cumulative]
        pairs = list(zip([0, *law.cumulative, UNIT], [0, *rounded, 1 << 64], strict=True))
        twice = sum(
            abs((upper * scale - lower * scale) - (of_upper - of_lower)) + 2 * law.slack
            for (of_lower, lower), (of_upper, upper) in itertools.pairwise(pairs)
        )
        error = (twice + 2 * law.outside) / (2 * UNIT)  # whole numbers are divided correctly rounded
        always = sum(value == 0 for value in rounded)
        # u ≥ t is u > t − 1, and unsigned numbers are taken for signed ones, which are as many.
        kept = [value - 1 - _HALF for value in rounded if 0 < value < 1 << 64]
        thresholds = np.array([*kept, _NONE], dtype=np.int64)
        cells = np.arange(-(1 << GUIDE_BITS - 1), 1 << GUIDE_BITS - 1, dtype=np.int64) << (64 - GUIDE_BITS)
        ends = cells + ((1 << 64 - GUIDE_BITS) - 1)
        low, high = (np.searchsorted(thresholds, at).astype(np.int32) for at in (cells, ends))
        for array in (thresholds, low, high):
            array.flags.writeable = False
        return cls(law.first + always, thresholds, low, high, math.nextafter(error, math.inf))
