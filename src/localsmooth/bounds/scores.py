"""Streaming tallies of scores in [0, 1], and what a bound on them provides.

Scores are rounded **down** to a fixed grid before they are tallied, and the rounded score is what is certified: it is a
function of the noisy input like any other, with values in [0, 1]. Scores of all classes, normalised and rounded down,
sum to at most 1 (the counters of `localsmooth.sampling` see to that), so that a class whose rounded score has a mean
above 1/2 under an attack is the class with the largest one. No rounding error is left to account for, the tallies are
exact integers, and adding them up in any order or grouping gives the same tally.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int, Integer, Num

from localsmooth.errors import InvalidInputError

__all__ = [
    "ScoreBound",
    "ScoreBounds",
    "ScoreHistogram",
    "ScoreMoments",
    "even_thresholds",
]

_EPSILON = float(np.finfo(np.float64).eps)
# Softmax outputs leave [0, 1] by their own rounding error.
_SLACK = 1e-5

Reference = float | Float[np.ndarray, " outputs"]


@dataclass(frozen=True)
class ScoreBounds:
    """What is known about the scores of many outputs.

    Attributes
    ----------
    mean_lower
        Lower bound on the mean score μ, in [0, 1].
    deviation_upper
        Upper bound on ζ, the mean of (score − ν)². Positive.
    reference
        The ν that belongs to ``deviation_upper``: the one asked for, moved onto the tally's grid.
    """

    mean_lower: Float[np.ndarray, " outputs"]
    deviation_upper: Float[np.ndarray, " outputs"]
    reference: Float[np.ndarray, " outputs"]


@runtime_checkable
class ScoreBound(Protocol):
    """A way to bound the mean of scores and their mean squared deviation.

    With probability 1 − level both bounds of one output hold. Nothing but the tally may depend on the samples that it
    counts: the reference comes from the candidate stage, and the bound is chosen beforehand.
    """

    # Name in configurations and reports, and whether moments are too little for it.
    name: ClassVar[str]
    needs_histogram: ClassVar[bool]

    def bounds(
        self, tally: ScoreMoments | ScoreHistogram, level: float | Float[np.ndarray, " outputs"], reference: Reference
    ) -> ScoreBounds:
        """Bound μ from below and ζ from above.

        Parameters
        ----------
        tally
            Moments of at least two samples, or a histogram, which some bounds need (`needs_histogram`).
        level
            Probability with which either bound of an output may be wrong.
        reference
            The score ν around which ζ is taken, fixed before the samples were drawn.

        Returns
        -------
        ScoreBounds
            Bounds for every output.

        Raises
        ------
        InvalidInputError
            If a level or reference is out of range, or the tally says too little.
        """
        ...


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    """Sums of the first four powers of rounded scores.

    Parameters
    ----------
    count
        Number of samples, fewer than 2^63 / scale^4 (8 million at scale 1024).
    sums
        ``sums[p - 1]`` is the sum over the samples of k^p, where k = ⌊score · scale⌋.
    scale
        Number of grid steps in [0, 1].

    Raises
    ------
    InvalidInputError
        If there are too few or too many samples, or no scores in [0, 1] have such sums.
    """

    count: int
    sums: Integer[np.ndarray, "4 outputs"]
    scale: int = 1024

    def part(self, outputs: Int[np.ndarray, " some"]) -> ScoreMoments:
        """The sums of some of the outputs."""
        return replace(self, sums=self.sums[:, outputs])

    def __post_init__(self) -> None:
        if self.count < 1 or self.count * self.scale**4 >= 2**63:
            raise InvalidInputError(
                "count",
                f"{self.count} samples at scale {self.scale} cannot be tallied exactly",
                "Draw at least one and fewer than 2^63 / scale^4 samples, or lower the scale",
            )
        sums = self.sums.astype(np.int64)
        # Powers of integers grow with their order and cannot exceed those of the largest score.
        if not (
            bool(np.all(sums >= 0))
            and bool(np.all(np.diff(sums, axis=0) >= 0))
            and bool(np.all(sums[0] <= self.count * self.scale))
        ):
            raise InvalidInputError("sums", "no scores in [0, 1] have these power sums", "Pass sums of k, k², k³, k⁴")

    @classmethod
    def of(cls, scores: Float[np.ndarray, "samples outputs"], scale: int = 1024) -> ScoreMoments:
        """Tally a batch of scores.

        Parameters
        ----------
        scores
            Score of each output's candidate, in [0, 1].
        scale
            Number of grid steps in [0, 1]. A power of two makes the rounding exact.

        Returns
        -------
        ScoreMoments
            The batch's tally, to be added to others.

        Raises
        ------
        InvalidInputError
            If a score is not a number in [0, 1].
        """
        steps = np.clip(np.floor(_checked(scores) * scale), 0, scale).astype(np.int64)
        return cls(len(scores), np.stack([(steps**p).sum(axis=0) for p in range(1, 5)]), scale)

    def __add__(self, other: ScoreMoments) -> ScoreMoments:
        """Merge with the tally of further samples of the same outputs."""
        if self.scale != other.scale or self.sums.shape != other.sums.shape:
            raise InvalidInputError("scale", "tallies of different grids or outputs", "Add tallies of one run")
        return ScoreMoments(self.count + other.count, self.sums + other.sums, self.scale)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.sums.shape[1]

    @property
    def resolution(self) -> float:
        """Square of one grid step."""
        return 1.0 / self.scale**2

    def snap(self, reference: Reference) -> Float[np.ndarray, " outputs"]:
        """Move a reference score onto the grid."""
        return np.rint(_checked_reference(reference, self.n_outputs) * self.scale) / self.scale

    def scores(self) -> tuple[Float[np.ndarray, " outputs"], Float[np.ndarray, " outputs"]]:
        """Mean and unbiased variance of the scores; the variance is rounded up."""
        first, second = self.sums[:2].astype(np.int64)
        # Integer arithmetic around a centre near the mean: nothing cancels that is not exact.
        centre = np.rint(first / self.count).astype(np.int64)
        shift = first - self.count * centre
        spread = second - 2 * centre * first + self.count * centre**2
        return first / (self.count * self.scale), self._variance(shift, spread) / self.scale**2

    def deviations(
        self, reference: Float[np.ndarray, " outputs"]
    ) -> tuple[Float[np.ndarray, " outputs"], Float[np.ndarray, " outputs"]]:
        """Mean and unbiased variance, rounded up, of (score − reference)² for a reference on the grid."""
        a = np.rint(reference * self.scale).astype(np.int64)
        first, second, third, fourth = self.sums.astype(np.int64)
        # Both results are below 2^63; intermediate products may wrap around without harm.
        squares = second - 2 * a * first + self.count * a**2
        fourths = fourth - 4 * a * third + 6 * a**2 * second - 4 * a**3 * first + self.count * a**4
        return squares / (self.count * self.scale**2), self._variance(squares, fourths) / self.scale**4

    def _variance(
        self, total: Integer[np.ndarray, " outputs"], squares: Integer[np.ndarray, " outputs"]
    ) -> Float[np.ndarray, " outputs"]:
        mean_square = squares / self.count
        spread = mean_square - (total / self.count) ** 2 + 8 * _EPSILON * mean_square
        return np.maximum(spread, 0.0) * (self.count / max(self.count - 1, 1))


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """How often each rounded score occurred.

    Parameters
    ----------
    thresholds
        The grid: increasing, from 0 to at most 1. A score is rounded down to the next threshold. Fixed beforehand.
    counts
        Number of samples per output and threshold; every output has the same number of samples.

    Raises
    ------
    InvalidInputError
        If thresholds do not ascend from 0 within [0, 1], or counts are negative or of different numbers of samples.
    """

    thresholds: Float[np.ndarray, " bins"]
    counts: Integer[np.ndarray, "outputs bins"]

    def part(self, outputs: Int[np.ndarray, " some"]) -> ScoreHistogram:
        """The counts of some of the outputs."""
        return replace(self, counts=self.counts[outputs])

    def __post_init__(self) -> None:
        t = self.thresholds
        if not (t.size > 0 and t[0] == 0 and bool(np.all(np.diff(t) > 0)) and t[-1] <= 1):
            raise InvalidInputError(
                "thresholds", "thresholds must increase from 0 to at most 1", "Use even_thresholds(128)"
            )
        if self.counts.size and self.counts.min() < 0:
            raise InvalidInputError("counts", "a count is negative", "Pass the number of samples per bin")
        totals = self.counts.sum(axis=1)
        if not (totals.size == 0 or (totals[0] >= 1 and bool(np.all(totals == totals[0])))):
            raise InvalidInputError(
                "counts", "outputs have different numbers of samples, or none", "Tally every sample for every output"
            )

    @classmethod
    def of(cls, scores: Float[np.ndarray, "samples outputs"], thresholds: Float[np.ndarray, " bins"]) -> ScoreHistogram:
        """Tally a batch of scores.

        Parameters
        ----------
        scores
            Score of each output's candidate, in [0, 1].
        thresholds
            The grid, see the class.

        Returns
        -------
        ScoreHistogram
            The batch's tally, to be added to others.

        Raises
        ------
        InvalidInputError
            If a score is not a number in [0, 1].
        """
        bins = np.searchsorted(thresholds, _checked(scores).T, side="right") - 1
        n_outputs, size = scores.shape[1], thresholds.size
        cells = np.maximum(bins, 0) + size * np.arange(n_outputs)[:, None]
        counts = np.bincount(cells.ravel(), minlength=size * n_outputs).reshape(n_outputs, size)
        return cls(thresholds, counts)

    def __add__(self, other: ScoreHistogram) -> ScoreHistogram:
        """Merge with the tally of further samples of the same outputs."""
        if self.counts.shape != other.counts.shape or not np.array_equal(self.thresholds, other.thresholds):
            raise InvalidInputError("thresholds", "tallies of different grids or outputs", "Add tallies of one run")
        return ScoreHistogram(self.thresholds, self.counts + other.counts)

    @property
    def count(self) -> int:
        """Number of samples."""
        return int(self.counts[0].sum()) if self.n_outputs else 0

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.counts.shape[0]

    @property
    def resolution(self) -> float:
        """Square of the smallest grid step."""
        return float(np.min(np.diff(self.thresholds), initial=1.0)) ** 2

    def snap(self, reference: Reference) -> Float[np.ndarray, " outputs"]:
        """Return the reference itself: a histogram can be centred anywhere."""
        return _checked_reference(reference, self.n_outputs)

    def scores(self) -> tuple[Float[np.ndarray, " outputs"], Float[np.ndarray, " outputs"]]:
        """Mean and unbiased variance of the scores; the variance is rounded up."""
        mean = self.counts @ self.thresholds / self.count
        return mean, self._variance(np.broadcast_to(self.thresholds, self.counts.shape), mean)

    def deviations(
        self, reference: Float[np.ndarray, " outputs"]
    ) -> tuple[Float[np.ndarray, " outputs"], Float[np.ndarray, " outputs"]]:
        """Mean and unbiased variance of (score − reference)²; the variance is rounded up."""
        values = (self.thresholds - reference[:, None]) ** 2
        mean = (self.counts * values).sum(axis=1) / self.count
        return mean, self._variance(values, mean)

    def _variance(
        self, values: Float[np.ndarray, "outputs bins"], mean: Float[np.ndarray, " outputs"]
    ) -> Float[np.ndarray, " outputs"]:
        squares = (self.counts * (values - mean[:, None]) ** 2).sum(axis=1)
        return squares / max(self.count - 1, 1) * (1 + 8 * _EPSILON * self.thresholds.size)


def even_thresholds(bins: int) -> Float[np.ndarray, " thresholds"]:
    """Return the grid 0, 1/bins, …, 1. A power of two makes the rounding exact.

    Parameters
    ----------
    bins
        Number of steps, at least 1.

    Returns
    -------
    Float[np.ndarray, "thresholds"]
        The bins + 1 thresholds of a :class:`ScoreHistogram`.

    Raises
    ------
    InvalidInputError
        If there is no step.
    """
    if bins < 1:
        raise InvalidInputError("bins", f"{bins} steps make no grid", "Pass a positive number, say 128")
    return np.arange(bins + 1) / bins


def _checked(scores: Num[np.ndarray, "samples outputs"]) -> Num[np.ndarray, "samples outputs"]:
    if not bool(np.all((scores >= -_SLACK) & (scores <= 1 + _SLACK))):
        raise InvalidInputError(
            "scores", "a score is not a number in [0, 1]", "Apply a softmax or sigmoid to the model's outputs"
        )
    if len(scores) == 0:
        raise InvalidInputError("scores", "there is no sample to tally", "Pass at least one sample")
    return scores


def _checked_reference(reference: Reference, n_outputs: int) -> Float[np.ndarray, " outputs"]:
    values = np.array(np.broadcast_to(np.asarray(reference, dtype=np.float64), n_outputs))
    if not bool(np.all((values >= 0) & (values <= 1))):
        raise InvalidInputError(
            "reference", "a reference score is not in [0, 1]", "Pass the candidate stage's mean score per output"
        )
    return values
