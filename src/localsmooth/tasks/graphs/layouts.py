"""Layouts over clusters of nodes: which cluster sees how much noise where."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, Partition, origins_of
from localsmooth.tasks.graphs.clusters import affinity_ranks
from localsmooth.tasks.graphs.graph import shape_of

__all__ = ["cluster_layout", "isotropic_node_layout"]


def cluster_layout(
    clusters: Int[np.ndarray, "nodes"],
    adjacency: sp.csr_array,
    *,
    addition: tuple[float, float],
    deletion: tuple[float, float],
) -> Layout:
    """One output group and one input group per cluster; noise grows with the affinity rank.

    The cluster of rank r, as seen from the output's own cluster (rank 0), gets the r-th of equally spaced levels
    (Schuchardt et al. 2023, node classification). All attributes of a node share its level: the label maps have one
    entry per node. Levels follow from the edges, which stay as they are while the adversary changes attributes.

    Parameters
    ----------
    clusters
        Cluster of each node, numbered from 0 without gaps.
    adjacency
        Symmetric, boolean; its edge counts decide the ranks.
    addition, deletion
        Probability of 0 → 1 and of 1 → 0: in the output's own cluster, and in the cluster that is farthest.

    Returns
    -------
    Layout
        With levels [clusters × clusters × 2], where the last axis is (addition, deletion).

    Raises
    ------
    InvalidInputError
        If there is not one cluster per node, or a level is outside [0, 1).
    """
    for field, pair in (("addition", addition), ("deletion", deletion)):
        if not all(0 <= level < 1 for level in pair):
            raise InvalidInputError(field, f"got {pair}", "Flip probabilities lie in [0, 1)")
    nodes = shape_of(adjacency)[0]
    if clusters.size != nodes:
        raise InvalidInputError(
            "clusters", f"{clusters.size} labels for {nodes} nodes", "Pass the cluster of each node"
        )
    ranks = affinity_ranks(adjacency, clusters)
    steps = np.stack([np.linspace(*pair, num=len(ranks)) for pair in (addition, deletion)], axis=-1)
    partition = Partition(clusters.astype(np.int32))
    return Layout(partition, partition, steps[ranks], origins=origins_of(ranks))


def isotropic_node_layout(nodes: int, *, addition: float, deletion: float) -> Layout:
    """One output group, one input group: the same noise everywhere, drawn once for all nodes."""
    partition = Partition(np.zeros(nodes, dtype=np.int32))
    return Layout(partition, partition, np.array([[[addition, deletion]]]))
