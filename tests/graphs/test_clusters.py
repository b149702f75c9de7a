import sys

import numpy as np
import pytest
import scipy.sparse as sp

from localsmooth.errors import InvalidInputError
from localsmooth.tasks.graphs import affinity_ranks, cluster_layout, metis_clusters, spectral_clusters


@pytest.mark.parametrize("method", [metis_clusters, spectral_clusters])
def test_clusters_cover_the_graph_and_repeat(digits, method):
    clusters = method(digits, 4, 0)
    assert clusters.shape == (digits.nodes,)
    assert np.unique(clusters).tolist() == [0, 1, 2, 3]
    assert np.array_equal(clusters, method(digits, 4, 0))
    inside = (clusters[digits.edge_index[0]] == clusters[digits.edge_index[1]]).mean()
    shuffled = np.random.default_rng(0).permutation(clusters)
    assert inside > 0.6 > (shuffled[digits.edge_index[0]] == shuffled[digits.edge_index[1]]).mean()
    assert not method(digits, 1, 0).any()


def test_metis_parts_are_balanced(digits):
    sizes = np.bincount(metis_clusters(digits, 5))
    assert sizes.max() <= 1.1 * sizes.min()


def test_missing_metis_names_the_remedy(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match=r"localsmooth\[graph\].*spectral_clusters"):
        metis_clusters(digits, 3)


def test_too_many_clusters_are_refused(digits):
    with pytest.raises(InvalidInputError, match="count"):
        metis_clusters(digits, digits.nodes + 1)


# Edges between four clusters of one node each would be 0/1; so blow them up: edge counts are the products of sizes.
def _counts(pairs: dict[tuple[int, int], int], clusters: int):
    """A graph with given numbers of edges between clusters, each edge between two nodes of its own."""
    rows, columns, membership = [], [], list(range(clusters))
    for (a, b), number in pairs.items():
        for _ in range(number):
            rows.append(len(membership))
            columns.append(len(membership) + 1)
            membership += [a, b]
    size = len(membership)
    one_way = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    return sp.csr_array((one_way + one_way.T) > 0), np.array(membership)


def test_ranks_are_the_inverse_of_the_sorting_order():
    # From cluster 0: cluster 3 first (5 edges), then 1 (2), then 2 (none): order [0, 3, 1, 2], ranks [0, 2, 3, 1].
    adjacency, clusters = _counts({(0, 3): 5, (0, 1): 2, (1, 2): 1, (2, 2): 9}, 4)
    ranks = affinity_ranks(adjacency, clusters)
    assert ranks[0].tolist() == [0, 2, 3, 1]
    assert ranks[1].tolist() == [1, 0, 2, 3]
    assert np.diagonal(ranks).tolist() == [0, 0, 0, 0]
    assert (np.sort(ranks, axis=1) == np.arange(4)).all()


def test_ties_go_to_the_smaller_number():
    adjacency, clusters = _counts({(0, 1): 1, (0, 3): 1, (2, 2): 1}, 4)
    assert affinity_ranks(adjacency, clusters)[0].tolist() == [0, 1, 3, 2]


def test_levels_follow_ranks_from_the_own_cluster_outwards():
    adjacency, clusters = _counts({(0, 2): 3, (0, 1): 1, (1, 2): 2}, 3)
    layout = cluster_layout(clusters, adjacency, addition=(0.0, 0.02), deletion=(0.1, 0.9))
    assert layout.levels.shape == (3, 3, 2)
    assert np.allclose(layout.levels[0, :, 1], [0.1, 0.9, 0.5])
    assert np.allclose(layout.levels[0, :, 0], [0.0, 0.02, 0.01])
    assert np.allclose(layout.level_map(1)[clusters == 2], [0.01, 0.5])
    with pytest.raises(InvalidInputError, match="deletion"):
        cluster_layout(clusters, adjacency, addition=(0.0, 0.02), deletion=(0.1, 1.0))
