"""What many votes would be, given few: the probabilities that few votes leave open, and votes drawn from them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from localsmooth.bounds import CandidateVotes
from localsmooth.certificates import OutputVotes

__all__ = ["draw_errors", "foretold"]

# Error probabilities that an output may have: never, and evenly spaced by their log odds.
_GRID = np.concatenate([[0.0], special.expit(np.linspace(np.log(1e-7), 6.0, 400))])
_NEVER = 0.3
_ROUNDS = 60


def draw_errors(
    errors: Int[np.ndarray, "outputs"], seen: int, trials: int, generator: np.random.Generator
) -> Int[np.ndarray, "outputs"]:
    """Draw how many of an output's votes will be errors, given how many of its pilot votes were.

    The distribution of error probabilities over the outputs is fitted to all of them together (empirical Bayes: the
    non-parametric maximum likelihood by expectation maximisation, smoothed by stopping early), and each output's
    probability is drawn from what its own votes leave of it. The priors of :mod:`localsmooth.bounds.beta_mixture` keep
    a share for outputs of which the candidate stage knew nothing, as bounds should, and foretell worse for that.

    Parameters
    ----------
    errors
        Pilot votes that were errors. Outputs should be of one kind: those of a rare class err in other ways.
    seen
        Pilot votes of each output.
    trials
        Votes that are foretold.
    generator
        Where the draws come from.
    """
    known, kind, count = np.unique(errors, return_inverse=True, return_counts=True)
    rights = seen - known
    with np.errstate(divide="ignore", invalid="ignore"):
        log = known[:, None] * np.log(_GRID) + rights[:, None] * np.log1p(-_GRID)
    log[:, 0] = np.where(known == 0, 0.0, -np.inf)
    likelihood = np.exp(log - log.max(axis=1, keepdims=True))
    weights = np.full(_GRID.size, (1 - _NEVER) / (_GRID.size - 1))
    weights[0] = _NEVER
    for _ in range(_ROUNDS):
        weights = (count / errors.size) @ _normalised(likelihood * weights)
    shares = np.cumsum(_normalised(likelihood * weights), axis=1)
    place = np.empty(errors.size, np.int64)
    for row, share in enumerate(shares):
        here = np.flatnonzero(kind == row)
        place[here] = np.searchsorted(share, generator.random(here.size), "right")
    return generator.binomial(trials, _GRID[np.minimum(place, _GRID.size - 1)])


def foretold(votes: OutputVotes, n_candidate: int, n_bound: int, generator: np.random.Generator) -> OutputVotes:
    """Votes as they may be after all samples, given those of a pilot, which its candidate stage holds.

    Both stages share each output's probability. Outputs of one candidate class are of one kind.

    Parameters
    ----------
    votes
        Of the pilot.
    n_candidate, n_bound
        N₁ and N₂ of the run that is foretold.
    generator
        Where the draws come from.
    """
    pilot = votes.candidate_votes
    assert pilot is not None
    candidate, trials = votes.candidate, n_candidate + n_bound
    missed = np.asarray(pilot.n - pilot.votes).astype(np.int64)
    errors = np.zeros(candidate.size, np.int64)
    for label in np.unique(candidate):
        here = candidate == label
        errors[here] = draw_errors(missed[here], pilot.n, trials, generator)
    first = generator.hypergeometric(errors, trials - errors, n_candidate)
    return OutputVotes(
        candidate,
        n_bound - (errors - first),
        n_bound,
        candidate_votes=CandidateVotes(n_candidate - first, n_candidate),
        clean=votes.clean,
    )


def _normalised(weights: Float[np.ndarray, "kinds grid"]) -> Float[np.ndarray, "kinds grid"]:
    return weights / weights.sum(axis=1, keepdims=True)
