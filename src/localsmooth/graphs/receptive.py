"""Strictly local certificates: a depth-limited network cannot see beyond its receptive fields.

Source: Schuchardt et al. 2021 (collective certificates from receptive fields), which this is where the noise is the
same everywhere; combined with localized noise it also holds group by group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int

from localsmooth.certificates import BaseCertificates
from localsmooth.certificates.capping import cap_weights
from localsmooth.errors import InvalidInputError
from localsmooth.graphs.graph import shape_of
from localsmooth.layout import Partition

__all__ = ["LocalCertificates", "receptive_fields", "strictly_local"]


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
    """Nodes within so many hops of each output, as a boolean matrix outputs × nodes.

    Parameters
    ----------
    adjacency
        Symmetric, boolean.
    outputs
        Nodes whose predictions are certified.
    hops
        Depth of the network (`GraphNetwork.depth`).
    """
    if hops < 0:
        raise InvalidInputError("hops", f"got {hops}", "Pass the depth of the network")
    nodes = shape_of(adjacency)[0]
    fields = sp.csr_array(
        (np.ones(outputs.size, np.bool_), (np.arange(outputs.size), outputs)), shape=(outputs.size, nodes)
    )
    for _ in range(hops):
        fields = sp.csr_array(fields + fields @ adjacency)
    fields.sort_indices()
    return fields


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
    """
    outputs, nodes = shape_of(fields)
    if outputs != base.group.size or (nodes,) != inputs.shape:
        raise InvalidInputError(
            "fields", f"shape {(outputs, nodes)}", "Pass one row per certified output, one column per node"
        )
    rows, group = _distinct(fields, base.group)
    visible = sp.csr_array(fields[rows]).T.tocsr()
    columns, atoms = _distinct(visible, inputs.labels)
    # Who sees which atom: field × atom.
    seen = visible[columns].toarray().T
    weights = base.weights.reshape(*base.weights.shape[:-1], -1, inputs.count)[..., base.group[rows], :, :]
    local = weights[..., inputs.labels[columns]] * seen[:, None, :]
    local = local.reshape(*local.shape[:-2], -1)
    # Bits flip whole: one that breaks every output of a group need not weigh more. Groups are finer than they were.
    several = zip(local.reshape(-1, *local.shape[-2:]), base.eta.reshape(-1, outputs), strict=True)
    capped = np.stack([cap_weights(weights, eta, group) for weights, eta in several]).reshape(local.shape)
    return LocalCertificates(replace(base, weights=capped, group=group), Partition(atoms.astype(np.int32)))


def _distinct(
    matrix: sp.csr_array, labels: Int[np.ndarray, "rows"]
) -> tuple[Int[np.ndarray, "distinct"], Int[np.ndarray, "rows"]]:
    """First row of each distinct pair (label, row), and which of them each row is."""
    known: dict[tuple[int, bytes], int] = {}
    first: list[int] = []
    number = np.empty(labels.size, np.int64)
    pointers, indices = matrix.indptr, matrix.indices
    for row, label in enumerate(labels):
        key = int(label), indices[pointers[row] : pointers[row + 1]].tobytes()
        if key not in known:
            known[key] = len(first)
            first.append(row)
        number[row] = known[key]
    return np.array(first), number
