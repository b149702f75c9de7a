"""Finite, smaller weights for perturbations that come in whole flips."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

__all__ = ["cap_weights"]


def cap_weights(
    weights: Float[np.ndarray, "output_groups columns"],
    eta: Float[np.ndarray, "outputs"],
    group: Int[np.ndarray, "outputs"],
) -> Float[np.ndarray, "output_groups columns"]:
    """Lower each weight, infinite ones included, to the largest threshold of its output group.

    A column that heavy breaks every output of the group with a single flip, before and after. Sound and without
    loss where the budgets b are whole numbers, and tighter than the original where a solver relaxes them.

    Parameters
    ----------
    weights, eta, group
        As in `BaseCertificates`, without a leading axis.
    """
    largest = np.zeros(weights.shape[0])
    np.maximum.at(largest, group, eta)
    return np.minimum(weights, np.where(largest > 0, largest, 1.0)[:, None])
