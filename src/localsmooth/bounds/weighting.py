"""Weights for Bonferroni's rule from the candidate stage, whose samples are independent of those that are bounded.

An output whose candidate got few of the first votes will hardly be certified, and one whose bound clears every
threshold with room to spare does not need its share of α: the others put it to better use (Holm 1979; Wasserman and
Roeder 2006). Whatever the weights, the bounds hold together, since the levels sum to α and none of them depends on the
votes that are bounded.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Integer
from scipy import special, stats

from localsmooth.bounds.simultaneous import Bonferroni, LevelStrategy, Simultaneous, VoteBounds, WeightedBonferroni
from localsmooth.bounds.votes import Count
from localsmooth.errors import InvalidInputError

__all__ = ["EVEN_BUDGETS", "CandidateRule", "CandidateVotes", "CandidateWeights", "CountRule", "Sharing", "complete"]

EVEN_BUDGETS = tuple(float(t) for t in special.ndtr(np.arange(74) / 20))
"""What evenly spaced budgets ask of label probabilities under Gaussian noise, so closely that bounds between matter."""

_STEPS_PER_DECADE = 8
_SMALLEST_WEIGHT = 1e-6
_LOGIT = np.linspace(special.logit(1e-3), special.logit(1 - 1e-6), 200)


@dataclass(frozen=True, eq=False)
class CandidateVotes:
    """What the candidate stage saw of each output's candidate.

    Parameters
    ----------
    votes
        How many of its samples predicted the candidate that they chose.
    n
        Number of its samples (N₁).

    Raises
    ------
    InvalidInputError
        If a count is negative, or larger than the number of samples.
    """

    votes: Integer[np.ndarray, " outputs"]
    n: int

    def __post_init__(self) -> None:
        if not (self.n >= 1 and bool(np.all((self.votes >= 0) & (self.votes <= self.n)))):
            raise InvalidInputError(
                "candidate_votes", f"a count lies outside 0 … {self.n}", "Pass the votes of the candidate stage"
            )


@runtime_checkable
class CandidateRule(Protocol):
    """A way to share α that is complete only once the candidate stage is known.

    Its promise must not depend on what the candidate stage saw, and it never sees the votes that are bounded.
    """

    # Name in configurations and reports, and whether the bounds hold together.
    name: ClassVar[str]
    simultaneous: ClassVar[bool]

    @property
    def discount(self) -> int:
        """Number of outputs to subtract from every certified count."""
        ...

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Largest level at which any one output may be bounded, whatever the candidate stage sees."""
        ...

    def from_candidates(self, candidates: CandidateVotes, n_bound: int, alpha: float) -> LevelStrategy:
        """Fix every output's level.

        Parameters
        ----------
        candidates
            What the candidate stage saw.
        n_bound
            Samples that will bound the probabilities (N₂).
        alpha
            Probability with which the bounds may fail.
        """
        ...


@runtime_checkable
class CountRule(Protocol):
    """A way to bound counts of outputs, in place of every output.

    Its bounds are true for how many outputs of a stratum reach any probability, less the discount that they come with,
    not for single outputs. Where it says `anytime`, at all numbers of votes at once, which may then depend on them.
    """

    # Name in configurations and reports, and whether the counts hold; at every number of samples at once, too?
    name: ClassVar[str]
    simultaneous: ClassVar[bool]
    anytime: ClassVar[bool]

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Level at which no output is ever bounded more strictly when every vote is unanimous."""
        ...

    def count_bounds(
        self,
        votes: Integer[np.ndarray, " outputs"],
        n: Count,
        alpha: float,
        stratum: Integer[np.ndarray, " outputs"],
        candidates: CandidateVotes | None = None,
        worth: Float[np.ndarray, " outputs"] | None = None,
    ) -> VoteBounds:
        """Bound the votes; see :meth:`localsmooth.bounds.JointCount.count_bounds`."""
        ...


Sharing = Simultaneous | CandidateRule | CountRule
"""How α is shared among the outputs of one item: fixed, after the candidate stage, or for counts alone."""


def complete(
    rule: Simultaneous | CandidateRule, candidates: CandidateVotes | None, n_bound: int, alpha: float
) -> Simultaneous:
    """Give a rule that waits for the candidate stage what it waits for; others stay as they are.

    Parameters
    ----------
    rule
        The rule.
    candidates, n_bound, alpha
        As in :meth:`CandidateRule.from_candidates`; None where the candidate stage's votes were not kept.

    Raises
    ------
    InvalidInputError
        If the rule waits for the candidate stage, and its votes were not kept.
    """
    if not isinstance(rule, CandidateRule):
        return rule
    if candidates is None:
        raise InvalidInputError(
            "simultaneous",
            f"{rule.name} takes its weights from the candidate stage, whose votes were not kept with these tallies",
            "Run the same certification into the run directory again, which samples nothing and keeps them, or use "
            "Bonferroni",
        )
    return rule.from_candidates(candidates, n_bound, alpha)


@dataclass(frozen=True)
class CandidateWeights:
    """Weighted Bonferroni with the weights that promise the most certified outputs after the candidate stage.

    Each output's label probability is taken to follow the prior, updated by its votes in the candidate stage. The
    levels maximise the expected number of pairs of an output and a threshold below its bound, if α is to be spent.
    The guess matters for the strength of the certificate alone.

    Parameters
    ----------
    thresholds
        Label probabilities that the budgets of interest ask for, each in (0, 1); by default those of evenly spaced
        budgets under Gaussian noise, from 1/2 to 0.9999.
    prior
        Parameters (a, b) of the Beta distribution that label probabilities are expected to follow.

    Raises
    ------
    InvalidInputError
        If a number is out of range.
    """

    thresholds: Sequence[float] = EVEN_BUDGETS
    prior: tuple[float, float] = (1.0, 0.1)
    name: ClassVar[str] = "weighted_bonferroni"
    simultaneous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (len(self.thresholds) > 0 and all(0 < threshold < 1 for threshold in self.thresholds)):
            raise InvalidInputError("thresholds", "thresholds must lie in (0, 1)", "Pass at least one probability")
        if not (0 < self.prior[0] < math.inf and 0 < self.prior[1] < math.inf):
            raise InvalidInputError("prior", "Beta parameters must be positive", "Pass two positive numbers")

    @property
    def discount(self) -> int:
        """0: all bounds hold together."""
        return 0

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Return α: a single output may get all of it."""
        Bonferroni().levels(n_outputs, alpha)  # refuses what no strategy could use
        return alpha

    def from_candidates(self, candidates: CandidateVotes, n_bound: int, alpha: float) -> WeightedBonferroni:
        """Choose the weights; of outputs with equal votes the first ones in order come first where α runs out.

        Raises
        ------
        InvalidInputError
            If there is no output, or α or the number of samples is out of range.
        """
        equal = Bonferroni().levels(candidates.votes.size, alpha)
        if n_bound < 1:
            raise InvalidInputError("n_bound", f"{n_bound} votes bound nothing", "Pass a positive number of votes")
        counts, case = np.unique(candidates.votes, return_inverse=True)
        steps = math.ceil(_STEPS_PER_DECADE * math.log10(alpha / (equal * _SMALLEST_WEIGHT)))
        levels = alpha * 10 ** (-np.arange(steps + 1) / _STEPS_PER_DECADE)
        gain = self._gain(counts, candidates.n, n_bound, levels)
        chosen = _spend(gain, levels, case, alpha)
        return WeightedBonferroni(chosen if chosen.any() else np.ones(case.size))

    def _gain(
        self, counts: Integer[np.ndarray, " counts"], n_candidate: int, n_bound: int, levels: Float[np.ndarray, " l"]
    ) -> Float[np.ndarray, "counts l"]:
        """Expected number of thresholds below the bound of an output with each count, at each level."""
        exceeds = _expected_passes(n_bound, tuple(self.thresholds), tuple(levels.tolist()))
        # Density of the updated prior on the logit scale, where evenly spaced points weigh the same.
        probability = special.expit(_LOGIT)
        a, b = self.prior
        log_density = (counts[:, None] + a) * np.log(probability) + (n_candidate - counts[:, None] + b) * np.log1p(
            -probability
        )
        posterior = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        return (posterior / posterior.sum(axis=1, keepdims=True)) @ exceeds


@functools.lru_cache(maxsize=4)  # the same for all items of one size
def _expected_passes(
    n_bound: int, thresholds: tuple[float, ...], levels: tuple[float, ...]
) -> Float[np.ndarray, "probabilities l"]:
    """Expected number of thresholds below the bound, for each label probability and level."""
    passes = np.zeros((_LOGIT.size, len(levels)))
    for threshold in thresholds:
        if n_bound * math.log(threshold) >= math.log(levels[0]):
            continue  # not even unanimous votes would reach it
        # One less than the smallest number of votes whose bound reaches the threshold.
        critical = np.nan_to_num(stats.binom.isf(np.array(levels), n_bound, threshold), nan=n_bound)
        passes += stats.binom.sf(critical, n_bound, special.expit(_LOGIT)[:, None])
    passes = np.nan_to_num(passes)
    passes.setflags(write=False)
    return passes


def _spend(
    gain: Float[np.ndarray, "counts l"],
    levels: Float[np.ndarray, " l"],
    case: Integer[np.ndarray, " outputs"],
    alpha: float,
) -> Float[np.ndarray, " outputs"]:
    """Levels per output that maximise the total gain, up to the last output that can be served, by Lagrange."""
    members = np.bincount(case)

    def best(log_price: float) -> Float[np.ndarray, " counts"]:
        worth = gain - math.exp(log_price) * levels
        at = worth.argmax(axis=1)
        return np.where(np.take_along_axis(worth, at[:, None], axis=1)[:, 0] > 0, levels[at], 0.0)

    low, high = -60.0, 60.0 - math.log(levels[-1])
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if members @ best(middle) <= alpha else (middle, high)
    frugal, lavish = best(high)[case], best(low)[case]
    # Between the two prices the optimum jumps: serve as many outputs as can be paid for, the most certain first.
    order = np.argsort(-case, kind="stable")
    further = np.maximum(lavish - frugal, 0.0)[order]
    paid = np.cumsum(further) <= alpha - frugal.sum()
    frugal[order[paid]] += further[paid]
    return frugal
