"""Bounds for many outputs that hold together.

A certificate counts outputs, so the bounds behind it must all hold at once with probability 1 − α. A
:class:`Simultaneous` strategy turns votes into lower bounds and says how many outputs its promise may still be wrong
about (``discount``); the certified count is lowered by that many.

Strategies that work by handing every output a level of its own (:class:`LevelStrategy`) serve every kind of bound,
votes or scores. Step-down tests need the votes themselves.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Integer

from localsmooth.bounds.binomial import binomial_tail
from localsmooth.bounds.cases import distinct_cases
from localsmooth.bounds.votes import clopper_pearson_lower
from localsmooth.errors import InvalidInputError, require_whole_number

__all__ = [
    "SMALLEST_LEVEL",
    "Bonferroni",
    "FixedThresholdHolm",
    "KFamilywise",
    "LevelStrategy",
    "NotSimultaneousWarning",
    "PaperHolm",
    "Simultaneous",
    "VoteBounds",
    "WeightedBonferroni",
    "require_level_strategy",
]


SMALLEST_LEVEL = 1e-100
"""Below this the special functions lose their footing; to give an output up is always sound."""


class NotSimultaneousWarning(UserWarning):
    """The bounds asked for do not hold together with the probability asked for."""


@dataclass(frozen=True)
class VoteBounds:
    """Lower bounds on the label probabilities of many outputs.

    Attributes
    ----------
    lower
        Lower bound per output, in [0, 1].
    discount
        Number of outputs by which every certified count must be lowered.
    simultaneous
        Whether, with probability 1 − α, at most ``discount`` of the bounds are wrong. False only for bounds that
        exist to reproduce published curves.
    spare
        Value to subtract from every certified sum of values, where the bounds were made for outputs of various worth.
    alone
        Where `lower` is for counts only (see :class:`CountRule`): bounds that hold for each output by itself with
        probability 1 − α, to be shown. None where `lower` holds for the outputs.
    """

    lower: Float[np.ndarray, " outputs"]
    discount: int
    simultaneous: bool = True
    alone: Float[np.ndarray, " outputs"] | None = None
    spare: float = 0.0

    @property
    def shown(self) -> Float[np.ndarray, " outputs"]:
        """What may be said of single outputs."""
        return self.lower if self.alone is None else self.alone


@runtime_checkable
class Simultaneous(Protocol):
    """How the risk α is shared among the outputs of one item.

    ``votes`` holds one count per output that takes part. Which outputs take part must not depend on these votes
    (ignored labels may be dropped; outputs with few votes may not).
    """

    # Name in configurations and reports, and whether the bounds hold together.
    name: ClassVar[str]
    simultaneous: ClassVar[bool]

    @property
    def discount(self) -> int:
        """Number of outputs to subtract from every certified count."""
        ...

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Largest level at which any one output may be bounded when every vote is unanimous."""
        ...

    def lower_bounds(
        self, votes: Integer[np.ndarray, " outputs"], n: int | Integer[np.ndarray, " outputs"], alpha: float
    ) -> VoteBounds:
        """Bound the label probability of every output from below."""
        ...


@runtime_checkable
class LevelStrategy(Simultaneous, Protocol):
    """A strategy that gives each output a level, fixed before the samples are seen."""

    def levels(self, n_outputs: int, alpha: float) -> float | Float[np.ndarray, " outputs"]:
        """Level of each output, or the one that all share."""
        ...


def require_level_strategy(strategy: object) -> LevelStrategy:
    """Return a strategy as one that works by levels.

    Raises
    ------
    InvalidInputError
        If it does not.
    """
    if not isinstance(strategy, LevelStrategy):
        raise InvalidInputError(
            "simultaneous",
            f"{getattr(strategy, 'name', strategy)} gives no output a level of its own, which this takes",
            "Use Bonferroni or KFamilywise",
        )
    return strategy


class _ByLevels(ABC):
    """What strategies share that fix a level for each output; all bounds hold together unless they say otherwise."""

    simultaneous: ClassVar[bool] = True

    @property
    def discount(self) -> int:
        """0: all bounds hold together."""
        return 0

    @abstractmethod
    def levels(self, n_outputs: int, alpha: float) -> float | Float[np.ndarray, " outputs"]:
        """Level of each output, or the one that all share."""

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Return the level that all outputs share, or that of the heaviest."""
        return float(np.max(self.levels(n_outputs, alpha)))

    def lower_bounds(
        self, votes: Integer[np.ndarray, " outputs"], n: int | Integer[np.ndarray, " outputs"], alpha: float
    ) -> VoteBounds:
        """Bound every output by Clopper–Pearson at its level."""
        return VoteBounds(clopper_pearson_lower(votes, n, self.levels(votes.size, alpha)), self.discount)


@dataclass(frozen=True)
class Bonferroni(_ByLevels):
    """Level α / outputs each. Holds under any dependence between the outputs."""

    name: ClassVar[str] = "bonferroni"

    def levels(self, n_outputs: int, alpha: float) -> float:
        """Return α / n_outputs, rounded down."""
        _check_alpha(alpha)
        _check_outputs(n_outputs)
        return math.nextafter(alpha / n_outputs, 0.0)


@dataclass(frozen=True)
class KFamilywise(_ByLevels):
    """Level k·α / outputs each, and k − 1 outputs fewer certified.

    By Markov's inequality fewer than k of the bounds fail, with probability 1 − α and under any dependence; each
    that fails costs at most one output. Source: Lehmann and Romano 2005.

    Parameters
    ----------
    k
        Number of failures that has probability at most α. To be fixed before the votes are seen
        (:func:`localsmooth.bounds.pick_k` helps).

    Raises
    ------
    InvalidInputError
        If k is no whole number of at least 1.
    """

    k: int
    name: ClassVar[str] = "k_familywise"

    def __post_init__(self) -> None:
        require_whole_number("k", self.k, 1, "Pass an integer of at least 1")

    @property
    def discount(self) -> int:
        """Number of bounds that may be wrong unnoticed, k − 1."""
        return self.k - 1

    def levels(self, n_outputs: int, alpha: float) -> float:
        """Return k·α / n_outputs, rounded down.

        Raises
        ------
        InvalidInputError
            If there are fewer outputs than k.
        """
        _check_alpha(alpha)
        _check_outputs(n_outputs)
        if self.k > n_outputs:
            raise InvalidInputError(
                "k", f"k = {self.k} exceeds the number of outputs, {n_outputs}", "Pass k of at most that number"
            )
        return math.nextafter(math.nextafter(self.k * alpha, 0.0) / n_outputs, 0.0)


@dataclass(frozen=True, eq=False)
class WeightedBonferroni(_ByLevels):
    """Level α · weight / Σ weights for each output.

    Parameters
    ----------
    weights
        Non-negative weight per output, in the outputs' order. They may come from the candidate stage, whose samples
        are independent of the votes that are bounded, and never from those votes. An output of weight 0 gives up: its
        bound is 0.

    Raises
    ------
    InvalidInputError
        If weights are negative, infinite, NaN or all 0.
    """

    weights: Float[np.ndarray, " outputs"]
    name: ClassVar[str] = "weighted_bonferroni"

    def __post_init__(self) -> None:
        total = float(np.sum(self.weights))
        if not (bool(np.all(self.weights >= 0)) and math.isfinite(total) and total > 0):
            raise InvalidInputError(
                "weights", "weights must be finite, non-negative and not all 0", "Weight each output by its promise"
            )

    def levels(self, n_outputs: int, alpha: float) -> Float[np.ndarray, " outputs"]:
        """Return each output's share of α, rounded down so that the shares sum to no more than α.

        Raises
        ------
        InvalidInputError
            If there is not one weight per output.
        """
        _check_alpha(alpha)
        _check_outputs(n_outputs)
        if self.weights.size != n_outputs:
            raise InvalidInputError(
                "weights", f"{self.weights.size} weights for {n_outputs} outputs", "Pass one weight per output"
            )
        # fsum rounds once; the factor covers that rounding, the quotient's and the product's.
        share = self.weights / math.fsum(self.weights)
        return np.asarray(share * (alpha * (1 - 8 * float(np.finfo(np.float64).eps))))

    def lower_bounds(
        self, votes: Integer[np.ndarray, " outputs"], n: int | Integer[np.ndarray, " outputs"], alpha: float
    ) -> VoteBounds:
        """Bound every output of positive weight by Clopper–Pearson at its level, the others by 0."""
        levels = self.levels(votes.size, alpha)
        playing = levels > SMALLEST_LEVEL
        lower = clopper_pearson_lower(votes, n, np.where(playing, levels, 0.5))
        return VoteBounds(np.where(playing, lower, 0.0), self.discount)


@dataclass(frozen=True)
class FixedThresholdHolm:
    """Test "probability > τ" for every output at once, by Holm's step-down procedure.

    The bound of an accepted output is τ itself and of any other 0. The family-wise error is at most α under any
    dependence, because the hypotheses are fixed beforehand. Source: Fischer et al. 2021 (SegCertify); Holm 1979.

    Parameters
    ----------
    tau
        The threshold, in (1/2, 1). Every accepted output gets the radius that belongs to τ.

    Raises
    ------
    InvalidInputError
        If the threshold is not between 1/2 and 1.
    """

    tau: float
    name: ClassVar[str] = "fixed_threshold_holm"
    simultaneous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.5 < self.tau < 1:
            raise InvalidInputError(
                "tau", f"the threshold {self.tau} cannot be tested", "Pass a value strictly between 0.5 and 1"
            )

    @property
    def discount(self) -> int:
        """0: all bounds hold together."""
        return 0

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Return α / n_outputs, the level of the first step: equal p-values all meet it or none does."""
        return Bonferroni().levels(n_outputs, alpha)

    def lower_bounds(
        self, votes: Integer[np.ndarray, " outputs"], n: int | Integer[np.ndarray, " outputs"], alpha: float
    ) -> VoteBounds:
        """Return τ for the outputs that pass the test, 0 for the others."""
        _check_alpha(alpha)
        _check_outputs(votes.size)
        p_values = _log_p_values(votes, n, self.tau)
        order = np.argsort(p_values, kind="stable")
        steps = np.log(np.nextafter(alpha / np.arange(votes.size, 0, -1), 0.0))
        passes = p_values[order] <= np.nextafter(steps, -np.inf)
        accepted = votes.size if bool(passes.all()) else int(np.argmin(passes))
        lower = np.zeros(votes.size)
        lower[order[:accepted]] = self.tau
        return VoteBounds(lower, self.discount)


@dataclass(frozen=True)
class PaperHolm:
    """Clopper–Pearson at α / (outputs + 1 − rank): **not** a simultaneous bound.

    The level of each output depends on its rank among the observed votes. Where the probabilities are well separated
    the ranks are certain, and the bounds fail together with probability 1 − Π(1 − α/k), which grows with the number
    of outputs (4 % at α = 1 % and 50 outputs). It exists to reproduce published curves and says so on every use.
    """

    name: ClassVar[str] = "paper_holm"
    simultaneous: ClassVar[bool] = False

    @property
    def discount(self) -> int:
        """0, as published; the bounds do not hold together."""
        return 0

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Return α, the level of the last rank."""
        _check_alpha(alpha)
        _check_outputs(n_outputs)
        return alpha

    def lower_bounds(
        self, votes: Integer[np.ndarray, " outputs"], n: int | Integer[np.ndarray, " outputs"], alpha: float
    ) -> VoteBounds:
        """Bound the outputs in the order of their votes, most votes first, at growing levels."""
        _check_alpha(alpha)
        _check_outputs(votes.size)
        warnings.warn(
            "paper_holm is not a simultaneous bound: the certificate built on it fails more often than alpha says. "
            "Use it to reproduce published curves only.",
            NotSimultaneousWarning,
            stacklevel=2,
        )
        order = np.argsort(-(votes / np.asarray(n)), kind="stable")
        levels = np.empty(votes.size)
        levels[order] = alpha / np.arange(votes.size, 0, -1)
        return VoteBounds(clopper_pearson_lower(votes, n, levels), self.discount, simultaneous=False)


def _log_p_values(
    votes: Integer[np.ndarray, " outputs"], n: int | Integer[np.ndarray, " outputs"], tau: float
) -> Float[np.ndarray, " outputs"]:
    """Upper bounds on log Pr[Binomial(n, τ) >= votes]; 0 for counts that are no evidence at all."""
    trials = np.broadcast_to(np.asarray(n, dtype=np.int64), votes.shape)
    if votes.size and (int(votes.min()) < 0 or bool(np.any(votes > trials))):
        raise InvalidInputError("votes", "a count lies outside 0 … n", "Pass the number of successes among n samples")
    first, case = distinct_cases(votes, trials)
    k, total = votes[first].astype(np.float64), trials[first].astype(np.float64)
    result = np.zeros(k.size)
    telling = k > total * tau
    probability = np.full(int(telling.sum()), tau)
    result[telling] = binomial_tail(k[telling], total[telling], probability).log_upper
    return result[case]


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InvalidInputError("alpha", f"the error probability is {alpha}", "Pass a value between 0 and 1, say 0.01")


def _check_outputs(n_outputs: int) -> None:
    if n_outputs < 1:
        raise InvalidInputError("n_outputs", "there is no output to bound", "Pass at least one output")
