"""Bounds on scores from a confidence band around their distribution function.

With probability 1 − δ the empirical distribution function of N samples is nowhere farther than sqrt(ln(2/δ) / (2N))
from the true one (Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990), for discrete laws too. Both functionals are
bounded inside the band, so one δ pays for both. The approach is Kumar et al. 2020 and Schuchardt et al. 2023; the
formulas printed in the latter are not bounds, these are (see docs/guarantees.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from localsmooth.bounds.rounding import finish, require_level
from localsmooth.bounds.scores import Reference, ScoreBounds, ScoreHistogram, ScoreMoments
from localsmooth.errors import InvalidInputError

__all__ = ["CdfBand"]


@dataclass(frozen=True)
class CdfBand:
    """Summation by parts over the grid, with the upper or the lower end of the band where each is the safe one."""

    name: ClassVar[str] = "cdf_band"
    needs_histogram: ClassVar[bool] = True

    def bounds(
        self, tally: ScoreMoments | ScoreHistogram, level: float | Float[np.ndarray, " outputs"], reference: Reference
    ) -> ScoreBounds:
        """Bound μ from below and ζ from above; see `ScoreBound.bounds`.

        Raises
        ------
        InvalidInputError
            If a level or reference is out of range or the tally is not a histogram.
        """
        if not isinstance(tally, ScoreHistogram):
            raise InvalidInputError("tally", "the CDF band needs the scores' histogram", "Tally a ScoreHistogram")
        levels = require_level(level, tally.n_outputs)
        centre = tally.snap(reference)
        band = np.sqrt(np.log(2 / levels) / (2 * tally.count))[:, None]
        # F at every threshold but the last, where it is 1.
        empirical = np.cumsum(tally.counts, axis=1)[:, :-1] / tally.count
        above, below = np.minimum(empirical + band, 1.0), np.maximum(empirical - band, 0.0)
        steps = np.diff(tally.thresholds)
        mean_lower = tally.thresholds[-1] - above @ steps
        # E φ = φ(last) − Σ (φ(next) − φ(this)) F(this): a falling φ is largest where F is.
        squares = (tally.thresholds - centre[:, None]) ** 2
        falls = -np.diff(squares, axis=1)
        deviation_upper = squares[:, -1] + (falls * np.where(falls >= 0, above, below)).sum(axis=1)
        return finish(mean_lower, deviation_upper, centre, tally.resolution)
