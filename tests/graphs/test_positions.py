import numpy as np

from localsmooth.tasks.graphs import metis_clusters
from localsmooth.tasks.graphs.positions import node_positions


def test_clusters_are_drawn_apart_and_repeatably(digits):
    clusters = metis_clusters(digits, 4)
    places = node_positions(digits.adjacency, clusters)
    assert places.min() >= 0
    assert places.max() <= 1
    assert np.array_equal(places, node_positions(digits.adjacency, clusters))
    middles = np.stack([(places[clusters == c].max(0) + places[clusters == c].min(0)) / 2 for c in range(4)])
    for cluster in range(4):
        own = np.linalg.norm(places[clusters == cluster] - middles[cluster], axis=1).max()
        others = np.linalg.norm(places[clusters != cluster] - middles[cluster], axis=1).min()
        assert own < others


def test_joined_nodes_lie_nearer_than_others(digits):
    places = node_positions(digits.adjacency, np.zeros(digits.nodes, int))
    rows, columns = digits.edge_index
    joined = np.linalg.norm(places[rows] - places[columns], axis=1).mean()
    shuffled = np.random.default_rng(0).permutation(columns)
    assert joined < 0.6 * np.linalg.norm(places[rows] - places[shuffled], axis=1).mean()


def test_one_node_is_drawn_in_the_middle(tiny):
    assert node_positions(tiny.adjacency, np.arange(5)).shape == (5, 2)
