"""Bounds on a label's probability that hold at every number of samples at once.

They allow sampling to stop when the answer is known. The ratio of a Beta mixture of likelihoods to the likelihood of p
is a non-negative martingale under p that starts at 1; by Ville's inequality it ever reaches 1/δ with probability at
most δ, so the p at which it has not form a confidence sequence (Robbins 1970).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Integer
from scipy import special

from localsmooth.bounds.cases import distinct_cases
from localsmooth.bounds.simultaneous import SMALLEST_LEVEL, Simultaneous, VoteBounds, require_level_strategy
from localsmooth.bounds.votes import Count, NumericalError
from localsmooth.errors import InvalidInputError

__all__ = ["VoteConfidenceSequence", "sequential_lower_bounds"]

_ROUNDS = 100


@dataclass(frozen=True)
class VoteConfidenceSequence:
    """Lower and upper bounds that hold together at every number of votes, with probability 1 − level.

    They may be looked at after any number of samples, as often as one likes, and the last look counts. The price is
    a wider interval: about as if the level were ten times smaller, for outputs that are nearly unanimous.

    Parameters
    ----------
    a, b
        Parameters of the mixing Beta distribution, fixed beforehand. The default favours outputs that are nearly
        unanimous; the bounds are valid for any output.

    Raises
    ------
    InvalidInputError
        If a parameter of the mixture is not positive and finite.
    """

    a: float = 1.0
    b: float = 0.1

    def __post_init__(self) -> None:
        for field, value in (("a", self.a), ("b", self.b)):
            if not 1e-6 <= value <= 1e6:
                raise InvalidInputError(field, f"{value} is no parameter of a mixture", "Pass a number around 1")

    def lower(
        self, votes: Integer[np.ndarray, " outputs"], n: Count, level: float | Float[np.ndarray, " outputs"]
    ) -> Float[np.ndarray, " outputs"]:
        """Bound the probabilities from below.

        Parameters
        ----------
        votes
            Successes per output so far.
        n
            Samples so far, one number or one per output.
        level
            Probability with which any bound of an output, at any time and on either side, may be wrong.

        Returns
        -------
        Float[np.ndarray, "outputs"]
            Bounds in [0, 1], rounded down; 0 for no success.

        Raises
        ------
        InvalidInputError
            If a count, number of samples or level is out of range.
        """
        return _solve(votes, n, level, self.a, self.b)

    def upper(
        self, votes: Integer[np.ndarray, " outputs"], n: Count, level: float | Float[np.ndarray, " outputs"]
    ) -> Float[np.ndarray, " outputs"]:
        """Bound the probabilities from above; parameters and errors as in :meth:`lower`."""
        failures = np.asarray(np.asarray(n) - votes.astype(np.int64))
        return np.minimum(np.nextafter(1.0 - _solve(failures, n, level, self.b, self.a), 2.0), 1.0)

    def decided(
        self,
        votes: Integer[np.ndarray, " outputs"],
        n: Count,
        level: float | Float[np.ndarray, " outputs"],
        threshold: float,
        hopeless: float | None = None,
    ) -> Bool[np.ndarray, " outputs"]:
        """Say which outputs need no further samples.

        Parameters
        ----------
        votes, n, level
            As in :meth:`lower`.
        threshold
            Label probability that the largest budget of interest asks for.
        hopeless
            Label probability at or below which an output is of no use; the threshold by default.

        Returns
        -------
        Bool[np.ndarray, "outputs"]
            True where the probability is known to exceed the threshold, or known not to exceed `hopeless`.
        """
        hopeless = threshold if hopeless is None else hopeless
        return (self.lower(votes, n, level) > threshold) | (self.upper(votes, n, level) <= hopeless)


def sequential_lower_bounds(
    sequence: VoteConfidenceSequence,
    strategy: Simultaneous,
    votes: Integer[np.ndarray, " outputs"],
    n: Count,
    alpha: float,
) -> VoteBounds:
    """Bound the label probabilities of many outputs after numbers of samples that may depend on the votes.

    Each output's sequence holds at all numbers of samples at once at its level, so the levels add up as they do for a
    number that is fixed beforehand, and the strategy's promise and discount stay what they are.

    Parameters
    ----------
    sequence
        The confidence sequence.
    strategy
        How the outputs share α, by levels.
    votes, n
        As in :meth:`VoteConfidenceSequence.lower`.
    alpha
        Probability with which the bounds may fail (beyond the strategy's discount).

    Returns
    -------
    VoteBounds
        Bounds that hold together; 0 for outputs to which the strategy gives no level.

    Raises
    ------
    InvalidInputError
        If the strategy does not work by levels, or a count or level is out of range.
    """
    levels = np.broadcast_to(require_level_strategy(strategy).levels(votes.size, alpha), votes.shape)
    playing = levels > SMALLEST_LEVEL
    lower = sequence.lower(votes, n, np.where(playing, levels, 0.5))
    return VoteBounds(np.where(playing, lower, 0.0), strategy.discount)


def _solve(
    votes: Integer[np.ndarray, " outputs"],
    n: Count,
    level: float | Float[np.ndarray, " outputs"],
    a: float,
    b: float,
) -> Float[np.ndarray, " outputs"]:
    """Return, for each output, a probability below its share of votes that the mixture has refuted."""
    columns = [np.broadcast_to(np.asarray(column), votes.shape) for column in (votes, n, level)]
    first, case = distinct_cases(*columns)
    k, trials, levels = (column[first].astype(np.float64) for column in columns)
    if not bool(np.all((k >= 0) & (k <= trials) & (trials >= 1))):
        raise InvalidInputError(
            "votes", "a count lies outside 0 … n", "Pass the number of successes among n ≥ 1 samples"
        )
    if not bool(np.all((levels > 0) & (levels < 1))):
        raise InvalidInputError("level", "confidence levels must lie strictly between 0 and 1", "Pass, say, 0.001")
    misses = trials - k
    mixture = special.betaln(k + a, misses + b) - special.betaln(a, b)
    # Refuted where k log p + (n − k) log(1 − p) lies below this, less what the log gammas may be wrong by.
    target = mixture + np.log(levels)
    target = target - 1e-14 * (trials * (1 + np.log(trials)) + np.abs(target))
    if not bool(np.all(np.isfinite(target))):
        raise NumericalError("the log beta function is not finite; no bound can be given for these counts")

    # The log likelihood is concave in log p and below k log p: Newton's steps from here stay on the refuted side.
    some = k > 0
    hits = np.where(some, k, 1.0)
    log_p = np.where(some, target / hits, -np.inf)
    for _ in range(_ROUNDS):
        p = np.exp(log_p)
        value = hits * log_p + np.where(misses > 0, misses * np.log1p(-p), 0.0)
        slope = hits - misses * p / (1 - p)
        step = np.where(some & (slope > 0), (target - value) / np.where(slope > 0, slope, 1.0), 0.0)
        if not bool(np.any(step > 1e-14)):
            break
        log_p = log_p + np.maximum(step, 0.0)
    # The solution is refuted up to rounding: step back by more than that.
    return (np.exp(log_p) * (1 - 1e-12))[case]
