"""Strictly local certificates: a depth-limited network cannot see beyond its receptive fields.

Source: Schuchardt et al. 2021 (collective certificates from receptive fields), which this is where the noise is the
same everywhere; combined with localized noise it also holds group by group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int

from localsmooth.certificates import BaseCertificates, cap_weights
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Partition, atoms_of
from localsmooth.tasks.graphs.graph import shape_of

__all__ = ["LocalCertificates", "receptive_fields", "receptive_nodes", "strictly_local"]


@dataclass(frozen=True, eq=False)
class LocalCertificates:
    """Certificates with weight 0 outside the receptive fields, on groups that are fine enough to say so.

    Parameters
    ----------
    base
        One output group for each distinct receptive field (and former output group).
    inputs
        The new input group of each node, to count caps on.
    """

    base: BaseCertificates
    inputs: Partition


def receptive_fields(adjacency: sp.csr_array, outputs: Int[np.ndarray, "outputs"], hops: int) -> sp.csr_array:
    """Nodes within so many hops of each output, as a boolean matrix outputs × nodes with sorted indices.

    Parameters
    ----------
    adjacency
        Symmetric, boolean.
    outputs
        Nodes whose predictions are certified.
    hops
        Depth of the network (`GraphNetwork.depth`).

    Raises
    ------
    InvalidInputError
        If the number of hops is negative.
    """
    return _within(np.arange(outputs.size), adjacency, outputs, hops)


def receptive_nodes(
    adjacency: sp.csr_array, outputs: Int[np.ndarray, "outputs"], hops: int
) -> Int[np.ndarray, "inputs"]:
    """Nodes within so many hops of any of the outputs, ascending; as `receptive_fields`.

    Raises
    ------
    InvalidInputError
        If the number of hops is negative.
    """
    return _within(np.zeros_like(outputs), adjacency, outputs, hops).indices.astype(np.int64)


def _within(
    row: Int[np.ndarray, "starts"], adjacency: sp.csr_array, start: Int[np.ndarray, "starts"], hops: int
) -> sp.csr_array:
    """Nodes that can be reached from the starts of each row."""
    if hops < 0:
        raise InvalidInputError("hops", f"got {hops}", "Pass the depth of the network")
    shape = int(row.max(initial=-1)) + 1, shape_of(adjacency)[0]
    reached = sp.csr_array((np.ones(start.size, np.bool_), (row, start)), shape=shape)
    for _ in range(hops):
        wider = sp.csr_array(reached + reached @ adjacency)
        if wider.nnz == reached.nnz:
            break
        reached = wider
    reached.sort_indices()
    return reached


def strictly_local(base: BaseCertificates, inputs: Partition, fields: sp.csr_array) -> LocalCertificates:
    """Set the weights of inputs outside the receptive fields to 0.

    Outputs with the same field and output group stay together, and so do nodes of an input group that lie in the same
    fields. Nothing is sampled again: the distributions are those of `base`.

    Parameters
    ----------
    base
        Certificates of the outputs against whole flips, columns (additions, deletions) × input groups.
    inputs
        Input group of each node.
    fields
        Receptive field of each output of `base`, outputs × nodes. It must contain every node whose attributes can
        influence the output, under every perturbation: fields follow from the edges, which must stay as they are.

    Raises
    ------
    InvalidInputError
        If there is not one field for each output, they are of another number of nodes, or the certificates are true of
        counts only.
    """
    if base.stratum is not None:
        raise InvalidInputError(
            "base",
            "its certificates are true for counts of a whole output group, and nodes of one group have many fields",
            "Share alpha by Bonferroni, or leave receptive fields out",
        )
    atoms = atoms_of(fields, inputs, base.group)
    owner = np.zeros(len(atoms.seen), np.int64)
    owner[atoms.field] = base.group
    weights = base.weights.reshape(*base.weights.shape[:-1], -1, inputs.count)[..., owner, :, :]
    local = weights[..., atoms.group] * atoms.seen[:, None, :]
    local = local.reshape(*local.shape[:-2], -1)
    # Bits flip whole: one that breaks every output of a group need not weigh more. Groups are finer than they were.
    several = zip(local.reshape(-1, *local.shape[-2:]), base.eta.reshape(-1, base.group.size), strict=True)
    capped = np.stack([cap_weights(weights, eta, atoms.field) for weights, eta in several]).reshape(local.shape)
    return LocalCertificates(replace(base, weights=capped, group=atoms.field), atoms.inputs)
