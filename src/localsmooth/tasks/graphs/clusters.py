"""Clusters of nodes, and which clusters lie near which.

Source: Schuchardt et al. 2023, node classification experiments: METIS clusters, ranked by the number of edges to
the output's own cluster. Clusters and ranks remember the edges that they were computed from
(`localsmooth.layout.derived`): where edges are what the adversary changes, they must come from another graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int

from localsmooth.errors import InvalidInputError
from localsmooth.layout import derived, origins_of
from localsmooth.tasks.graphs.graph import AttributedGraph, edges_digest

__all__ = ["affinity_ranks", "metis_clusters", "spectral_clusters"]


def metis_clusters(graph: AttributedGraph, count: int, seed: int = 0) -> Int[np.ndarray, "nodes"]:
    """Cut the graph into clusters of similar size with few edges between them (METIS, through pymetis).

    Raises
    ------
    InvalidInputError
        If the count does not fit, or METIS leaves a cluster empty.
    ImportError
        If pymetis is not installed, naming the remedy.
    """
    _check_count(graph, count)
    if count == 1:
        return np.zeros(graph.nodes, dtype=np.int64)
    try:
        import pymetis
    except ImportError as error:
        raise ImportError(
            "METIS clusters need pymetis: install localsmooth[graph], or use spectral_clusters instead"
        ) from error
    adjacency: Any = graph.adjacency
    _, membership = pymetis.part_graph(
        count,
        pymetis.CSRAdjacency(adjacency.indptr.tolist(), adjacency.indices.tolist()),
        options=pymetis.Options(seed=seed),
    )
    return _checked(graph, np.asarray(membership).astype(np.int64), count, "METIS")


def spectral_clusters(graph: AttributedGraph, count: int, seed: int = 0) -> Int[np.ndarray, "nodes"]:
    """Cluster the graph by the eigenvectors of its Laplacian (scikit-learn)."""
    _check_count(graph, count)
    if count == 1:
        return np.zeros(graph.nodes, dtype=np.int64)
    from sklearn.cluster import SpectralClustering

    clustering = SpectralClustering(
        count, affinity="precomputed", assign_labels="cluster_qr", random_state=seed, eigen_solver="arpack"
    )
    affinity = sp.csr_matrix(graph.adjacency.astype(np.float64))
    affinity.indices = affinity.indices.astype(np.int32)
    affinity.indptr = affinity.indptr.astype(np.int32)
    return _checked(graph, clustering.fit_predict(affinity).astype(np.int64), count, "spectral clustering")


def affinity_ranks(adjacency: sp.csr_array, clusters: Int[np.ndarray, "nodes"]) -> Int[np.ndarray, "clusters clusters"]:
    """Rank of every cluster as seen from every other, the most connected first.

    Parameters
    ----------
    adjacency
        Symmetric, boolean.
    clusters
        Cluster of each node, numbered from 0 without gaps.

    Returns
    -------
    numpy.ndarray
        `ranks[i, l]` is the place of cluster l in the order of the number of edges to cluster i; the own cluster
        has rank 0, ties go to the smaller number. Each row is a permutation: a cluster's *rank*, and not the
        cluster found *at* a rank, so that it can be used as an index into a list of levels.
    """
    origins = origins_of(clusters) | {edges_digest(adjacency)}
    clusters = np.asarray(clusters)
    count = int(clusters.max()) + 1
    member = sp.csr_array((np.ones(clusters.size), (np.arange(clusters.size), clusters)), shape=(clusters.size, count))
    edges = (member.T @ adjacency.astype(np.float64) @ member).toarray()
    np.fill_diagonal(edges, np.inf)
    order = np.argsort(-edges, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(count)[None, :], axis=1)
    return derived(ranks, *origins)


def _check_count(graph: AttributedGraph, count: int) -> None:
    if not 1 <= count <= graph.nodes:
        raise InvalidInputError("count", f"{count} clusters of {graph.nodes} nodes", "Use between 1 and the nodes")


def _checked(
    graph: AttributedGraph, clusters: Int[np.ndarray, "nodes"], count: int, method: str
) -> Int[np.ndarray, "nodes"]:
    if np.unique(clusters).size != count:
        raise InvalidInputError("count", f"{method} left a cluster empty", "Ask for fewer clusters")
    return derived(clusters, edges_digest(graph.adjacency))
