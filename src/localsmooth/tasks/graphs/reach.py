"""What a node tolerates on its own, for pairs of budgets."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.certificates import BaseCertificates
from localsmooth.noise import FlipCaps

__all__ = ["broken_nodes", "robust_alone"]

# Sums of products of floats may be this much too small.
_SLACK = 1e-9


def robust_alone(
    base: BaseCertificates,
    caps: FlipCaps,
    additions: Int[np.ndarray, "additions"],
    deletions: Int[np.ndarray, "deletions"],
) -> Bool[np.ndarray, "additions deletions nodes"]:
    """Whether each node keeps its prediction under any attack within a pair of budgets.

    Parameters
    ----------
    base
        Certificates with columns (additions, deletions) × input groups.
    caps
        Zeros and ones of each input group.
    additions, deletions
        Budgets ε⁺ and ε⁻.
    """
    groups = caps.additions.size
    weights = base.weights.reshape(-1, *base.weights.shape[-2:])
    eta = base.eta.reshape(-1, base.group.size)
    added = _most(weights[..., :groups], caps.additions, additions)
    deleted = _most(weights[..., groups:], caps.deletions, deletions)
    # The worst of each kind: [certificates, output groups, additions, deletions].
    spent = (added[..., :, None] + deleted[..., None, :]) * (1 + _SLACK)
    safe = spent[:, base.group] < eta[..., None, None]
    return np.moveaxis(np.asarray(safe.any(axis=0)), 0, -1)


def _most(
    weights: Float[np.ndarray, "certificates output_groups input_groups"],
    caps: Int[np.ndarray, "input_groups"],
    budgets: Int[np.ndarray, "budgets"],
) -> Float[np.ndarray, "certificates output_groups budgets"]:
    """Largest W·b for one kind of flip: the heaviest input groups first, each as far as it has bits."""
    order = np.argsort(-weights, axis=-1, kind="stable")
    heaviest, room = np.take_along_axis(weights, order, axis=-1), caps[order]
    before = np.cumsum(room, axis=-1) - room
    spent = np.clip(budgets[:, None] - before[..., None, :], 0, room[..., None, :])
    return (spent * heaviest[..., None, :]).sum(axis=-1)


def broken_nodes(base: BaseCertificates, attack: Float[np.ndarray, "columns"]) -> Bool[np.ndarray, "nodes"]:
    """Whether each node's certificates no longer hold under a spending."""
    weights = base.weights.reshape(-1, *base.weights.shape[-2:])
    eta = base.eta.reshape(-1, base.group.size)
    return np.asarray(((weights @ attack)[:, base.group] * (1 + _SLACK) >= eta).all(axis=0))
