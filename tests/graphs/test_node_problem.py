"""Counting flips in place of weighing them: the same problem, and tighter relaxations."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.certificates import BaseCertificates
from localsmooth.collective import AtMostGroups, Caps, Envelope, Exact, LinearProgram, Naive, Problem, solve
from localsmooth.noise import FlipCaps
from localsmooth.tasks.graphs import flip_threat
from localsmooth.tasks.graphs.problem import equal_flips, node_problem


def local_case(seed):
    """Random fields over a few input groups; every certificate weighs what it sees equally."""
    r = np.random.default_rng(seed)
    groups, inputs, outputs, kinds = int(r.integers(1, 4)), int(r.integers(1, 4)), int(r.integers(1, 7)), 3
    seen = r.random((groups, inputs)) < 0.7
    weights = np.tile(r.uniform(0.1, 2.0, (kinds, groups, 1, 1)) * seen[:, None, :], (1, 1, 2, 1))
    weights[..., 1, :] *= r.uniform(0.5, 2.0)
    eta = r.choice([0.0, 1.0, 1.5, 2.5], (kinds, outputs)) * r.uniform(0.2, 2.0)
    if r.random() < 0.5:
        # Thresholds on the very edge: so many flips weigh exactly as much.
        eta = weights.max(axis=(2, 3))[:, r.integers(0, groups, outputs)] * r.integers(0, 4, outputs)
    group = r.integers(0, groups, outputs)
    base = BaseCertificates(weights.reshape(kinds, groups, -1), eta, group, np.zeros(outputs, np.int64))
    return base, FlipCaps(r.integers(0, 4, inputs), r.integers(0, 4, inputs)), int(r.integers(0, 5))


def survivors(base, spending):
    """Outputs that one of their certificates holds up, in exact arithmetic."""
    left = 0
    for output, row in enumerate(base.group):
        left += any(
            sum(Fraction(float(w)) * int(b) for w, b in zip(weights[row], spending, strict=True)) < Fraction(float(e))
            for weights, e in zip(base.weights, base.eta[:, output], strict=True)
        )
    return left


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_least_that_any_flips_leave(seed, adding):
    base, caps, budget = local_case(seed)
    threat = flip_threat(caps, **({"additions": budget} if adding else {"deletions": budget}))
    room = caps.additions if adding else caps.deletions
    nothing = np.zeros(len(room), np.int64)
    least = min(
        survivors(base, np.concatenate([plan, nothing] if adding else [nothing, plan]))
        for plan in map(np.array, itertools.product(*(range(int(cap) + 1) for cap in room)))
        if plan.sum() <= budget
    )
    targets = np.arange(base.group.size)
    asked = node_problem(base, threat, targets)
    if budget and room.any():
        assert len(asked.columns) < asked.size
    found = solve(asked.problem, Exact(time_limit=None), verify=True)[0]
    assert found.certified == least
    assert survivors(base, asked.spread(found.attack)) == found.upper == least
    plain = Problem(base.weights, base.eta, base.group, threat, targets)
    for bound in (Naive(), LinearProgram(), Envelope()):
        assert solve(plain, bound)[0].certified <= solve(asked.problem, bound)[0].certified <= least


def test_relaxations_gain():
    # Three outputs that see one input group each and fall at 1.4 flips, which is 2; three flips break one of them.
    base = BaseCertificates(np.tile(np.eye(3), 2), np.full(3, 1.4), np.arange(3), np.zeros(3, np.int64))
    threat, targets = flip_threat(FlipCaps(np.full(3, 9), np.full(3, 9)), deletions=3), np.arange(3)
    plain = Problem(base.weights, base.eta, base.group, threat, targets)
    assert solve(plain, LinearProgram())[0].certified == 1
    assert solve(node_problem(base, threat, targets).problem, LinearProgram())[0].certified == 2
    assert solve(plain, Exact(time_limit=None))[0].certified == 2


def test_what_is_not_equal_stays_as_it_is():
    weights = np.array([[1.0, 2.0, 0.5, 0.5]])
    base = BaseCertificates(weights, np.array([3.0]), np.array([0]), np.array([0]))
    caps, targets = FlipCaps(np.array([5, 5]), np.array([5, 5])), np.array([0])
    assert not equal_flips(base, np.arange(2))
    assert equal_flips(base, np.arange(2, 4))
    assert len(node_problem(base, flip_threat(caps, additions=2), targets).columns) == 4
    assert len(node_problem(base, flip_threat(caps, additions=1, deletions=1), targets).columns) == 4
    assert node_problem(base, flip_threat(caps, deletions=2), targets).columns.tolist() == [2, 3]
    # In fractions of flips, 5.5 of them are enough where only 6 whole ones are.
    assert len(node_problem(base, Caps([0.0, 0.0, 5.0, 5.0]), targets).columns) == 4


def test_certificates_must_agree_on_what_is_seen():
    weights = np.array([[[1.0, 1.0]], [[2.0, 0.0]]])
    base = BaseCertificates(weights, np.array([[3.0], [3.0]]), np.array([0]), np.array([0]))
    assert not equal_flips(base, np.arange(2))
    blind = BaseCertificates(np.array([[[1.0, 1.0]], [[0.0, 0.0]]]), base.eta, base.group, base.prediction)
    assert equal_flips(blind, np.arange(2))


@pytest.mark.parametrize("most", [0, 1, 2])
def test_attacked_groups_are_kept(most):
    base, _, _ = local_case(3)
    inputs = base.weights.shape[-1] // 2
    caps = FlipCaps(np.full(inputs, 3), np.full(inputs, 3))
    threat = flip_threat(caps, deletions=4) & AtMostGroups(most, np.tile(np.arange(inputs), 2))
    targets = np.arange(base.group.size)
    ours = solve(node_problem(base, threat, targets).problem, Exact(time_limit=None))[0].certified
    plain = solve(Problem(base.weights, base.eta, base.group, threat, targets), Exact(time_limit=None))[0].certified
    assert ours == plain
