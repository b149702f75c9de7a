"""Regions of constant likelihood ratio against exact rational arithmetic, other certificates and plain enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsmooth.baselines.regions import FlipFrontier, flip_frontier, region_law
from localsmooth.certificates import ExactVotes, RenyiVotes, smallest_robust_probability
from localsmooth.errors import InvalidInputError
from localsmooth.noise import SparseFlips

from ..soundness.discrete_spaces import BinarySpace


def exact_threshold(addition: float, deletion: float, additions: int, deletions: int) -> Fraction:
    """Largest clean probability of a classifier that x' brings down to 1/2, over all outcomes of the flipped bits."""
    plus, minus = Fraction(addition), Fraction(deletion)
    outcomes: list[tuple[Fraction, Fraction]] = []
    for bits in itertools.product((0, 1), repeat=additions + deletions):
        clean = perturbed = Fraction(1)
        for place, bit in enumerate(bits):
            one, after = (plus, 1 - minus) if place < additions else (1 - minus, plus)
            clean *= one if bit else 1 - one
            perturbed *= after if bit else 1 - after
        outcomes.append((perturbed / clean, clean))
    left, total = Fraction(1, 2), Fraction(0)
    for ratio, clean in sorted(outcomes):
        share = min(Fraction(1), left / (ratio * clean))
        total += share * clean
        left -= share * ratio * clean
        if left <= 0:
            break
    return total


@pytest.mark.parametrize(
    ("addition", "deletion"), [(0.0625, 0.5), (0.25, 0.25), (0.5, 0.75), (0.9375, 0.5), (2**-9, 0.75)]
)
def test_regions_equal_enumeration(addition: float, deletion: float) -> None:
    for additions, deletions in itertools.product(range(4), range(5)):
        truth = exact_threshold(addition, deletion, additions, deletions)
        found = region_law(addition, deletion, additions, deletions).smallest_robust_probability()
        assert Fraction(found) >= truth
        assert found <= float(truth) * (1 + 1e-11)


@given(st.integers(1, 2**10 - 1), st.integers(1, 2**10 - 1), st.integers(0, 60), st.integers(0, 60))
def test_regions_equal_the_general_code(plus: int, minus: int, additions: int, deletions: int) -> None:
    addition, deletion = plus / 2**10, minus / 2**10
    found = region_law(addition, deletion, additions, deletions).smallest_robust_probability()
    general = smallest_robust_probability(
        np.array([addition, 1 - deletion]),
        np.array([1 - deletion, addition]),
        np.array([additions, deletions]),
        1 << 14,
    )
    assert found == pytest.approx(general, abs=1e-8)


def test_extreme_probabilities_and_bad_input() -> None:
    assert region_law(0.25, 0.75, 30, 40).smallest_robust_probability() == pytest.approx(0.5, abs=1e-12)
    assert region_law(0.0, 0.5, 1, 0).smallest_robust_probability() >= exact_threshold(2**-40, 0.5, 1, 0)
    for wrong in ((-0.1, 0.5, 1, 1), (0.1, 1.5, 1, 1), (0.1, 0.5, -1, 0), (float("nan"), 0.5, 1, 0)):
        with pytest.raises(InvalidInputError):
            region_law(*wrong)


def test_frontier_is_monotone_and_its_corners_are_the_smallest_that_fall() -> None:
    frontier = flip_frontier(0.01, 0.6, 0.999, 60, 60)
    smallest = frontier.smallest
    assert (smallest[1:] >= smallest[:-1]).all()
    assert (smallest[:, 1:] >= smallest[:, :-1]).all()
    for q in (0.4, 0.51, 0.8, 0.95, 0.999):
        corners = frontier.corners(q)
        tolerated = q > smallest
        reached = np.zeros_like(tolerated)
        for a, d in corners:
            reached[a:, d:] = True
        np.testing.assert_array_equal(reached, ~tolerated)
        for a, d in corners:  # each is minimal
            assert not a or tolerated[a - 1, d]
            assert not d or tolerated[a, d - 1]
    assert len(frontier.corners(0.95)) > 2, "the staircase has a single step: the test shows nothing"


def test_the_horizon_promises_nothing_beyond_itself() -> None:
    frontier = flip_frontier(0.2, 0.6, 0.9999, 100, 100, horizon=2)
    assert frontier.smallest.shape == (4, 4)
    assert np.isinf(frontier.smallest[3]).all()
    assert np.isinf(frontier.smallest[:, 3]).all()


def test_additions_and_deletions_grid() -> None:
    q = np.array([0.4, 0.6, 0.9, 0.99, 0.9999])
    tolerated = flip_frontier(0.01, 0.6, float(q.max()), 3, 4).tolerated(q, np.arange(4), np.arange(5))
    for a, d in np.ndindex(4, 5):
        np.testing.assert_array_equal(tolerated[a, d], q > max(0.5, float(exact_threshold(0.01, 0.6, a, d))))


def test_worst_of_size_by_hand() -> None:
    frontier = FlipFrontier(np.array([[0.5, 0.7, np.inf], [0.6, 0.8, np.inf]]))
    np.testing.assert_array_equal(frontier.by_size(), [0.5, 0.7, np.inf, np.inf])


def test_never_below_renyi_votes_and_equal_to_exact_votes_for_one_kind() -> None:
    """One level and one kind of flip: exact votes are this certificate; Rényi votes never certify more."""
    addition, deletion = 0.0625, 0.625
    q = np.array([0.55, 0.7, 0.9, 0.99, 0.9999])
    levels = np.array([[[addition, deletion]]])
    group = np.zeros(q.size, np.int64)
    most = 40
    frontier = flip_frontier(addition, deletion, float(q.max()), most, most)
    alone = [(q[:, None] > line[None]).sum(axis=1) - 1 for line in (frontier.smallest[:, 0], frontier.smallest[0])]
    for certificate in (RenyiVotes((1.5, 2.0, 4.0, 8.0)), ExactVotes()):
        weights, eta = certificate.certificates(SparseFlips(), levels, q, group)
        for kind, tolerated in enumerate(alone):
            flips = np.zeros((2, most))
            flips[kind] = np.arange(most)
            robust = (np.einsum("cgk,kn->cn", weights, flips)[:, None] < eta[:, :, None]).any(axis=0)
            other = robust.sum(axis=1) - 1
            assert (other <= tolerated).all()
            if isinstance(certificate, ExactVotes):
                assert (other >= tolerated - 1).all()
                assert (other == tolerated).mean() >= 0.8


@pytest.mark.parametrize("kinds", [1, 2])
def test_no_classifier_breaks_the_promise(kinds: int) -> None:
    """All inputs, outcomes and worst classifiers of a tiny space: the set of tolerated flips never lies."""
    deletion = 0.25 if kinds == 1 else 0.625
    space = BinarySpace([0, 0, 0, 0], [0.25], [deletion], 2)
    checked = 0
    for clean in (0, 5, 7, 15):
        scores = np.concatenate([space.random_scores(np.random.default_rng(clean), 60), space.worst(clean)])
        q = scores @ space.law[clean]
        frontier = flip_frontier(0.25, deletion, 1.0, 4, 4)
        promised = q[:, None] > frontier.smallest[space.flips[clean][:, 0], space.flips[clean][:, 1]][None]
        mean = scores @ space.law.T
        assert not (promised & (mean <= 0.5 - 1e-12)).any()
        # The worst classifiers are barely not promised: a threshold lower by 10⁻⁶ would be caught.
        lenient = q[:, None] + 1e-6 > frontier.smallest[space.flips[clean][:, 0], space.flips[clean][:, 1]][None]
        checked += int((lenient & (mean <= 0.5 - 1e-12)).sum())
    assert checked > 0
