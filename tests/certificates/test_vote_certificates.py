"""Uniform, Rényi and exact votes, their weights and their combinations."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.certificates import (
    VOTE_CERTIFICATES,
    ExactVotes,
    GaussianVotes,
    RenyiVotes,
    Thresholds,
    UniformVotes,
    best_of,
    one_basis,
    smallest_robust_probability,
)
from localsmooth.certificates.capping import cap_weights
from localsmooth.certificates.flip_classes import flip_classes
from localsmooth.certificates.renyi_votes import renyi_eta
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Bernoulli, BinaryNoise, Gaussian, SparseFlips, Uniform

FIGURES = np.array([[[0.01, 0.9]]])
ORDERS = (1.01, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


def test_uniform_threshold() -> None:
    q = np.array([0.2, 0.5, 0.75, 0.99, np.nan])
    weights, eta = UniformVotes().certificates(Uniform(), np.array([[2.0, np.inf]]), q, np.zeros(5, dtype=int))
    np.testing.assert_allclose(weights, [[0.5, 0.0]])
    np.testing.assert_array_equal(eta, [0, 0, 0.5, 2 * 0.99 - 1, 0])


@settings(deadline=None)
@given(st.floats(0.5, 1, exclude_max=True), st.floats(1.01, 300))
def test_renyi_threshold_rounded_down(q: float, order: float) -> None:
    found = float(renyi_eta(np.array([q]), order)[0])
    with mpmath.workdps(80):
        p, a = mpmath.mpf(q), mpmath.mpf(order)
        exact = mpmath.log(2 ** (-a) * (p ** (1 - a) + (1 - p) ** (1 - a))) / (a - 1)
        assert found == 0 or mpmath.mpf(found) <= exact
        assert found >= float(exact) * (1 - 1e-12) - 1e-12 * (1 + 1 / (order - 1))


def counts(order: float) -> list[int]:
    """Most flips of each kind on its own at the published figures."""
    weights, eta = RenyiVotes((order,)).certificates(SparseFlips(), FIGURES, np.array([0.99]), np.array([0]))
    return [int(np.ceil(eta[0, 0] / w) - 1) for w in weights[0, 0]]


def test_published_figures() -> None:
    assert counts(2.0) == [5, 37]
    table = np.array([counts(order) for order in ORDERS])
    assert table.max(axis=0).tolist() == [11, 41]
    weights, eta = ExactVotes().certificates(SparseFlips(), FIGURES, np.array([0.99]), np.array([0]))
    assert (np.ceil(eta[:, 0, None] / weights[:, 0]) - 1).max(axis=0).tolist() == [21, 41]


@pytest.mark.parametrize("certificate", [RenyiVotes(), ExactVotes(vectors=50)])
def test_untouched_bits_and_irrelevant_ones(certificate: RenyiVotes | ExactVotes) -> None:
    levels = np.array([[0.0, 0.5, 0.1]])
    weights, eta = certificate.certificates(Bernoulli(), levels, np.array([0.99, 0.4]), np.array([0, 0]))
    assert np.isfinite(weights).all()
    assert (weights[:, 0, 0] >= eta[:, 0]).all()  # one flip of an unperturbed bit is never tolerated
    np.testing.assert_array_equal(weights[:, 0, 1], 0.0)
    assert (eta[:, 0] > weights[:, 0, 2]).any()
    np.testing.assert_array_equal(eta[:, 1], 0.0)


@pytest.mark.parametrize("certificate", [RenyiVotes(), ExactVotes(vectors=50)])
def test_hidden_inputs_only(certificate: RenyiVotes | ExactVotes) -> None:
    weights, eta = certificate.certificates(
        Bernoulli(), np.full((1, 2), np.inf), np.array([0.9, 0.3]), np.array([0, 0])
    )
    np.testing.assert_array_equal(weights, 0.0)
    assert (eta[:, 0] > 0).all()
    np.testing.assert_array_equal(eta[:, 1], 0.0)


@pytest.mark.parametrize("name", sorted(VOTE_CERTIFICATES))
def test_registry_and_other_noises(name: str) -> None:
    certificate = VOTE_CERTIFICATES[name]()
    other = Uniform() if name != "uniform-votes" else Gaussian()
    with pytest.raises(InvalidInputError, match=name):
        certificate.certificates(other, np.ones((1, 1)), np.array([0.9]), np.array([0]))


def test_bad_options_are_refused() -> None:
    for orders in ((), (1.0,), (2.0, 2.0), (np.inf,), (np.nan,), (0.5,)):
        with pytest.raises(InvalidInputError, match="orders"):
            RenyiVotes(orders)
    with pytest.raises(InvalidInputError, match="references"):
        ExactVotes(references=())
    with pytest.raises(InvalidInputError, match="horizon"):
        ExactVotes(horizon=0)


grid_probabilities = st.integers(0, 2**10).map(lambda n: n / 2**10)
small_theta = st.integers(1, 15).map(lambda n: n / 16)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from([Bernoulli(), SparseFlips()]), st.integers(1, 2), st.integers(1, 60))
def test_exact_votes_promise_only_robust_vectors(
    data: st.DataObject, noise: BinaryNoise, groups: int, vectors: int
) -> None:
    """All vectors of flips up to a size well beyond the promises, checked one by one without merging or steps."""
    trailing = (2,) if len(noise.kinds) == 2 else ()
    flat = [data.draw(small_theta) for _ in range(groups * (2 if trailing else 1))]
    levels = np.array(flat).reshape(1, groups, *trailing)
    q = np.array(data.draw(st.lists(st.floats(0.4, 0.9999), min_size=1, max_size=4)))
    certificate = ExactVotes(
        references=(1.0, 0.3), classes=data.draw(st.integers(1, 4)), vectors=vectors, horizon=8, atoms=64
    )
    weights, eta = certificate.certificates(noise, levels, q, np.zeros(q.size, dtype=int))
    clean, perturbed = (law[0] for law in noise.bit_laws(levels))
    top = 5 if clean.size <= 2 else 3
    for flips in itertools.product(range(top + 1), repeat=clean.size):
        promised = (weights[:, 0] @ np.array(flips))[:, None] < eta
        if promised.any():
            needed = smallest_robust_probability(clean, perturbed, np.array(flips), atoms=256)
            assert (q[promised.any(axis=0)] >= needed - 1e-12).all()
            assert (q[promised.any(axis=0)] > 0.5).all()


@settings(max_examples=20, deadline=None)
@given(st.lists(small_theta, min_size=1, max_size=3), st.floats(0.6, 0.9999))
def test_exact_votes_promise_all_that_renyi_does(levels: list[float], q: float) -> None:
    matrix, group = np.array([levels]), np.array([0])
    exact = ExactVotes(orders=(1.5, 4.0), vectors=60, atoms=64).certificates(Bernoulli(), matrix, np.array([q]), group)
    renyi = RenyiVotes((1.5, 4.0)).certificates(Bernoulli(), matrix, np.array([q]), group)
    for flips in itertools.product(range(4), repeat=len(levels)):
        vector = np.array(flips)
        if (renyi.weights[:, 0] @ vector < renyi.eta[:, 0]).any():
            assert (exact.weights[:, 0] @ vector < exact.eta[:, 0]).any()


@settings(deadline=None)
@given(st.lists(st.tuples(grid_probabilities, grid_probabilities), min_size=1, max_size=8), st.integers(1, 8))
def test_flip_classes_dominate_their_columns(laws: list[tuple[float, float]], most: int) -> None:
    clean, perturbed = np.array(laws).T
    classes = flip_classes(clean, perturbed, most)
    assert classes.clean.size <= most
    assert (classes.clean < classes.perturbed).all()
    for c, p, k in zip(clean, perturbed, classes.member, strict=True):
        if k < 0:
            assert c == p or 1 - c == 1 - p
        else:
            low, high = (c, p) if p > c else (1 - c, 1 - p)
            assert classes.clean[k] <= low < high <= classes.perturbed[k]


def test_capping_keeps_every_promise_about_whole_flips() -> None:
    weights = np.array([[np.inf, 3.0, 0.5], [1.0, np.inf, 0.0]])
    eta, group = np.array([2.0, 1.2, 0.0]), np.array([0, 0, 1])
    capped = cap_weights(weights, eta, group)
    np.testing.assert_array_equal(capped, [[2.0, 2.0, 0.5], [1.0, 1.0, 0.0]])
    for flips in itertools.product(range(6), repeat=3):
        vector = np.array(flips)
        with np.errstate(invalid="ignore"):
            before = np.where(vector > 0, weights * vector, 0.0).sum(axis=1)[group] < eta
        np.testing.assert_array_equal(before, (capped @ vector)[group] < eta)


def test_best_of_takes_the_larger_threshold_under_equal_weights() -> None:
    weights, group = np.array([[1.0, 2.0]]), np.array([0, 0])
    combined = best_of(Thresholds(weights, np.array([1.0, 3.0])), Thresholds(weights, np.array([2.0, 0.0])))
    np.testing.assert_array_equal(combined.eta, [2.0, 3.0])
    np.testing.assert_array_equal(combined.weights, weights)
    other = Thresholds(weights * 2, np.array([5.0, 1.0]))
    stacked = best_of(
        combined,
        other,
        RenyiVotes((2.0, 3.0)).certificates(Bernoulli(), np.array([[0.1, 0.2]]), np.array([0.9, 0.8]), group),
    )
    assert stacked.weights.shape == (4, 1, 2)
    assert stacked.eta.shape == (4, 2)
    np.testing.assert_array_equal(best_of(combined).eta, combined.eta)


def test_best_of_refuses_certificates_of_different_layouts() -> None:
    one = Thresholds(np.ones((1, 2)), np.ones(3))
    for other in (Thresholds(np.ones((1, 3)), np.ones(3)), Thresholds(np.ones((1, 2)), np.ones(4))):
        with pytest.raises(InvalidInputError, match="thresholds"):
            best_of(one, other)
    with pytest.raises(InvalidInputError, match="thresholds"):
        best_of()


def test_gaussian_votes_and_scores_share_their_weights() -> None:
    from localsmooth.certificates import GaussianScores

    levels, q, group = np.array([[0.5, 1.0]]), np.array([0.9, 0.6]), np.array([0, 0])
    votes = GaussianVotes().certificates(Gaussian(), levels, q, group)
    scores = GaussianScores().certificates(Gaussian(), levels, q, np.array([1e-3, 1e-3]), q, group)
    combined = one_basis(votes, scores, group)
    np.testing.assert_array_equal(combined.thresholds.eta, np.maximum(votes.eta, scores.eta))
    np.testing.assert_array_equal(combined.group, group)
    assert combined.thresholds.weights.ndim == 2
