"""SparseSmooth's table over both kinds of flips, against enumeration and against the certificates of the package."""

from __future__ import annotations

import numpy as np
import pytest

from localsmooth.baselines import SparseSmooth, flip_frontier, tolerated_flips, worst_spending
from localsmooth.certificates import ExactVotes, RenyiVotes, SparseScores
from localsmooth.errors import InvalidInputError
from localsmooth.noise import FlipCaps, SparseFlips, drawable_probabilities
from localsmooth.tasks.graphs import AttackLimits, GraphSettings, attribute_caps, cluster_layout, isotropic_node_layout

from .conftest import random_graph
from .exact import ExactSmoothing, sharp_gcn

BUDGETS = np.array([0, 1, 2, 9])


def _smoothed(seed):
    graph = random_graph(np.random.default_rng(seed), 5, 2)
    layout = isotropic_node_layout(5, addition=0.25, deletion=0.4)
    exact = ExactSmoothing(graph, sharp_gcn(2, 2, seed), layout)
    votes = exact.statistics(exact.clean, np.zeros(5, int), np.zeros(5))[0]
    classes = np.where(votes > 0.5, 0, 1)
    return graph, layout, exact, classes, exact.statistics(exact.clean, classes, np.zeros(5))[0]


def test_no_adversary_beats_the_table():
    tolerating = 0
    for seed in range(4):
        graph, layout, exact, classes, q = _smoothed(seed)
        lower = np.minimum(q, 1 - 1e-12) - 1e-9
        caps = attribute_caps(graph, layout.inputs)
        found = tolerated_flips(SparseSmooth(), lower, layout, caps, BUDGETS, BUDGETS)
        for a, additions in enumerate(BUDGETS):
            for d, deletions in enumerate(BUDGETS):
                if a < 3 and d < 3:
                    kept = [exact.kept(int(code), classes)[0] for code in exact.within(int(additions), int(deletions))]
                    assert (np.all(kept, axis=0) | ~found[a, d]).all()
        # More flips of either kind are never tolerated where fewer are not.
        assert (found[1:] <= found[:-1]).all()
        assert (found[:, 1:] <= found[:, :-1]).all()
        tolerating += int(found[1:, 1:].sum())
    assert tolerating > 0


def test_the_table_is_that_of_the_image_baseline_and_no_weaker_than_exact_votes():
    lower = np.linspace(0.4, 0.9999, 40)
    layout = isotropic_node_layout(40, addition=0.02, deletion=0.6)
    caps, budgets = FlipCaps(np.array([500]), np.array([300])), np.arange(6)
    found = tolerated_flips(SparseSmooth(), lower, layout, caps, budgets, budgets)
    drawn = drawable_probabilities(np.array([0.02, 0.6]))
    frontier = flip_frontier(*drawn.tolist(), float(lower.max()), 5, 5)
    assert np.array_equal(found, lower > frontier.smallest[..., None])
    weights, eta = ExactVotes().certificates(SparseFlips(), layout.levels, lower, np.zeros(40, np.int64))
    weights, eta = weights.reshape(-1, 2), eta.reshape(-1, 40)
    for a in budgets:
        for d in budgets:
            linear = ((weights @ np.array([a, d]))[:, None] < eta).any(axis=0)
            assert (found[a, d] | ~linear).all()


def test_bits_that_are_not_there_cost_nothing_and_the_horizon_ends_the_promise():
    lower = np.array([0.999])
    layout = isotropic_node_layout(1, addition=0.2, deletion=0.6)
    few = FlipCaps(np.array([1]), np.array([0]))
    found = tolerated_flips(SparseSmooth(), lower, layout, few, BUDGETS, BUDGETS)
    assert found.all()
    many = FlipCaps(np.array([50]), np.array([50]))
    near = tolerated_flips(SparseSmooth(1), lower, layout, many, BUDGETS, BUDGETS)
    assert near[:2, :2].all()
    assert not near[2:].any()
    assert not near[:, 2:].any()
    assert not tolerated_flips(SparseSmooth(), np.array([np.nan]), layout, many, BUDGETS, BUDGETS).any()
    assert worst_spending(np.array([2, 0, 5]), 4).tolist() == [2, 0, 2]
    assert worst_spending(np.array([2, 0, 5]), 40).tolist() == [2, 0, 5]


def test_what_it_cannot_use_is_refused(tiny):
    layout = cluster_layout(np.array([0, 0, 1, 1, 1]), tiny.adjacency, addition=(0.1, 0.2), deletion=(0.3, 0.3))
    caps = attribute_caps(tiny, layout.inputs)
    with pytest.raises(InvalidInputError, match="isotropic"):
        tolerated_flips(SparseSmooth(), np.full(5, 0.9), layout, caps, BUDGETS, BUDGETS)
    for wrong in (
        {"certificates": [SparseScores()]},
        {"certificates": [RenyiVotes(), SparseScores()]},
        {"strictly_local": True},
        {"limits": AttackLimits(node_flips=1)},
    ):
        with pytest.raises(InvalidInputError, match="sparse-smooth"):
            GraphSettings(0.1, baseline=SparseSmooth(), **wrong)
