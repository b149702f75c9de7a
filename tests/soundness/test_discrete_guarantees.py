"""No certificate on binary data is ever broken, by enumeration of all inputs and of the worst classifiers."""

import numpy as np
import pytest
from discrete_spaces import BinarySpace, Promise

from localsmooth.certificates import (
    BernoulliScores,
    ExactVotes,
    RenyiVotes,
    ScoreCertificate,
    SparseScores,
    VoteCertificate,
    best_of,
)
from localsmooth.noise import Bernoulli, BinaryNoise, SparseFlips

# Multiples of 1/64, which the sampler attains exactly. The last element of each list is a special case of the theory.
GROUPS = [0, 0, 1, 1]
BERNOULLI = [[4 / 64, 12 / 64], [1 / 64, 30 / 64], [6 / 64, 0.5], [0.0, 8 / 64], [1.0, 8 / 64]]
SPARSE = [
    [(1 / 64, 40 / 64), (4 / 64, 50 / 64)],
    [(2 / 64, 20 / 64), (10 / 64, 10 / 64)],
    [(50 / 64, 40 / 64), (1 / 64, 1 / 64)],
    [(6 / 64, 58 / 64), (3 / 64, 30 / 64)],
    [(0.0, 32 / 64), (3 / 64, 30 / 64)],
    [(0.0, 1.0), (3 / 64, 0.0)],
]
VOTES = [
    RenyiVotes((2.0,)),
    RenyiVotes((1.05, 1.5, 2.0, 5.0, 30.0)),
    ExactVotes(vectors=60, atoms=128),
    ExactVotes(orders=(), classes=1, vectors=20, atoms=32),
    ExactVotes(orders=(), classes=2, vectors=4, horizon=2, atoms=16),
]

Case = tuple[BinaryNoise, np.ndarray, BinarySpace]


def bernoulli(levels: list[float], groups: list[int] = GROUPS) -> Case:
    return Bernoulli(), np.array([levels]), BinarySpace(groups, levels, levels, 1)


def sparse(levels: list[tuple[float, float]], groups: list[int] = GROUPS) -> Case:
    addition, deletion = [a for a, _ in levels], [d for _, d in levels]
    return SparseFlips(), np.array([levels]), BinarySpace(groups, addition, deletion, 2)


CASES = [*map(bernoulli, BERNOULLI), *map(sparse, SPARSE)]


def votes_promise(certificate: VoteCertificate, case: Case, inflate: float = 1.0) -> Promise:
    noise, levels, space = case

    def promise(clean: int, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q = np.clip(scores @ space.law[clean] - 1e-12, 0, np.nextafter(1, 0))
        weights, eta = certificate.certificates(noise, levels, q, np.zeros(q.size, dtype=int))
        return weights[:, 0], eta * inflate

    return promise


def moments(space: BinarySpace, clean: int, scores: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = np.clip(scores @ space.law[clean], 0, 1)
    return np.clip(mean - 1e-12, 0, 1), ((scores - nu[:, None]) ** 2) @ space.law[clean] + 1e-12


def scores_promise(certificate: ScoreCertificate, case: Case, seed: int = 0) -> Promise:
    """The certificate at the exact moments, about centres that are right for a third of the outputs."""
    noise, levels, space = case

    def promise(clean: int, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        mean = np.clip(scores @ space.law[clean], 0, 1)
        nu = np.choose(rng.integers(0, 3, mean.size), [mean, rng.random(mean.size), np.zeros(mean.size)])
        mu, zeta = moments(space, clean, scores, nu)
        weights, eta = certificate.certificates(noise, levels, mu, zeta, nu, np.zeros(mu.size, dtype=int))
        return weights, eta[None]

    return promise


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("certificate", VOTES, ids=["order-2", "orders", "exact", "exact-merged", "exact-coarse"])
def test_votes_keep_their_promises(certificate: VoteCertificate, case: Case) -> None:
    assert case[2].hunt(votes_promise(certificate, case), np.random.default_rng(0)) == 0


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_scores_keep_their_promises(case: Case) -> None:
    certificate = BernoulliScores() if isinstance(case[0], Bernoulli) else SparseScores()
    assert case[2].hunt(scores_promise(certificate, case), np.random.default_rng(1)) == 0


@pytest.mark.parametrize("case", [CASES[0], CASES[6]], ids=["bernoulli", "sparse"])
def test_certificates_about_one_number_may_be_stacked(case: Case) -> None:
    """Scores as the chances of random votes: both certificates are about one classifier (see test_one_basis)."""
    noise, levels, space = case
    scores_certificate = BernoulliScores() if isinstance(noise, Bernoulli) else SparseScores()

    def promise(clean: int, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        group = np.zeros(len(scores), dtype=int)
        mean = np.clip(scores @ space.law[clean], 0, 1)
        mu, zeta = moments(space, clean, scores, mean)
        votes = RenyiVotes((1.2, 3.0)).certificates(noise, levels, np.minimum(mu, 1 - 1e-15), group)
        weights, eta = best_of(votes, scores_certificate.certificates(noise, levels, mu, zeta, mean, group))
        return weights[:, 0], eta

    assert space.hunt(promise, np.random.default_rng(2)) == 0


def test_something_is_promised() -> None:
    """An empty promise is never broken: the enumeration must meet certified perturbations of every kind."""
    for case in (CASES[0], CASES[6]):
        noise, _, space = case
        for certificate in VOTES[:4]:
            weights, eta = votes_promise(certificate, case)(5, np.ones((1, len(space.points))))
            assert (weights.min(axis=1) < eta[:, 0]).any()
        scores = BernoulliScores() if isinstance(noise, Bernoulli) else SparseScores()
        weights, eta = scores_promise(scores, case)(5, np.ones((1, len(space.points))))
        assert (weights.max() < eta).all()


# What follows is wrong on purpose. Each must be caught, which shows that the hunt can fail.


@pytest.mark.parametrize("case", [bernoulli([4 / 64], [0] * 4), sparse([(4 / 64, 40 / 64)], [0] * 4)], ids=["l0", "+-"])
def test_a_slightly_larger_exact_threshold_is_caught(case: Case) -> None:
    """The exact certificate is tight: one more flip than it promises breaks the worst classifier."""
    certificate = ExactVotes(orders=(), vectors=300, horizon=5)
    assert case[2].hunt(votes_promise(certificate, case), np.random.default_rng(3)) == 0
    assert case[2].hunt(votes_promise(certificate, case, inflate=1.0001), np.random.default_rng(3)) > 0


def test_an_inflated_renyi_threshold_is_caught() -> None:
    assert CASES[0][2].hunt(votes_promise(VOTES[0], CASES[0], inflate=1.6), np.random.default_rng(3)) > 0


def test_swapped_additions_and_deletions_are_caught() -> None:
    right = votes_promise(VOTES[0], CASES[5])

    def swapped(clean: int, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights, eta = right(clean, scores)
        return np.roll(weights, 2, axis=1), eta

    assert CASES[5][2].hunt(swapped, np.random.default_rng(3)) > 0


def wrong_scores(eta: str) -> Promise:
    noise, levels, space = CASES[0]

    def promise(clean: int, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = np.clip(scores @ space.law[clean], 0, 1)
        mu, zeta = moments(space, clean, scores, mean)
        formulas = {
            "squared": np.where(mu > 0.5, np.log1p((mu - 0.5) ** 2 / zeta**2), 0),
            "symmetric": np.log1p((mu - 0.5) ** 2 / zeta),
            "no square": np.where(mu > 0.5, np.log1p(np.abs(mu - 0.5) / zeta), 0),
            "tenth more": np.where(mu > 0.5, np.log1p((mu - 0.5) ** 2 / zeta) * 1.1, 0),
        }
        return noise.weights(levels), formulas[eta][None]

    return promise


@pytest.mark.parametrize("formula", ["squared", "symmetric", "no square", "tenth more"])
def test_wrong_variance_formulas_are_caught(formula: str) -> None:
    assert CASES[0][2].hunt(wrong_scores(formula), np.random.default_rng(4)) > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_random_levels_from_every_input(seed: int) -> None:
    """All 32 inputs of five bits in three input groups, under levels at random."""
    rng = np.random.default_rng(seed)
    groups, draw = [0, 0, 1, 2, 2], rng.integers(1, 60, (3, 2)) / 64
    case = bernoulli(draw[:, 0].tolist(), groups) if seed % 2 else sparse([(a, d) for a, d in draw.tolist()], groups)
    space, scores = case[2], BernoulliScores() if seed % 2 else SparseScores()
    everywhere = range(len(space.points))
    for certificate in (RenyiVotes(), ExactVotes(vectors=100, atoms=128), ExactVotes(classes=2, vectors=20, atoms=32)):
        assert space.hunt(votes_promise(certificate, case), rng, 200, everywhere) == 0
    assert space.hunt(scores_promise(scores, case, seed), rng, 200, everywhere) == 0
