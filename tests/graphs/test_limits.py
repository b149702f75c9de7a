"""Budgets per node and per cluster against every perturbation that they allow."""

from __future__ import annotations

import functools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.certificates import ABSTAIN, BaseCertificates, RenyiVotes
from localsmooth.collective import Exact, LinearProgram, Naive
from localsmooth.layout import Partition
from localsmooth.noise import SparseFlips
from localsmooth.tasks.graphs import AttackLimits, cluster_layout
from tests.graphs.curves import certify_nodes

from .conftest import random_graph
from .exact import ExactSmoothing, sharp_gcn

CLUSTERS = np.array([0, 0, 0, 1, 1, 1])
EXACT = Exact(time_limit=None)
LIMIT = st.none() | st.integers(0, 3)


def perturbations(graph, width=2):
    """Additions and deletions at each node [matrices × nodes], of every attribute matrix."""
    codes = np.arange(1 << graph.nodes * width)
    bits = (codes[:, None] >> np.arange(graph.nodes * width) & 1).reshape(-1, graph.nodes, width) > 0
    clean = graph.attributes.toarray() > 0
    return (bits & ~clean).sum(axis=-1), (~bits & clean).sum(axis=-1)


def within(limits: AttackLimits, added, deleted):
    """Whether each perturbation respects the limits, as their words say it."""
    clusters = [kind @ (CLUSTERS[:, None] == np.arange(2)) for kind in (added, deleted)]
    inside = np.ones(len(added), dtype=np.bool_)
    for kinds, budget, both, most in (
        ((added, deleted), limits.node_budget, limits.node_flips, limits.attacked_nodes),
        (clusters, limits.cluster_budget, limits.cluster_flips, limits.attacked_clusters),
    ):
        together = kinds[0] + kinds[1]
        for values, limit in ((kinds[0], budget), (kinds[1], budget), (together, both)):
            if limit is not None:
                inside &= (values <= limit).all(axis=-1)
        if most is not None:
            inside &= (together > 0).sum(axis=-1) <= most
    return inside


@given(st.integers(0, 2**32 - 1), st.booleans(), st.tuples(LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT))
@settings(max_examples=80, deadline=None)
def test_every_allowed_perturbation_is_within_the_rows(seed, fine, limits):
    graph = random_graph(np.random.default_rng(seed), 6, 2)
    inputs = Partition(np.array([0, 0, 1, 2, 2, 3], np.int32) if fine else CLUSTERS.astype(np.int32))
    clusters = np.array([0, 0, 1, 1]) if fine else np.array([0, 1])
    asked = AttackLimits(*limits)
    added, deleted = perturbations(graph)
    inside = within(asked, added, deleted)
    assert inside.any()
    members = inputs.labels[:, None] == np.arange(inputs.count)
    spent = np.concatenate([added @ members, deleted @ members], axis=1)[inside]
    found = asked.threat(graph, inputs, clusters, additions=12, deletions=12).constraints(2 * inputs.count)
    assert (spent <= found.caps).all()
    assert (spent @ found.rows.T <= found.budgets[0]).all()
    for most, labels in found.limits:
        used = [(spent[:, labels == label] > 0).any(axis=1) for label in np.unique(labels)]
        assert (np.sum(used, axis=0) <= most).all()
    if asked.attacked_clusters is None and asked.cluster_budget is None and asked.cluster_flips is None:
        # No looser than it has to be: some perturbation spends as much in each column, and in each group.
        assert np.array_equal(np.minimum(found.caps, 12), spent.max(axis=0))
        groups = spent.reshape(len(spent), 2, -1).sum(axis=1).max(axis=0)
        if asked.node_flips is not None:
            shares = found.budgets[0, -inputs.count - 1 : -1]
            assert np.array_equal(shares, groups)


@functools.cache
def smoothed(seed):
    """A graph, its exact smoothed classifier, and certificates as strong as they can be."""
    graph = random_graph(np.random.default_rng(seed), 6, 2, edge=0.2)
    layout = cluster_layout(CLUSTERS, graph.adjacency, addition=(0.25, 0.35), deletion=(0.35, 0.55))
    exact = ExactSmoothing(graph, sharp_gcn(2, 2, seed), layout)
    q = exact.statistics(exact.clean, np.zeros(6, int), np.zeros(6))[0]
    classes = np.where(q > 0.5, 0, 1)
    q = exact.statistics(exact.clean, classes, np.zeros(6))[0]
    group = layout.outputs.labels.astype(np.int64)
    found = RenyiVotes().certificates(SparseFlips(), layout.levels, np.minimum(q, 1 - 1e-12), group)
    robust = (found.eta > 0).any(axis=0)
    base = BaseCertificates(found.weights, found.eta, group, np.where(robust, classes, ABSTAIN))
    kept = np.full(1 << 12, 6)
    for code in exact.within(2, 2):
        kept[code] = (exact.kept(int(code), classes)[0] & robust).sum()
    return graph, layout, base, classes, kept


LIMITS = [
    AttackLimits(node_flips=0),
    AttackLimits(node_flips=1),
    AttackLimits(cluster_flips=1),
    AttackLimits(cluster_flips=2, node_flips=1),
    AttackLimits(node_flips=1, attacked_nodes=1, node_budget=2),
    AttackLimits(cluster_flips=1, attacked_clusters=1),
]


def certified(seed: int, limits: AttackLimits, budget: int) -> int:
    """Certified nodes within a budget for each kind and limits, checked against every perturbation."""
    graph, layout, base, classes, kept = smoothed(seed)
    added, deleted = perturbations(graph)
    reachable = (added.sum(axis=1) <= budget) & (deleted.sum(axis=1) <= budget)
    threat = limits.threat(graph, layout.inputs, np.arange(2), additions=budget, deletions=budget)
    naive, program, best = (
        certify_nodes(base, classes, threat, b).robust[0] for b in (Naive(), LinearProgram(), EXACT)
    )
    assert naive <= program <= best <= kept[within(limits, added, deleted) & reachable].min()
    return int(best)


def test_no_adversary_within_the_limits_beats_the_certificate():
    gained = np.zeros(len(LIMITS), np.int64)
    for seed in range(3):
        for budget in (1, 2):
            without = certified(seed, AttackLimits(), budget)
            gained += [certified(seed, limits, budget) - without for limits in LIMITS]
    assert (gained >= 0).all()
    assert np.count_nonzero(gained) >= 4


def test_budgets_of_both_kinds_are_tighter_than_one_for_each():
    gained = 0
    for seed in range(3):
        graph, layout, base, classes, _ = smoothed(seed)
        for each, both in (("node_budget", "node_flips"), ("cluster_budget", "cluster_flips")):
            counts = [
                certify_nodes(
                    base,
                    classes,
                    AttackLimits(**{name: 1}).threat(graph, layout.inputs, np.arange(2), additions=2, deletions=2),
                    EXACT,
                ).robust[0]
                for name in (each, both)
            ]
            assert counts[1] >= counts[0]
            gained += counts[1] - counts[0]
    assert gained > 0
