"""E-values of error probabilities: mixtures of Beta likelihoods, rounded down.

For a prior π on [0, 1] that is fixed before the votes, M(u) = ∫ v^x (1−v)^(n−x) dπ(v) / (u^x (1−u)^(n−x)) is, at the
true error probability u, a non-negative martingale in the number of votes n with mean 1 (x of the votes are errors). A
prior may follow the candidate stage, whose samples are independent of the votes. Here π is a mixture of a point mass
at 0 and of Beta distributions with whole parameters, so that every integral is a quotient of factorials, whose
logarithms :mod:`localsmooth.bounds.binomial` knows with a bound on the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer, Num
from scipy import special

from localsmooth.blocks import look_up
from localsmooth.bounds.binomial import log_factorial
from localsmooth.bounds.weighting import CandidateVotes

__all__ = ["BetaMixture", "Evidence", "broad_mixture", "candidate_prior", "fitted_mixture"]

_EPSILON = float(np.finfo(np.float64).eps)
# Beta(a, b): error probabilities around a / (a + b), from hopeless outputs to those that err once in a million.
_A = np.repeat([1.0, 4.0], 10)
_B = np.tile(4.0 ** np.arange(10), 2)
_NEVER, _SOMETIMES = 0.3, 0.7
# Share of every prior that stays what it was before the candidate stage, for outputs of which that stage knew little.
_KEPT = 0.05
_ROUNDS = 50


class Evidence(NamedTuple):
    """Logarithm of the integral over the prior, and a bound on its absolute error."""

    log: Float[np.ndarray, " cases"]
    error: Float[np.ndarray, " cases"]


@dataclass(frozen=True, eq=False)
class BetaMixture:
    """One prior for each class of outputs.

    Parameters
    ----------
    log_weights
        Logarithm of the weight of each component, the point mass at 0 first; the weights of a class sum to at most 1.
    errors, rights
        Votes of either kind that each class's Beta distributions are updated by.
    """

    log_weights: Float[np.ndarray, "classes components"]
    errors: Float[np.ndarray, " classes"]
    rights: Float[np.ndarray, " classes"]

    def components(self, kind: int) -> tuple[float, list[tuple[float, int, int]]]:
        """One class's prior in numbers: the weight at 0; weight, a and b of each Beta distribution.

        Parameters
        ----------
        kind
            The class.
        """
        weights = np.exp(self.log_weights[kind]) * (1 - 8 * _EPSILON)
        a, b = (_A + self.errors[kind]).astype(np.int64), (_B + self.rights[kind]).astype(np.int64)
        return float(weights[0]), list(zip(weights[1:].tolist(), a.tolist(), b.tolist(), strict=True))

    def evidence(
        self,
        errors: Float[np.ndarray, " cases"],
        trials: Float[np.ndarray, " cases"],
        kind: Integer[np.ndarray, " cases"],
    ) -> Evidence:
        """Integrate the likelihood of votes over the prior.

        Parameters
        ----------
        errors, trials
            Whole numbers: votes that are errors, and all votes.
        kind
            Class of each case.
        """
        a = _A + self.errors[kind][:, None]
        b = _B + self.rights[kind][:, None]
        after, after_error = _log_beta(a + errors[:, None], b + (trials - errors)[:, None])
        before, before_error = _log_beta(a, b)
        logs = np.empty((errors.size, 1 + _A.size))
        logs[:, 0] = np.where(errors == 0, 0.0, -np.inf)
        logs[:, 1:] = after - before
        logs += self.log_weights[kind]
        largest = logs.max(axis=1)
        total = largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1))
        error = (after_error + before_error).max(axis=1) + 64 * _EPSILON * (
            1 + np.abs(total) + (np.abs(after) + np.abs(before)).max(axis=1)
        )
        return Evidence(total, error)

    def draw_errors(
        self, kind: Integer[np.ndarray, " outputs"], trials: int, generator: np.random.Generator
    ) -> Integer[np.ndarray, " outputs"]:
        """Draw how many of an output's votes are errors, if its error probability follows the prior.

        Parameters
        ----------
        kind
            Class of each output.
        trials
            Number of votes.
        generator
            Where the draws come from.
        """
        shares = np.cumsum(np.exp(self.log_weights), axis=1)
        drawn = generator.random(kind.size) * shares[kind, -1]
        component = (drawn[:, None] >= shares[kind, :-1]).sum(axis=1)
        errs = np.flatnonzero(component)
        beta, of = component[errs] - 1, kind[errs]
        probability = np.zeros(kind.size)
        probability[errs] = generator.beta(_A[beta] + self.errors[of], _B[beta] + self.rights[of])
        return generator.binomial(trials, probability)


def broad_mixture() -> BetaMixture:
    """The prior where nothing is known of the outputs."""
    return BetaMixture(np.log(_normalised(_first()[None])), np.zeros(1), np.zeros(1))


def fitted_mixture(
    errors: Integer[np.ndarray, " classes"], trials: int, outputs: Num[np.ndarray, " classes"]
) -> BetaMixture:
    """Fit the prior to the candidate stage: to all outputs together (empirical Bayes), then to each class.

    Parameters
    ----------
    errors
        Votes of the candidate stage that were errors, one number for each class.
    trials
        Votes of that stage.
    outputs
        How many outputs each class has.
    """
    x = errors.astype(np.float64)[:, None]
    likelihood = np.empty((errors.size, 1 + _A.size))
    likelihood[:, 0] = np.where(errors == 0, 0.0, -np.inf)
    likelihood[:, 1:] = special.betaln(_A + x, _B + trials - x) - special.betaln(_A, _B)
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weights, share = _first(), outputs / outputs.sum()
    for _ in range(_ROUNDS):
        each = _normalised(likelihood * weights)
        weights = share @ each
    weights = (1 - 2 * _KEPT) * weights + 2 * _KEPT * _first()
    each = (1 - _KEPT) * _normalised(likelihood * weights) + _KEPT * weights
    with np.errstate(divide="ignore"):
        return BetaMixture(np.log(_normalised(each)), x[:, 0], trials - x[:, 0])


def candidate_prior(candidates: CandidateVotes) -> tuple[BetaMixture, Integer[np.ndarray, " outputs"]]:
    """Priors, and which of them each output has: outputs of about as many errors in the candidate stage share one.

    Parameters
    ----------
    candidates
        What the candidate stage saw.
    """
    errors = np.asarray(candidates.n - candidates.votes)
    seen = np.bincount(errors, minlength=candidates.n + 1)
    bins = np.unique((2 * np.log2(1 + np.arange(candidates.n + 1))).astype(np.int64), return_inverse=True)[1]
    members = np.bincount(bins, seen)
    middle = np.bincount(bins, seen * np.arange(candidates.n + 1)) / np.maximum(members, 1)
    used = np.flatnonzero(members)
    number = np.cumsum(members > 0) - 1
    prior = fitted_mixture(np.round(middle[used]).astype(np.int64), candidates.n, members[used])
    return prior, look_up(number[bins].astype(np.int16), errors)


def _first() -> Float[np.ndarray, " components"]:
    return np.concatenate([[_NEVER], np.full(_A.size, _SOMETIMES / _A.size)])


def _normalised(weights: Float[np.ndarray, "classes components"]) -> Float[np.ndarray, "classes components"]:
    """Scale to a sum of 1, or rounding errors less."""
    return weights / weights.sum(axis=1, keepdims=True) * (1 - 256 * _EPSILON)


def _log_beta(
    a: Float[np.ndarray, "cases components"], b: Float[np.ndarray, "cases components"]
) -> tuple[Float[np.ndarray, "cases components"], Float[np.ndarray, "cases components"]]:
    """Return log B(a, b) of whole numbers and a bound on its absolute error."""
    first, first_error = (each.reshape(a.shape) for each in log_factorial((a - 1).ravel()))
    second, second_error = (each.reshape(a.shape) for each in log_factorial((b - 1).ravel()))
    both, both_error = (each.reshape(a.shape) for each in log_factorial((a + b - 1).ravel()))
    error = first_error + second_error + both_error + 4 * _EPSILON * (first + second + both)
    return first + second - both, error
