from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from localsmooth.bounds import (
    Betting,
    CandidateVotes,
    CandidateWeights,
    CdfBand,
    EmpiricalBernstein,
    FixedThresholdHolm,
    KFamilywise,
)
from localsmooth.certificates import (
    ABSTAIN,
    BaseCertificates,
    ExactVotes,
    RenyiVotes,
    SparseScores,
    Thresholds,
    one_basis,
)
from localsmooth.collective import AtMostGroups, Exact
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Partition
from localsmooth.noise import SparseFlips
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import ItemTally
from localsmooth.tasks.graphs import (
    NetworkClassifier,
    attribute_caps,
    budget_grid,
    cluster_layout,
    flip_threat,
    graph_from_arrays,
    metis_clusters,
    node_limit,
    receptive_fields,
    sample_nodes,
    strictly_local,
)
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from tests.graphs.curves import certify_nodes, node_certificates

from .conftest import random_graph
from .exact import ExactSmoothing, sharp_gcn

BOUNDS = {**DEFAULT_BOUNDS, "exact": Exact()}
CLUSTERS = np.array([0, 0, 1, 1, 2])
ADDITIONS, DELETIONS = budget_grid([0, 1, 2], [0, 2])


def _certificates(exact: ExactSmoothing, layout, kind):
    """Base certificates from the exact statistics of the smoothed classifier, as strong as they can be."""
    q, _, _ = exact.statistics(exact.clean, np.zeros(5, int), np.zeros(5))
    classes = np.where(q > 0.5, 0, 1)
    q, mu, _ = exact.statistics(exact.clean, classes, np.zeros(5))
    group = layout.outputs.labels.astype(np.int64)
    if isinstance(kind, SparseScores):
        _, _, zeta = exact.statistics(exact.clean, classes, np.clip(mu, 0, 1))
        found = kind.certificates(SparseFlips(), layout.levels, mu, zeta, np.clip(mu, 0, 1), group)
    else:
        found = kind.certificates(SparseFlips(), layout.levels, np.minimum(q, 1 - 1e-12), group)
    robust = (np.atleast_2d(found.eta) > 0).any(axis=0)
    return classes, BaseCertificates(found.weights, found.eta, group, np.where(robust, classes, ABSTAIN))


@pytest.mark.parametrize(
    "kind", [RenyiVotes(), SparseScores(), ExactVotes(vectors=100, horizon=12, atoms=128)], ids=lambda kind: kind.name
)
def test_no_adversary_beats_the_certificate(kind):
    """Every reachable attribute matrix, every budget, every bound, many base classifiers: the promise holds."""
    generator = np.random.default_rng(0)
    certified = 0
    for seed in range(2 if isinstance(kind, ExactVotes) else 4):
        graph = random_graph(generator, 5, 2)
        low, high = np.sort(generator.uniform(0.05, 0.5, 2)), np.sort(generator.uniform(0.05, 0.7, 2))
        layout = cluster_layout(CLUSTERS, graph.adjacency, addition=tuple(low), deletion=tuple(high))
        exact = ExactSmoothing(graph, sharp_gcn(2, 2, seed), layout)
        classes, base = _certificates(exact, layout, kind)
        promised = base.prediction != ABSTAIN
        survivors = {}
        for matrix in exact.within(2, 2):
            votes, scores = exact.kept(int(matrix), classes)
            survivors[int(matrix)] = int(((scores if kind.name.endswith("scores") else votes) & promised).sum())
        worst = np.array(
            [min(survivors[int(m)] for m in exact.within(a, d)) for a, d in zip(ADDITIONS, DELETIONS, strict=True)]
        )
        threat = flip_threat(attribute_caps(graph, layout.inputs), additions=ADDITIONS, deletions=DELETIONS)
        counts = [certify_nodes(base, classes, threat, bound).robust for bound in BOUNDS.values()]
        assert (np.diff(counts, axis=0) >= 0).all()
        assert (counts[-1] <= worst).all()
        certified += int(counts[-1][1:].sum())
    # The promise is worth something: nodes are certified at positive budgets.
    assert certified > 5


@pytest.mark.parametrize("order", [1.05, 2.0])
def test_no_adversary_beats_votes_and_scores_together(order):
    """Each node keeps its class under the rule that it relies on, at every matrix within the budgets."""
    generator = np.random.default_rng(1)
    relied, certified = set(), 0
    for seed in range(4):
        graph = random_graph(generator, 5, 2)
        low, high = np.sort(generator.uniform(0.05, 0.5, 2)), np.sort(generator.uniform(0.05, 0.7, 2))
        layout = cluster_layout(CLUSTERS, graph.adjacency, addition=tuple(low), deletion=tuple(high))
        exact = ExactSmoothing(graph, sharp_gcn(2, 2, seed), layout)
        (classes, votes), (_, scores) = (
            _certificates(exact, layout, kind) for kind in (RenyiVotes((order, 4.0)), SparseScores())
        )
        chosen = one_basis(Thresholds(votes.weights, votes.eta), Thresholds(scores.weights, scores.eta), votes.group)
        promised = (np.atleast_2d(chosen.thresholds.eta) > 0).any(axis=0)
        relied |= set(chosen.scored[promised].tolist())
        base = BaseCertificates(*chosen.thresholds, chosen.group, np.where(promised, classes, ABSTAIN))
        survivors = {}
        for matrix in exact.within(2, 2):
            by_votes, by_scores = exact.kept(int(matrix), classes)
            survivors[int(matrix)] = int((np.where(chosen.scored, by_scores, by_votes) & promised).sum())
        worst = [min(survivors[int(m)] for m in exact.within(a, d)) for a, d in zip(ADDITIONS, DELETIONS, strict=True)]
        threat = flip_threat(attribute_caps(graph, layout.inputs), additions=ADDITIONS, deletions=DELETIONS)
        counts = [certify_nodes(base, classes, threat, bound).robust for bound in BOUNDS.values()]
        assert (np.diff(counts, axis=0) >= 0).all()
        assert (counts[-1] <= worst).all()
        assert counts[0][0] == promised.sum()
        certified += int(counts[-1][1:].sum())
    assert relied == {False, True}
    assert certified > 5


def test_weights_of_the_wrong_orientation_would_be_caught():
    """The level matrix transposed (columns for rows) makes promises that enumeration refutes."""
    generator = np.random.default_rng(3)
    broken = 0
    for seed in range(25):
        graph = random_graph(generator, 5, 2)
        layout = cluster_layout(CLUSTERS, graph.adjacency, addition=(0.02, 0.45), deletion=(0.02, 0.5))
        exact = ExactSmoothing(graph, sharp_gcn(2, 2, seed), layout)
        classes, base = _certificates(exact, layout, RenyiVotes())
        # Pretend that every cluster were as noisy as the farthest one.
        weights = np.repeat(base.weights.min(axis=-1, keepdims=True), base.weights.shape[-1], axis=-1)
        wrong = BaseCertificates(weights, base.eta, base.group, base.prediction)
        promised = base.prediction != ABSTAIN
        threat = flip_threat(attribute_caps(graph, layout.inputs), additions=1, deletions=1)
        certified = certify_nodes(wrong, classes, threat, BOUNDS["exact"]).robust[0]
        worst = min(int((exact.kept(int(m), classes)[0] & promised).sum()) for m in exact.within(1, 1))
        broken += certified > worst
    assert broken > 0


def _tally(graph, seed: int = 0) -> ItemTally:
    generator = np.random.default_rng(seed)
    n = 5000
    votes = generator.binomial(n, generator.beta(8, 1, graph.nodes))
    laws = stats.binom.pmf(np.arange(257), 256, generator.uniform(0.6, 0.97, graph.nodes)[:, None])
    counts = np.stack([generator.multinomial(n, law / law.sum()) for law in laws])
    further = {"scores.bins": counts, "reference": np.full(graph.nodes, 0.8)}
    return ItemTally((graph.nodes,), graph.labels.copy(), votes, 100, n, None, further)


@pytest.mark.parametrize("certificate", [RenyiVotes(), SparseScores()], ids=lambda kind: kind.name)
def test_names_of_clusters_do_not_matter(digits, certificate):
    clusters, tally = metis_clusters(digits, 3).copy(), _tally(digits)
    # Ties go by name; one node that changes sides makes all numbers of edges between clusters different.
    rows, columns = digits.edge_index
    clusters[rows[(clusters[rows] == 1) & (clusters[columns] == 2)][0]] = 2
    between = np.bincount(clusters[rows] * 3 + clusters[columns], minlength=9).reshape(3, 3)
    assert len(set(between[np.triu_indices(3, 1)].tolist())) == 3
    levels = {"addition": (0.01, 0.03), "deletion": (0.2, 0.7)}
    curves, maps = [], []
    for names in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        named = np.array(names)[clusters]
        layout = cluster_layout(named, digits.adjacency, **levels)
        base = node_certificates(tally, layout, np.arange(digits.nodes), alpha=0.05, certificates=(certificate,))
        threat = flip_threat(attribute_caps(digits, layout.inputs), deletions=range(12), additions=[0] * 12)
        curves.append(certify_nodes(base, digits.labels, threat, BOUNDS["envelope"]).correct)
        maps.append(np.stack([layout.level_map(int(group)) for group in named[:40]]))
    assert np.array_equal(maps[0], maps[1])
    assert np.array_equal(maps[0], maps[2])
    assert np.array_equal(curves[0], curves[1])
    assert np.array_equal(curves[0], curves[2])
    assert curves[0][0] > curves[0][1] > 0


def test_bounds_and_strategies_reach_the_certificate(digits):
    layout = cluster_layout(metis_clusters(digits, 4), digits.adjacency, addition=(0.01, 0.01), deletion=(0.3, 0.6))
    tally, nodes = _tally(digits), np.arange(0, digits.nodes, 2)
    common = {"tally": tally, "layout": layout, "nodes": nodes, "alpha": 0.05}
    eta = {
        bound.name: node_certificates(**common, score_bound=bound).eta
        for bound in (CdfBand(), EmpiricalBernstein(), Betting())
    }
    assert (eta["empirical_bernstein"] > eta["cdf_band"]).mean() > 0.9
    assert (eta["betting"] >= eta["empirical_bernstein"]).mean() > 0.9
    votes = node_certificates(**common, certificates=(RenyiVotes((2.0,)),))
    both = node_certificates(**common, certificates=(RenyiVotes((2.0,)), SparseScores()))
    assert both.eta.shape[0] == 2 or both.eta.ndim == 1
    assert (both.prediction != ABSTAIN).sum() >= (votes.prediction != ABSTAIN).sum() - 2
    family = node_certificates(**common, certificates=(RenyiVotes(),), simultaneous=KFamilywise(3))
    assert family.discount == 2
    # The two kinds share alpha, so that the rule's discount is paid once.
    kinds = (RenyiVotes(), SparseScores())
    assert node_certificates(**common, certificates=kinds, simultaneous=KFamilywise(3)).discount == 2
    with pytest.raises(InvalidInputError, match="fixed_threshold_holm"):
        node_certificates(**common, simultaneous=FixedThresholdHolm(0.9))
    everything = node_certificates(**(common | {"nodes": np.arange(digits.nodes)}), certificates=(RenyiVotes((2.0,)),))
    assert (everything.eta.ravel()[nodes] <= votes.eta.ravel()).all()
    with pytest.raises(InvalidInputError, match="no node"):
        node_certificates(**(common | {"nodes": np.zeros(0, int)}))


def test_weights_of_the_candidate_stage_reach_the_certificate(digits):
    layout = cluster_layout(metis_clusters(digits, 4), digits.adjacency, addition=(0.01, 0.01), deletion=(0.3, 0.6))
    tally, nodes = _tally(digits), np.arange(0, digits.nodes, 2)
    common = {"layout": layout, "nodes": nodes, "alpha": 0.05}
    with pytest.raises(InvalidInputError, match="candidate stage"):
        node_certificates(tally, **common, certificates=(RenyiVotes(),), simultaneous=CandidateWeights())
    first = np.random.default_rng(1).binomial(100, tally.votes / tally.n)
    known = replace(tally, candidate_votes=first)
    weighted = CandidateWeights().from_candidates(CandidateVotes(first[nodes], 100), tally.n, 0.05)
    assert weighted.levels(nodes.size, 0.05).sum() <= 0.05
    for certificates in ((RenyiVotes(),), (SparseScores(),)):
        by_stage = node_certificates(known, **common, certificates=certificates, simultaneous=CandidateWeights())
        by_hand = node_certificates(known, **common, certificates=certificates, simultaneous=weighted)
        equal = node_certificates(known, **common, certificates=certificates)
        assert np.array_equal(by_stage.eta, by_hand.eta)
        assert not np.array_equal(by_stage.eta, equal.eta)
        # Only what the candidate stage saw of the certified nodes matters, and nothing that is bounded.
        other = replace(known, candidate_votes=np.where(np.isin(np.arange(digits.nodes), nodes), first, 0))
        same = node_certificates(other, **common, certificates=certificates, simultaneous=CandidateWeights())
        assert np.array_equal(same.eta, by_stage.eta)
    # Votes and scores at once divide alpha, and the levels with it.
    both = (RenyiVotes(), SparseScores())
    joined = node_certificates(known, **common, certificates=both, simultaneous=CandidateWeights())
    assert (joined.prediction != ABSTAIN).any()


def test_caps_are_the_real_numbers_of_ones_and_zeros(digits):
    layout = cluster_layout(metis_clusters(digits, 3), digits.adjacency, addition=(0.1, 0.1), deletion=(0.1, 0.1))
    caps = attribute_caps(digits, layout.inputs)
    for group in range(3):
        bits = digits.attributes[layout.inputs.members(group)].toarray()
        assert caps.deletions[group] == bits.sum()
        assert caps.additions[group] == (~bits).sum()


def test_node_limits_allow_what_the_best_nodes_allow(tiny):
    layout = cluster_layout(CLUSTERS, tiny.adjacency, addition=(0.1, 0.2), deletion=(0.1, 0.2))
    found = node_limit(tiny, layout.inputs, most_nodes=1).constraints(6)
    # Ones per node 1, 1, 2, 1, 1; zeros 1, 1, 0, 1, 1; clusters {0, 1}, {2, 3}, {4}.
    assert found.caps.tolist() == [1, 1, 1, 1, 2, 1]
    assert found.budgets[0].tolist() == [1, 2]
    two = node_limit(tiny, layout.inputs, most_nodes=2, per_node=1).constraints(6)
    assert two.caps.tolist() == [2, 1, 1, 2, 2, 1]
    assert two.budgets[0].tolist() == [2, 2]


def test_further_threats_only_help(digits):
    layout = cluster_layout(metis_clusters(digits, 4), digits.adjacency, addition=(0.01, 0.01), deletion=(0.2, 0.6))
    base = node_certificates(_tally(digits), layout, np.arange(digits.nodes), alpha=0.05, certificates=(RenyiVotes(),))
    caps = attribute_caps(digits, layout.inputs)
    threat = flip_threat(caps, deletions=12)
    one = AtMostGroups(1, np.tile(np.arange(4), 2))
    plain = certify_nodes(base, digits.labels, threat).robust[0]
    for tighter in (threat & one, flip_threat(caps, deletions=12, group_budget=2)):
        assert certify_nodes(base, digits.labels, tighter).robust[0] >= plain
    limited = flip_threat(caps, deletions=12) & node_limit(digits, layout.inputs, most_nodes=1, per_node=3)
    assert certify_nodes(base, digits.labels, limited).robust[0] > plain


def test_strict_locality_gains_and_stays_true():
    """Receptive fields of a depth-limited network, against enumeration and against the same without them."""
    generator = np.random.default_rng(8)
    gained = 0
    for seed in range(4):
        graph = random_graph(generator, 6, 2, edge=0.2)
        layout = cluster_layout(np.array([0, 0, 1, 1, 2, 2]), graph.adjacency, addition=(0.2, 0.2), deletion=(0.4, 0.4))
        network = sharp_gcn(2, 2, seed)
        exact = ExactSmoothing(graph, network, layout)
        classes = np.array([int(exact.law(exact.clean, 0) @ (exact.labels[:, n] == 1) > 0.5) for n in range(6)])
        q = exact.statistics(exact.clean, classes, np.zeros(6))[0]
        found = RenyiVotes().certificates(
            SparseFlips(), layout.levels, np.minimum(q, 1 - 1e-12), layout.outputs.labels.astype(np.int64)
        )
        robust = (found.eta > 0).any(axis=0)
        base = BaseCertificates(
            found.weights, found.eta, layout.outputs.labels.astype(np.int64), np.where(robust, classes, ABSTAIN)
        )
        fields = receptive_fields(graph.adjacency, np.arange(6), network.depth)
        local = strictly_local(base, layout.inputs, fields)
        for deletions in (1, 2):
            wide = certify_nodes(
                base, classes, flip_threat(attribute_caps(graph, layout.inputs), deletions=deletions), BOUNDS["exact"]
            )
            narrow = certify_nodes(
                local.base,
                classes,
                flip_threat(attribute_caps(graph, local.inputs), deletions=deletions),
                BOUNDS["exact"],
            )
            worst = min(int((exact.kept(int(m), classes)[0] & robust).sum()) for m in exact.within(0, deletions))
            assert wide.robust[0] <= narrow.robust[0] <= worst
            gained += narrow.robust[0] - wide.robust[0]
    assert gained > 0


def test_fields_group_equal_outputs_and_inputs(tiny):
    fields = receptive_fields(tiny.adjacency, np.arange(5), 1)
    assert fields.toarray().astype(int).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 1, 1],
        [0, 0, 1, 1, 1],
        [0, 0, 1, 1, 1],
    ]
    layout = cluster_layout(np.zeros(5, int), tiny.adjacency, addition=(0.1, 0.1), deletion=(0.3, 0.3))
    eta = np.array([5.0, 5.0, 1.5, 5.0, 4.0])
    base = BaseCertificates(np.array([[2.0, 1.0]]), eta, np.zeros(5, int), np.zeros(5, int))
    local = strictly_local(base, layout.inputs, fields)
    assert local.base.group.tolist() == [0, 1, 2, 3, 3]
    assert local.inputs.labels.tolist() == [0, 1, 2, 3, 3]
    assert local.base.weights.tolist() == [
        [2, 2, 0, 0, 1, 1, 0, 0],
        [2, 2, 2, 0, 1, 1, 1, 0],
        # One flip breaks it, however heavy.
        [0, 1.5, 1.5, 1.5, 0, 1, 1, 1],
        [0, 0, 2, 2, 0, 0, 1, 1],
    ]


def _schuchardt_2021(fields, caps, budgets, radii) -> int:
    """Fewest surviving outputs, by the program of Schuchardt et al. 2021 (one set of variables per node).

    An output falls where additions and deletions inside its receptive field are a pair that its base certificate does
    not cover; `radii` lists for each output the smallest such pairs.
    """
    outputs, nodes = fields.shape
    pairs = [(n, pair) for n in range(outputs) for pair in radii[n]]
    # Variables: additions per node, deletions per node, one binary per (output, pair), one per output: it survives.
    size = 2 * nodes + len(pairs) + outputs
    cost = np.zeros(size)
    cost[-outputs:] = 1
    rows, low = [], []
    for place, (n, (added, deleted)) in enumerate(pairs):
        for needed, start in ((added, 0), (deleted, nodes)):
            row = np.zeros(size)
            row[start : start + nodes] = fields[n]
            row[2 * nodes + place] = -needed
            rows.append(row)
            low.append(0.0)
    for n in range(outputs):
        # It survives unless one of its pairs is reached.
        row = np.zeros(size)
        row[size - outputs + n] = 1
        row[[2 * nodes + place for place, (m, _) in enumerate(pairs) if m == n]] = 1
        rows.append(row)
        low.append(1.0)
    total = np.zeros((2, size))
    total[0, :nodes] = total[1, nodes : 2 * nodes] = 1
    upper = np.concatenate([caps[0], caps[1], np.ones(len(pairs) + outputs)])
    solved = optimize.milp(
        cost,
        constraints=[
            optimize.LinearConstraint(np.array(rows), np.array(low), np.inf),
            optimize.LinearConstraint(total, 0, budgets),
        ],
        integrality=np.ones(size),
        bounds=optimize.Bounds(0, upper),
    )
    assert solved.status == 0
    return round(solved.fun)


@pytest.mark.parametrize("seed", range(4))
def test_receptive_fields_give_the_certificate_of_schuchardt_2021(seed):
    """Merged fields and node groups, against the published program with one variable per node."""
    generator = np.random.default_rng(seed)
    edges = np.zeros((14, 14), int)
    edges[:11, :11] = np.triu(generator.random((11, 11)) < 0.16, 1)
    # A triangle: three nodes with one and the same receptive field.
    edges[11, 12] = edges[11, 13] = edges[12, 13] = 1
    graph = graph_from_arrays(edges, generator.random((14, 6)) < 0.4, np.zeros(14, int))
    outputs = np.arange(14)
    fields = receptive_fields(graph.adjacency, outputs, 1)
    weights = generator.uniform(0.5, 2.0, 2)
    eta = np.where(generator.random(14) < 0.15, 0.0, generator.uniform(0.4, 6.0, 14))
    # One level everywhere: one output group and one input group before the fields are looked at.
    base = BaseCertificates(weights[None], eta, np.zeros(14, int), np.where(eta > 0, 0, ABSTAIN))
    local = strictly_local(base, Partition(np.zeros(14, np.int32)), fields)
    assert local.base.weights.shape[0] <= 12
    caps = np.stack([graph.width - graph.ones_per_node, graph.ones_per_node])
    radii = []
    for one in eta:
        broken = {(a, d) for a in range(15) for d in range(15) if weights @ (a, d) >= one}
        radii.append([(a, d) for a, d in broken if (a - 1, d) not in broken and (a, d - 1) not in broken])
    gained = 0
    for budgets in ((1, 0), (0, 2), (2, 1), (1, 4)):
        alive = np.flatnonzero(eta > 0)
        published = _schuchardt_2021(
            fields.toarray()[alive].astype(float), caps, np.array(budgets), [radii[n] for n in alive]
        )
        threat = flip_threat(attribute_caps(graph, local.inputs), additions=budgets[0], deletions=budgets[1])
        ours = certify_nodes(local.base, np.zeros(14, int), threat, Exact(time_limit=None)).robust[0]
        assert ours == published
        wide = flip_threat(
            attribute_caps(graph, Partition(np.zeros(14, np.int32))), additions=budgets[0], deletions=budgets[1]
        )
        gained += ours - certify_nodes(base, np.zeros(14, int), wide, Exact()).robust[0]
    assert gained > 0


@pytest.mark.long
def test_sampled_certificates_hold_with_their_probability(tiny):
    """From samples to count: the certificate exceeds the enumerated truth no more often than α allows."""
    layout = cluster_layout(CLUSTERS, tiny.adjacency, addition=(0.1, 0.3), deletion=(0.2, 0.6))
    network = sharp_gcn(2, 2, seed=5)
    exact = ExactSmoothing(tiny, network, layout)
    alpha, runs, failures = 0.2, 60, 0
    threat = flip_threat(attribute_caps(tiny, layout.inputs), deletions=1)
    for seed in range(runs):
        tally = sample_nodes(NetworkClassifier(network), tiny, layout, SamplingPlan(100, 300, seed, 300))
        base = node_certificates(tally, layout, np.arange(5), alpha=alpha, certificates=(RenyiVotes(),))
        promised = base.prediction != ABSTAIN
        if not promised.any():
            continue
        count = certify_nodes(base, tally.candidate.astype(np.int64), threat, BOUNDS["exact"]).robust[0]
        worst = min(int((exact.kept(int(m), tally.candidate)[0] & promised).sum()) for m in exact.within(0, 1))
        failures += count > worst
    assert failures <= 20
