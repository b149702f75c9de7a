"""What every base certificate must do, whatever its formula."""

import numpy as np
import pytest

from localsmooth.certificates import (
    SCORE_CERTIFICATES,
    VOTE_CERTIFICATES,
    ExactVotes,
    ScoreCertificate,
    Thresholds,
    VoteCertificate,
)
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Bernoulli, Gaussian, Noise, SparseFlips, Uniform

POSITIVE = np.array([[0.25, 1.0, np.inf], [2.0, 0.5, 0.7]])
BITS = np.array([[0.1, 0.25, np.inf], [0.5, 0.25, 0.0]])
PAIRS = np.stack([BITS, np.where(np.isinf(BITS), np.inf, 0.75 * BITS + 0.2)], axis=-1)

NOISES: dict[str, list[tuple[Noise, np.ndarray]]] = {
    "gaussian-votes": [(Gaussian(), POSITIVE), (Gaussian(clamp=True), POSITIVE)],
    "uniform-votes": [(Uniform(), POSITIVE)],
    "renyi-votes": [(Bernoulli(), BITS), (SparseFlips(), PAIRS)],
    "exact-votes": [(Bernoulli(), BITS), (SparseFlips(), PAIRS)],
    "gaussian-scores": [(Gaussian(), POSITIVE)],
    "bernoulli-scores": [(Bernoulli(), BITS)],
    "sparse-scores": [(SparseFlips(), PAIRS)],
}


def make_votes(name: str) -> VoteCertificate:
    return ExactVotes(vectors=40, atoms=64) if name == "exact-votes" else VOTE_CERTIFICATES[name]()


VOTES = [(make_votes(name), *pair) for name in VOTE_CERTIFICATES for pair in NOISES[name]]
SCORES = [(SCORE_CERTIFICATES[name](), *pair) for name in SCORE_CERTIFICATES for pair in NOISES[name]]
votes = pytest.mark.parametrize(("certificate", "noise", "levels"), VOTES, ids=lambda v: getattr(v, "name", None))
scores = pytest.mark.parametrize(("certificate", "noise", "levels"), SCORES, ids=lambda v: getattr(v, "name", None))

Q = np.array([np.nan, 0.0, 0.3, 0.5, 0.500001, 0.6, 0.9, 0.99, 1 - 1e-9])
GROUP = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])


def check_shapes_and_values(made: Thresholds, noise: Noise, levels: np.ndarray, outputs: int) -> None:
    columns = levels.shape[1] * len(noise.kinds)
    assert made.weights.shape[-2:] == (levels.shape[0], columns)
    assert made.eta.shape[-1] == outputs
    assert made.weights.shape[:-2] == made.eta.shape[:-1]
    for values in made:
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    hidden = np.tile(np.isinf(levels).reshape(*levels.shape[:2], -1).all(axis=-1), len(noise.kinds))
    assert (made.weights[..., hidden] == 0).all()


@votes
def test_votes(certificate: VoteCertificate, noise: Noise, levels: np.ndarray) -> None:
    made = certificate.certificates(noise, levels, Q, GROUP)
    check_shapes_and_values(made, noise, levels, Q.size)
    eta = np.atleast_2d(made.eta)
    assert (eta[:, ~(Q > 0.5)] == 0).all()
    assert (eta[:, Q >= 0.9] > 0).any(axis=0).all()
    # Within a group a larger probability never tolerates less.
    assert (np.diff(eta[:, GROUP == 1], axis=1) >= 0).all()


@votes
def test_votes_are_per_output(certificate: VoteCertificate, noise: Noise, levels: np.ndarray) -> None:
    order = np.random.default_rng(0).permutation(Q.size)
    one = certificate.certificates(noise, levels, Q, GROUP)
    other = certificate.certificates(noise, levels, Q[order], GROUP[order])
    np.testing.assert_array_equal(one.eta[..., order], other.eta)
    np.testing.assert_array_equal(one.weights, other.weights)


@votes
@pytest.mark.parametrize("bad", [1.0, 1.1, -0.1, np.inf])
def test_votes_refuse_frequencies(certificate: VoteCertificate, noise: Noise, levels: np.ndarray, bad: float) -> None:
    with pytest.raises(InvalidInputError, match="lower_probability"):
        certificate.certificates(noise, levels, np.array([0.9, bad]), np.array([0, 1]))


@votes
def test_votes_where_everything_abstains(certificate: VoteCertificate, noise: Noise, levels: np.ndarray) -> None:
    made = certificate.certificates(noise, levels, np.array([0.4, np.nan]), np.array([0, 1]))
    check_shapes_and_values(made, noise, levels, 2)
    assert (made.eta == 0).all()


@scores
def test_scores(certificate: ScoreCertificate, noise: Noise, levels: np.ndarray) -> None:
    zeta = np.linspace(0.25, 0.01, Q.size)
    made = certificate.certificates(noise, levels, Q, zeta, Q, GROUP)
    check_shapes_and_values(made, noise, levels, Q.size)
    assert (made.eta[~(Q > 0.5)] == 0).all()
    assert (made.eta[Q >= 0.9] > 0).all()
    assert (np.diff(made.eta[GROUP == 1]) >= 0).all()
    for missing in range(2):
        bounds = [np.array([0.9]), np.array([0.01])]
        bounds[missing] = np.array([np.nan])
        nothing = certificate.certificates(noise, levels, *bounds, np.array([0.9]), np.array([0]))
        assert (nothing.eta == 0).all()


@scores
def test_unperturbed_bits_tolerate_nothing(certificate: ScoreCertificate, noise: Noise, levels: np.ndarray) -> None:
    if noise.norm == 0:
        made = certificate.certificates(
            noise, levels, np.array([0.9]), np.array([0.01]), np.array([0.9]), np.array([1])
        )
        assert made.weights[1, 2] >= made.eta[0]
        assert made.weights[1, 2] < np.inf
