import numpy as np
import pytest
import torch
from scipy import stats

from localsmooth.certificates import ABSTAIN, BaseCertificates, RenyiVotes
from localsmooth.collective import Exact
from localsmooth.errors import InvalidInputError
from localsmooth.graphs import (
    EdgeIndexClassifier,
    EdgeSubject,
    certify_nodes,
    cluster_pair_layout,
    edge_bits,
    flip_threat,
    isotropic_pair_layout,
    node_counters,
    pair_caps,
    random_stream,
    sample_edges,
)
from localsmooth.noise import SparseFlips, drawable_probabilities
from localsmooth.sampling import SamplingPlan

from .exact import sharp_gcn


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
    layout = cluster_pair_layout(tiny, np.array([0, 0, 1, 1, 2]), addition=(0.1, 0.3), deletion=(0.2, 0.6))
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
    scores = (drawn - count * chance) / np.sqrt(count * chance * (1 - chance))
    assert stats.chi2.sf((scores**2).sum(), scores.size) > 1e-3


def test_pairs_are_near_where_their_nearer_end_is(tiny):
    clusters = np.array([0, 0, 1, 1, 2])
    layout = cluster_pair_layout(tiny, clusters, addition=(0.1, 0.3), deletion=(0.2, 0.6))
    rows, columns = np.triu_indices(5, 1)
    levels = layout.level_map(0)
    touching = (clusters[rows] == 0) | (clusters[columns] == 0)
    assert np.allclose(levels[touching], [0.1, 0.2])
    assert (levels[~touching] > 0.15).all()


def test_sampled_votes_are_exact_and_no_adversary_beats_the_certificate(tiny):
    network = sharp_gcn(2, 2, 4)
    layout = cluster_pair_layout(tiny, np.array([0, 0, 1, 1, 2]), addition=(0.05, 0.3), deletion=(0.1, 0.5))
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
    for node in range(5):
        low, high = stats.binom.interval(1 - 1e-4, count, q[node])
        assert low <= tally.votes[node] <= high
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
