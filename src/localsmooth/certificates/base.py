"""The interface between statistics and the collective problem."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from jaxtyping import Float, Int, Shaped

from localsmooth.errors import InvalidInputError

__all__ = ["ABSTAIN", "BaseCertificates", "Basis"]

ABSTAIN = -1
"""Prediction of an output that abstains; it is neither correct nor robust in any metric."""


class Basis(IntEnum):
    """What a certificate rests on, and so which smoothed classifier it is about."""

    NOTHING = -1
    """The output abstains: nothing is promised."""
    VOTES = 0
    """The class that the base classifier predicts most often under noise."""
    SCORES = 1
    """The class whose score has the largest mean under noise."""
    LABEL_MAPS = 2
    """A label map as a whole, as the baseline's promise words it."""


@dataclass(frozen=True, eq=False)
class BaseCertificates:
    """Output n of group i keeps its prediction for every x' with Σ_l W[i,l]·b_l < η_n.

    Parameters
    ----------
    weights
        W, rounded up: output groups × columns, where a column is an input group (or an input group per kind of
        perturbation); with a leading axis of certificates when several inequalities must all be broken. These must
        speak of one smoothed classifier: a classifier that keeps its class where one of them holds.
    eta
        η per output (with the same leading axis), rounded down; 0 abstains.
    group
        Row of the weights for each output: its output group, or a part of one.
    prediction
        Predicted class of each output, `ABSTAIN` where η is 0.
    discount
        Number of outputs to subtract from every certified count (0 unless the multiple-testing rule asks for it).
    spare
        Value to subtract from every certified sum of values, where the certificates were made for these values.
    relies_on
        `Basis` of each output's certificates; None where whoever made them knows.
    stratum
        Where the certificates are true of counts only: the stratum of each output, negative for none. In every set of
        outputs that is made of whole strata, all but `discount` certificates can be handed to an output each, of the
        same stratum, of which they are true. None where the certificates are true of their outputs.

    Raises
    ------
    InvalidInputError
        If a weight or a threshold is negative, infinite or NaN.
    """

    weights: Float[np.ndarray, "*certificates output_groups columns"]
    eta: Float[np.ndarray, "*certificates outputs"]
    group: Int[np.ndarray, "outputs"]
    prediction: Int[np.ndarray, "outputs"]
    discount: int = 0
    relies_on: Int[np.ndarray, "outputs"] | None = None
    stratum: Int[np.ndarray, "outputs"] | None = None
    spare: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.eta).all() and (self.eta >= 0).all()):
            raise InvalidInputError("eta", "a threshold is negative, infinite or NaN", "Thresholds are finite and >= 0")
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise InvalidInputError("weights", "a weight is negative, infinite or NaN", "Weights are finite and >= 0")

    @property
    def gives_away(self) -> bool:
        """Whether something is subtracted from everything that is certified."""
        return self.discount > 0 or self.spare > 0

    def require_whole(self, values: Shaped[np.ndarray, "outputs"]) -> None:
        """Refuse targets whose count the certificates say nothing about.

        Parameters
        ----------
        values
            What each output counts, 0 for those that do not; those that abstain do not matter.

        Raises
        ------
        InvalidInputError
            If the certificates are true of counts only, and not every stratum counts the same.
        """
        if self.stratum is None:
            return
        alive = self.prediction != ABSTAIN
        stratum, counted = self.stratum[alive], values[alive].astype(np.float64)
        within = stratum >= 0
        size = int(stratum.max(initial=-1)) + 1
        least, most = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(least, stratum[within], counted[within])
        np.maximum.at(most, stratum[within], counted[within])
        if bool(np.any(counted[~within] > 0)) or bool(np.any(least < most)):
            raise InvalidInputError(
                "targets",
                "the bounds hold for counts of outputs that were to be counted together, and not for these",
                "Say before bounding which outputs are targets, or share alpha by Bonferroni",
            )
