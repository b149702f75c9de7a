"""Where nodes are drawn: a disc for each cluster, nodes that are joined near each other."""

from __future__ import annotations

import networkx as nx
import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from localsmooth.tasks.graphs.graph import shape_of

__all__ = ["node_positions"]

_GAP = 1.12
_LARGE = 500


def node_positions(
    adjacency: sp.csr_array, clusters: Int[np.ndarray, "nodes"], seed: int = 0
) -> Float[np.ndarray, "nodes 2"]:
    """Place nodes in the unit square: clusters on a ring of discs, a force-directed drawing in each of them.

    Parameters
    ----------
    adjacency
        Symmetric, boolean.
    clusters
        Cluster of each node, numbered from 0 without gaps.
    seed
        Of the drawing's random start.
    """
    sizes = np.bincount(clusters)
    radii = np.sqrt(sizes / sizes.sum())
    positions = np.empty((clusters.size, 2))
    for cluster, (centre, radius) in enumerate(zip(_centres(radii), radii, strict=True)):
        members = np.flatnonzero(clusters == cluster)
        positions[members] = centre + radius * _disc(adjacency[members][:, members], seed)
    low, high = positions.min(axis=0), positions.max(axis=0)
    span = max(float((high - low).max()), np.finfo(np.float64).tiny)
    return (positions - (low + high) / 2) / span + 0.5


def _centres(radii: Float[np.ndarray, "clusters"]) -> Float[np.ndarray, "clusters 2"]:
    """Centres of discs on a ring that is just wide enough for the largest of them to lie side by side."""
    if radii.size == 1:
        return np.zeros((1, 2))
    reach = _GAP * float(radii.max()) / np.sin(np.pi / radii.size)
    angles = 2 * np.pi * np.arange(radii.size) / radii.size - np.pi / 2
    return reach * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _disc(adjacency: sp.csr_array, seed: int) -> Float[np.ndarray, "nodes 2"]:
    """Draw one cluster in the unit disc; its nodes spread evenly from the centre outwards."""
    size = shape_of(adjacency)[0]
    # Rounds take a second each where a cluster is large; what is near what shows after few of them.
    rounds = 40 if size < _LARGE else 15
    drawn = nx.spring_layout(nx.from_scipy_sparse_array(adjacency), iterations=rounds, seed=seed)
    points = np.array([drawn[node] for node in range(size)]).reshape(size, 2)
    points = points - points.mean(axis=0)
    distance, angle = np.hypot(*points.T), np.arctan2(points[:, 1], points[:, 0])
    # Force-directed drawings crowd in the middle: only the order of the distances is kept.
    rank = np.empty(size)
    rank[np.argsort(distance, kind="stable")] = np.arange(size)
    radius = 0.97 * np.sqrt((rank + 0.5) / size)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
