"""Votes or scores: the one smoothed classifier that each output's certificates are about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.blocks import blocks
from localsmooth.certificates.contract import Thresholds
from localsmooth.errors import InvalidInputError

__all__ = ["OneBasis", "one_basis"]

_FARTHEST = 1e9


class OneBasis(NamedTuple):
    """Certificates of outputs that rely on votes or on scores, each on one of the two."""

    thresholds: Thresholds
    """Weights and thresholds; the rows of the weights are those that `group` names."""

    group: Int[np.ndarray, "outputs"]
    """Row of the weights for each output. Outputs of one group that rely on different statistics have two rows."""

    scored: Bool[np.ndarray, "outputs"]
    """Whether an output relies on scores."""


def one_basis(votes: Thresholds, scores: Thresholds, group: Int[np.ndarray, "outputs"]) -> OneBasis:
    """Let each output rely on votes or on scores, whichever tolerates more.

    Certificates from votes and from scores must not be stacked. Where votes hold an output at one input and scores at
    another, two different classifiers keep its class there, and perhaps none of the two does so at both. Choosing
    after looking at the bounds is sound if those of both kinds hold together: all certificates are then true, and
    each output is promised what one classifier keeps.

    Parameters
    ----------
    votes, scores
        Certificates of the same outputs, output groups and columns, from bounds that hold together. Each may have a
        leading axis, of certificates about one classifier.
    group
        Output group of each output.

    Raises
    ------
    InvalidInputError
        If the two speak of different groups, columns or outputs.
    """
    by_votes, by_scores = _stacked(votes), _stacked(scores)
    if by_votes[0].shape[1:] != by_scores[0].shape[1:] or by_votes[1].shape[1:] != by_scores[1].shape[1:]:
        raise InvalidInputError(
            "thresholds", "the certificates speak of different groups or outputs", "Combine those of one layout"
        )
    reach = _reach(*by_votes, group)
    scored = _reach(*by_scores, group) > reach
    if not scored.any():
        return OneBasis(votes, group, scored)
    if (scored | (reach == 0)).all():
        # Where neither tolerates anything, votes are named, so that scores must promise nothing.
        return OneBasis(Thresholds(scores[0], np.where(scored, scores[1], 0.0)), group, scored)
    most = max(len(by_votes[0]), len(by_scores[0]))
    (vote_weights, vote_eta), (score_weights, score_eta) = _padded(*by_votes, most), _padded(*by_scores, most)
    eta = np.where(scored, score_eta, vote_eta)
    if np.array_equal(vote_weights, score_weights):
        return OneBasis(
            Thresholds(vote_weights[0], eta[0]) if most == 1 else Thresholds(vote_weights, eta), group, scored
        )
    weights = np.concatenate([vote_weights, score_weights], axis=1)
    rows = group + scored * vote_weights.shape[1]
    return OneBasis(Thresholds(weights[0], eta[0]) if most == 1 else Thresholds(weights, eta), rows, scored)


def _stacked(thresholds: Thresholds) -> Thresholds:
    """With a leading axis of certificates."""
    weights, eta = thresholds
    return Thresholds(weights.reshape(-1, *weights.shape[-2:]), eta.reshape(-1, eta.shape[-1]))


def _padded(
    weights: Float[np.ndarray, "certificates output_groups columns"],
    eta: Float[np.ndarray, "certificates outputs"],
    most: int,
) -> Thresholds:
    """Fill up to so many certificates with some that promise nothing."""
    missing = most - len(weights)
    return Thresholds(
        np.concatenate([weights, np.zeros((missing, *weights.shape[1:]))]),
        np.concatenate([eta, np.zeros((missing, eta.shape[1]))]),
    )


def _reach(
    weights: Float[np.ndarray, "certificates output_groups columns"],
    eta: Float[np.ndarray, "certificates outputs"],
    group: Int[np.ndarray, "outputs"],
) -> Float[np.ndarray, "outputs"]:
    """How much an output tolerates in one column alone, on a logarithmic scale, in the mean over the columns."""
    made = np.empty(group.size)
    for block in blocks(group.size):
        alone = np.zeros((made[block].size, weights.shape[2]))
        for certificate, threshold in zip(weights, eta[:, block], strict=True):
            own = certificate[group[block]]
            most = np.full_like(own, _FARTHEST)
            with np.errstate(over="ignore"):
                np.divide(threshold[:, None], own, out=most, where=own > 0)
            alone = np.maximum(alone, np.where(threshold[:, None] > 0, np.minimum(most, _FARTHEST), 0.0))
        made[block] = np.log1p(alone).mean(axis=1)
    return made
