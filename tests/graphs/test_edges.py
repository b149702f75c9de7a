from itertools import combinations

import numpy as np
import pytest
import torch

from localsmooth.certificates import ABSTAIN, BaseCertificates, RenyiVotes
from localsmooth.collective import Exact
from localsmooth.errors import InvalidInputError
from localsmooth.noise import SparseFlips, drawable_probabilities
from localsmooth.runs import SamplingPlan
from localsmooth.tasks.graphs import (
    EdgeIndexClassifier,
    EdgeSubject,
    affinity_ranks,
    certify_nodes,
    cluster_pair_layout,
    edge_bits,
    flip_threat,
    graph_from_arrays,
    isotropic_pair_layout,
    node_counters,
    pair_caps,
    random_stream,
    sample_edges,
    spectral_clusters,
)
from localsmooth.testing.chance import assert_binomial

from .exact import sharp_gcn

CLUSTERS = np.array([0, 0, 1, 1, 2])
# From cluster 0 its neighbour comes first, from the others cluster 0: known before any edge is.
RANKS = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0]])


def _labels(graph, network) -> tuple[np.ndarray, np.ndarray]:
    """Predicted labels under every edge set, and the edge sets as bits of the upper triangle."""
    pairs = graph.nodes * (graph.nodes - 1) // 2
    sets = (np.arange(1 << pairs)[:, None] >> np.arange(pairs)) & 1 == 1
    rows, columns = np.triu_indices(graph.nodes, 1)
    attributes = torch.from_numpy(graph.attributes.toarray().astype(np.float32))
    labels = []
    with torch.inference_mode():
        for chosen in sets:
            half = np.stack([rows[chosen], columns[chosen]])
            edges = torch.from_numpy(np.concatenate([half, half[::-1]], axis=1))
            labels.append(network(attributes, edges).argmax(1).numpy())
    return np.array(labels), sets


def _law(sets: np.ndarray, clean: np.ndarray, levels: np.ndarray) -> np.ndarray:
    chance = np.where(clean, 1 - levels[:, 1], levels[:, 0])
    return np.prod(np.where(sets, chance, 1 - chance), axis=1)


def test_edges_are_symmetric_and_flip_with_their_probability(tiny):
    layout = cluster_pair_layout(CLUSTERS, RANKS, addition=(0.1, 0.3), deletion=(0.2, 0.6))
    subject = EdgeSubject(EdgeIndexClassifier(sharp_gcn(2, 2, 0), 2), tiny, layout, 0, node_counters())
    prepared, stream, count = subject.prepare(0, 1), random_stream(0, (1,)), 4000
    clean = edge_bits(tiny)
    drawn = np.zeros(clean.size)
    rows, columns = np.triu_indices(5, 1)
    place = {pair: index for index, pair in enumerate(zip(rows.tolist(), columns.tolist(), strict=True))}
    for sample in prepared.draw(count, stream):
        for pair in sample.T.tolist():
            drawn[place[tuple(pair)]] += 1
    levels = layout.level_map(1)
    chance = np.where(clean, 1 - levels[:, 1], levels[:, 0])
    assert_binomial(drawn, count, chance)


def test_pairs_are_near_where_their_nearer_end_is():
    clusters = CLUSTERS
    layout = cluster_pair_layout(clusters, RANKS, addition=(0.1, 0.3), deletion=(0.2, 0.6))
    rows, columns = np.triu_indices(5, 1)
    levels = layout.level_map(0)
    touching = (clusters[rows] == 0) | (clusters[columns] == 0)
    assert np.allclose(levels[touching], [0.1, 0.2])
    assert (levels[~touching] > 0.15).all()


def test_sampled_votes_are_exact_and_no_adversary_beats_the_certificate(tiny):
    network = sharp_gcn(2, 2, 4)
    layout = cluster_pair_layout(CLUSTERS, RANKS, addition=(0.05, 0.3), deletion=(0.1, 0.5))
    labels, sets = _labels(tiny, network)
    clean = edge_bits(tiny)
    groups = layout.outputs.labels
    maps = [drawable_probabilities(layout.level_map(group)) for group in range(3)]

    def votes(bits: np.ndarray, classes: np.ndarray) -> np.ndarray:
        laws = [_law(sets, bits, levels) for levels in maps]
        return np.array([laws[groups[n]] @ (labels[:, n] == classes[n]) for n in range(5)])

    count = 300
    classifier = EdgeIndexClassifier(network, 2)
    tally = sample_edges(classifier, tiny, layout, SamplingPlan(50, count, seed=2, chunk_size=250))
    q = votes(clean, tally.candidate)
    assert_binomial(tally.votes, count, np.clip(q, 0, 1))
    found = RenyiVotes().certificates(SparseFlips(), layout.levels, np.minimum(q, 1 - 1e-12), groups.astype(np.int64))
    robust = (found.eta > 0).any(axis=0)
    prediction = np.where(robust, tally.candidate, ABSTAIN).astype(np.int64)
    base = BaseCertificates(found.weights, found.eta, groups.astype(np.int64), prediction)
    caps = pair_caps(clean, layout.inputs)
    assert caps.deletions.sum() == clean.sum()
    for additions, deletions in ((1, 0), (0, 2)):
        threat = flip_threat(caps, additions=additions, deletions=deletions)
        certified = certify_nodes(base, prediction, threat, Exact()).robust[0]
        reach = ((sets & ~clean).sum(1) <= additions) & ((~sets & clean).sum(1) <= deletions)
        worst = min(int(((votes(bits, tally.candidate) > 0.5) & robust).sum()) for bits in sets[reach])
        assert certified <= worst


def test_layouts_of_other_graphs_are_refused(tiny):
    classifier = EdgeIndexClassifier(sharp_gcn(2, 2, 0), 2)
    with pytest.raises(InvalidInputError, match="pairs"):
        EdgeSubject(classifier, tiny, isotropic_pair_layout(4, addition=0.1, deletion=0.1), 0, node_counters())


LEVELS = {"addition": (0.1, 0.3), "deletion": (0.2, 0.6)}


def test_levels_that_follow_from_the_certified_edges_are_refused(tiny):
    """However the layout was reached from the edges; those of another graph are as good as any fixed levels."""
    classifier = EdgeIndexClassifier(sharp_gcn(2, 2, 0), 2)
    reference = graph_from_arrays(tiny.adjacency.toarray()[::-1, ::-1], tiny.attributes, tiny.labels)
    cut = spectral_clusters(tiny, 2)
    fixed = np.array([[0, 1], [1, 0]])
    own = {
        "ranks": cluster_pair_layout(CLUSTERS, affinity_ranks(tiny.adjacency, CLUSTERS), **LEVELS),
        "ranks, copied": cluster_pair_layout(CLUSTERS, affinity_ranks(tiny.adjacency, CLUSTERS).copy(), **LEVELS),
        "clusters": cluster_pair_layout(cut, fixed, **LEVELS),
        "clusters of another type": cluster_pair_layout(cut.astype(np.int32), fixed, **LEVELS),
        "clusters, ranks elsewhere": cluster_pair_layout(cut, affinity_ranks(reference.adjacency, cut), **LEVELS),
    }
    for layout in own.values():
        with pytest.raises(InvalidInputError, match="computed from the set of edges"):
            EdgeSubject(classifier, tiny, layout, 0, node_counters())
    # At another graph it is as fixed as any.
    EdgeSubject(classifier, reference, own["ranks"], 0, node_counters())
    elsewhere = affinity_ranks(reference.adjacency, spectral_clusters(reference, 2))
    for clusters, ranks in ((CLUSTERS, RANKS), (spectral_clusters(reference, 2), elsewhere), (np.array(cut), fixed)):
        EdgeSubject(classifier, tiny, cluster_pair_layout(clusters, ranks, **LEVELS), 0, node_counters())


@pytest.mark.parametrize("ranks", [RANKS[:2, :2], RANKS + 1, RANKS - 1])
def test_ranks_that_do_not_fit_the_clusters_are_refused(ranks):
    with pytest.raises(InvalidInputError, match="ranks"):
        cluster_pair_layout(CLUSTERS, ranks, **LEVELS)


class _OnePair(torch.nn.Module):
    """Every node has class 0 unless nodes 2 and 3 are joined."""

    def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        copies, (source, target) = len(attributes) // 6, edges
        joined = torch.zeros(copies, dtype=torch.bool)
        joined[source[(source % 6 == 2) & (target % 6 == 3)] // 6] = True
        return torch.stack([~joined, joined], 1).float().mul(4).repeat_interleave(6, 0)


def test_the_smoothed_classifier_is_the_same_at_every_graph():
    """One added edge used to swap two ranks, and the class of a node that was certified against five additions."""
    clusters = np.array([0, 0, 1, 1, 2, 2])
    classifier, levels = EdgeIndexClassifier(_OnePair().eval(), 2), {"addition": (0.08, 0.60), "deletion": (0.9, 0.42)}

    def graph(*extra: tuple[int, int]):
        edges = np.array([(0, 1), (0, 2), (0, 4), *extra]).T
        return graph_from_arrays(edges, np.ones((6, 2), int), np.zeros(6, int), class_names=("a", "b"))

    clean, place = graph(), int(np.flatnonzero((np.stack(np.triu_indices(6, 1)) == [[2], [3]]).all(0))[0])
    for derived in (clean, graph((1, 5))):
        ranks = affinity_ranks(derived.adjacency, clusters)
        layout = cluster_pair_layout(clusters, ranks, **levels)
        if derived is clean:
            with pytest.raises(InvalidInputError, match="edges"):
                sample_edges(classifier, clean, layout, SamplingPlan(10, 10))
            continue
        tally = sample_edges(classifier, clean, layout, SamplingPlan(100, 5000, seed=3, chunk_size=1000))
        q = tally.votes[:1] / tally.n - 0.03  # five standard errors
        found = RenyiVotes().certificates(SparseFlips(), layout.levels, q, np.zeros(1, np.int64))
        base = BaseCertificates(found.weights, found.eta, np.zeros(1, np.int64), tally.candidate[:1].astype(np.int64))
        caps = pair_caps(edge_bits(clean), layout.inputs)
        level = drawable_probabilities(layout.level_map(0))[place]
        for additions in (0, 1, 2):
            threat = flip_threat(caps, additions=additions, deletions=0)
            certified = int(certify_nodes(base, np.zeros(1, int), threat, Exact()).robust[0])
            assert certified or additions
            # Only the pair (2, 3) matters to the model, so that the exact law at every perturbed graph is its level.
            for added in combinations([(2, 3), (1, 5), (1, 3)], additions):
                bit = edge_bits(graph(*added))[place]
                joined = 1 - level[1] if bit else level[0]
                kept = (joined > 0.5) == bool(tally.candidate[0])
                assert certified <= kept


class _Degrees(torch.nn.Module):
    """Keeps the degrees of the first edges that it sees, for each number of nodes."""

    def __init__(self, caching: bool) -> None:
        super().__init__()
        self.caching, self.kept = caching, {}

    def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        degrees = torch.bincount(edges[0], minlength=len(attributes)).float()
        if self.caching:
            degrees = self.kept.setdefault(len(attributes), degrees)
        return torch.stack([degrees, 2 - degrees], 1)


def test_modules_that_keep_edges_are_refused(tiny):
    layout = isotropic_pair_layout(tiny.nodes, addition=0.1, deletion=0.4)
    plan = SamplingPlan(10, 10)
    sample_edges(EdgeIndexClassifier(_Degrees(False).eval(), 2), tiny, layout, plan)
    with pytest.raises(InvalidInputError, match="once it has seen another"):
        sample_edges(EdgeIndexClassifier(_Degrees(True).eval(), 2), tiny, layout, plan)


def test_chunks_of_edges_that_fail_keep_the_adjacencies_they_failed_on(tiny):
    layout = isotropic_pair_layout(tiny.nodes, addition=0.1, deletion=0.4)
    subject = EdgeSubject(EdgeIndexClassifier(sharp_gcn(tiny.width, 2, 0), 2), tiny, layout, 0, node_counters())
    prepared = subject.prepare(0, 0)
    batch = prepared.draw(3, subject.stream((0, 0, 0, 0)))
    written = prepared.inputs(batch)
    assert written.nbytes == 3 * prepared.bytes_per_sample
    for matrix, pairs in zip(written, batch, strict=True):
        assert (matrix == matrix.T).all()
        assert matrix.sum() == 2 * pairs.shape[1]
        assert matrix[tuple(pairs)].all()
