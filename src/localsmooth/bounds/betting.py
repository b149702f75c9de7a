"""Betting bounds on scores, from their histogram.

For variables x in [0, 1] with mean m and a stake c in [0, 1], fixed beforehand, the capital Π (1 − c + c·x/m) has
expectation 1, and so has any mixture of such capitals over fixed stakes. By Markov's inequality the mixture exceeds
1/δ with probability at most δ, so every m at which it does is refuted (Waudby-Smith and Ramdas 2024). Each capital
falls with m, so the refuted means are an interval [0, bound]. The stakes do not follow the samples: the capital is a
function of the histogram alone, whatever the order in which the samples came.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Integer

from localsmooth.bounds.rounding import finish, require_level
from localsmooth.bounds.scores import Reference, ScoreBounds, ScoreHistogram, ScoreMoments
from localsmooth.errors import InvalidInputError

__all__ = ["Betting"]

_CHUNK = 1 << 19
_LARGEST_STAKE = 1 - 2.0**-10
_ROUNDS = 24
_PRECISION = 1e-3


@dataclass(frozen=True)
class Betting:
    """Half of the level bounds the mean of the score s, half the mean of (s − ν)², scaled to [0, 1].

    The stakes run from the one that suits the widest law with mean ν to nearly everything, evenly on a logarithmic
    scale, with extra weight at both ends.

    Parameters
    ----------
    stakes
        Number of stakes in the mixture, at least 2.

    Raises
    ------
    InvalidInputError
        For fewer than 2 stakes.
    """

    stakes: int = 16
    name: ClassVar[str] = "betting"
    needs_histogram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.stakes < 2:
            raise InvalidInputError("stakes", f"{self.stakes} stakes make no mixture", "Pass at least 2, say 16")

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
            raise InvalidInputError("tally", "betting needs the scores' histogram", "Tally a ScoreHistogram")
        levels = require_level(level, tally.n_outputs)
        centre = tally.snap(reference)
        largest = np.maximum(centre, 1 - centre) ** 2
        mean_lower, complement_lower = np.empty(centre.size), np.empty(centre.size)
        # Outputs of similar scores share the bins that occur at all; the other bins need no logarithm.
        order = np.argsort(tally.scores()[0], kind="stable")
        size = max(1, _CHUNK // (self.stakes * tally.thresholds.size))
        for start in range(0, centre.size, size):
            part = order[start : start + size]
            occurs = tally.counts[part].any(axis=0)
            counts, nu, threshold = tally.counts[part][:, occurs], centre[part], -np.log(levels[part] / 2)
            values = np.broadcast_to(tally.thresholds[occurs], counts.shape)
            mean_lower[part] = self._lower_mean(values, counts, threshold, nu)
            # ζ is bounded from above where the mean of the complement of (s − ν)² is bounded from below.
            squares = np.minimum((values - nu[:, None]) ** 2 / largest[part, None], 1.0)
            widest = 1 - nu * (1 - nu) / largest[part]
            complement_lower[part] = self._lower_mean(1 - squares, counts, threshold, widest)
        return finish(mean_lower, largest * (1 - complement_lower), centre, tally.resolution)

    def _lower_mean(
        self,
        values: Float[np.ndarray, "outputs bins"],
        counts: Integer[np.ndarray, "outputs bins"],
        threshold: Float[np.ndarray, " outputs"],
        guess: Float[np.ndarray, " outputs"],
    ) -> Float[np.ndarray, " outputs"]:
        """Return a refuted mean close to the largest one that is refuted."""
        count = float(counts[0].sum())
        stakes, log_weights = self._stakes(threshold, guess, count)
        mean = (counts * values).sum(axis=1) / count
        variance = (counts * (values - mean[:, None]) ** 2).sum(axis=1) / count
        # The gap between mean and bound: refuted above `far`, not refuted below `near`. The log capital grows about
        # with the gap's square, so its root is searched by interpolation.
        near, near_root = np.zeros_like(mean), np.zeros_like(mean)
        far, far_root = mean.copy(), np.full_like(mean, np.inf)
        gap = np.sqrt(2 * variance * threshold / count) + threshold / count
        active = np.flatnonzero(mean > 0)
        for _ in range(_ROUNDS):
            tried = np.minimum(gap[active], 0.5 * (near[active] + mean[active]))
            capital = _log_capital(
                values[active], counts[active], mean[active] - tried, stakes[active], log_weights[active]
            )
            root = np.sqrt(np.maximum(capital, 0.0))
            refuted = capital >= threshold[active]
            far[active] = np.where(refuted, tried, far[active])
            far_root[active] = np.where(refuted, root, far_root[active])
            near[active] = np.where(refuted, near[active], tried)
            near_root[active] = np.where(refuted, near_root[active], root)
            active = active[far[active] - near[active] > _PRECISION * far[active]]
            if not active.size:
                break
            low, high = near[active], far[active]
            share = (np.sqrt(threshold[active]) - near_root[active]) / (far_root[active] - near_root[active])
            inside = low + np.clip(np.nan_to_num(share) * (1 + _PRECISION), 0.02, 0.98) * (high - low)
            gap[active] = np.where(np.isfinite(far_root[active]), inside, 1.5 * low)
        return mean - far

    def _stakes(
        self, threshold: Float[np.ndarray, " outputs"], guess: Float[np.ndarray, " outputs"], count: float
    ) -> tuple[Float[np.ndarray, "outputs stakes"], Float[np.ndarray, "outputs stakes"]]:
        """Choose stakes and their log weights from what is known before sampling."""
        odds = guess / np.maximum(1 - guess, 1e-12)
        smallest = np.clip(np.sqrt(2 * threshold * odds / count), 1e-4, 0.5)
        position = np.linspace(0.0, 1.0, self.stakes)
        stakes = np.exp(np.log(smallest)[:, None] * (1 - position) + math.log(_LARGEST_STAKE) * position)
        weights = np.full(self.stakes, 0.4 / self.stakes)
        weights[0] += 0.4
        weights[-1] += 0.2
        return stakes, np.broadcast_to(np.log(weights), stakes.shape)


def _log_capital(
    values: Float[np.ndarray, "outputs bins"],
    counts: Integer[np.ndarray, "outputs bins"],
    mean: Float[np.ndarray, " outputs"],
    stakes: Float[np.ndarray, "outputs stakes"],
    log_weights: Float[np.ndarray, "outputs stakes"],
) -> Float[np.ndarray, " outputs"]:
    """Lower bound on the log of the mixed capital against one mean per output."""
    excess = values / np.maximum(mean, 1e-300)[:, None] - 1
    factors = np.log1p(stakes[:, :, None] * excess[:, None, :])
    capital = np.matmul(factors, counts[:, :, None].astype(np.float64))[:, :, 0] + log_weights
    peak = capital.max(axis=1)
    total = peak + np.log(np.exp(capital - peak[:, None]).sum(axis=1))
    # Each factor's logarithm is below 700 in size; summation adds at most one rounding error per bin.
    largest = np.abs(factors).max(axis=(1, 2))
    error = 4 * np.finfo(np.float64).eps * (values.shape[1] + 8) * (counts.sum(axis=1) * largest + np.abs(peak))
    return total - error
