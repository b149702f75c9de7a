"""The interface between statistics and the collective problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError

__all__ = ["ABSTAIN", "BaseCertificates"]

ABSTAIN = -1
"""Prediction of an output that abstains; it is neither correct nor robust in any metric."""


@dataclass(frozen=True, eq=False)
class BaseCertificates:
    """Output n of group i keeps its prediction for every x' with Σ_l W[i,l]·b_l < η_n.

    Parameters
    ----------
    weights
        W, rounded up: output groups × columns, where a column is an input group (or an input group per kind of
        perturbation); with a leading axis of certificates when several inequalities must all be broken.
    eta
        η per output (with the same leading axis), rounded down; 0 abstains.
    group
        Output group of each output.
    prediction
        Predicted class of each output, `ABSTAIN` where η is 0.
    discount
        Number of outputs to subtract from every certified count (0 unless the multiple-testing rule asks for it).
    """

    weights: Float[np.ndarray, "*certificates output_groups columns"]
    eta: Float[np.ndarray, "*certificates outputs"]
    group: Int[np.ndarray, "outputs"]
    prediction: Int[np.ndarray, "outputs"]
    discount: int = 0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.eta).all() and (self.eta >= 0).all()):
            raise InvalidInputError("eta", "a threshold is negative, infinite or NaN", "Thresholds are finite and >= 0")
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise InvalidInputError("weights", "a weight is negative, infinite or NaN", "Weights are finite and >= 0")
