"""Variance-constrained thresholds: formula, rounding, abstention."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.certificates import SCORE_CERTIFICATES, BernoulliScores, GaussianScores, ScoreCertificate, SparseScores
from localsmooth.certificates.variance import SMALLEST_VARIANCE, variance_constrained_eta
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Bernoulli, Gaussian, Noise, SparseFlips, Uniform

PAIRS: list[tuple[ScoreCertificate, Noise, np.ndarray]] = [
    (GaussianScores(), Gaussian(), np.array([[0.2, 1.0]])),
    (BernoulliScores(), Bernoulli(), np.array([[0.1, 0.4]])),
    (SparseScores(), SparseFlips(), np.array([[[0.01, 0.6], [0.1, 0.8]]])),
]
unit = st.floats(0, 1)


def eta(mu: float, zeta: float, nu: float) -> float:
    return float(variance_constrained_eta(np.array([mu]), np.array([zeta]), np.array([nu]))[0])


@settings(deadline=None)
@given(unit, unit, unit)
def test_formula_rounded_down(mu: float, variance: float, nu: float) -> None:
    zeta = variance + (mu - nu) ** 2
    found = eta(mu, zeta, nu)
    with mpmath.workdps(50):
        m, z, n = mpmath.mpf(mu), mpmath.mpf(zeta), mpmath.mpf(nu)
        v = z - (m - n) ** 2 if nu <= mu else z
        exact = mpmath.log1p((m - 0.5) ** 2 / max(v, mpmath.mpf(SMALLEST_VARIANCE))) if mu > 0.5 else mpmath.mpf(0)
        assert mpmath.mpf(found) <= exact
        # The allowance for rounding is absolute in the variance.
        assert found >= float(exact) * (1 - 1e-11) - 1e-14 / max(variance, SMALLEST_VARIANCE)


def test_a_centre_below_the_mean_helps_and_one_above_does_not() -> None:
    assert eta(0.8, 0.1, 0.6) == pytest.approx(np.log1p(0.09 / (0.1 - 0.04)))
    assert eta(0.8, 0.1, 0.8) == pytest.approx(np.log1p(0.09 / 0.1))
    assert eta(0.8, 0.1, 0.9) == pytest.approx(np.log1p(0.09 / 0.1))


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.49, 0.5, np.nan])
def test_no_majority_abstains_although_the_square_is_symmetric(mu: float) -> None:
    assert eta(mu, 0.01, 0.5) == 0


def test_constant_scores_stay_finite() -> None:
    assert 20 < eta(1.0, 0.0, 1.0) < 40


def test_contradicting_bounds_abstain() -> None:
    assert eta(0.9, 0.01, 0.5) == 0  # the mean is .4 away from ν, the mean square distance cannot be .01


def test_the_votes_of_a_label_are_scores_at_their_worst_variance() -> None:
    """Rényi order 2 on votes is the variance-constrained certificate of a 0/1 score."""
    from localsmooth.certificates.renyi_votes import renyi_eta

    q = np.array([0.6, 0.9, 0.99, 0.9999])
    np.testing.assert_allclose(variance_constrained_eta(q, q * (1 - q), q), renyi_eta(q, 2.0), rtol=1e-10)


@pytest.mark.parametrize(("certificate", "noise", "levels"), PAIRS)
def test_weights_come_from_the_noise(certificate: ScoreCertificate, noise: Noise, levels: np.ndarray) -> None:
    one = np.array([0.9])
    weights, found = certificate.certificates(noise, levels, one, np.array([1e-4]), one, np.array([0]))
    expected = noise.weights(levels)
    if noise.norm == 0:
        expected = np.minimum(expected, found.max())
    np.testing.assert_array_equal(weights, expected)
    np.testing.assert_array_equal(found, variance_constrained_eta(one, np.array([1e-4]), one))


@pytest.mark.parametrize(("certificate", "noise", "levels"), PAIRS)
def test_another_noise_is_refused(certificate: ScoreCertificate, noise: Noise, levels: np.ndarray) -> None:
    one = np.array([0.9])
    with pytest.raises(InvalidInputError, match="certificate"):
        certificate.certificates(Uniform(), np.ones((1, 2)), one, one, one, np.array([0]))
    assert SCORE_CERTIFICATES[certificate.name] is type(certificate)


@pytest.mark.parametrize(
    ("field", "bounds"),
    [("lower_mean", (1.1, 0.1, 0.5)), ("centre", (0.9, 0.1, -0.5)), ("upper_second_moment", (0.9, -0.1, 0.5))],
)
def test_impossible_bounds_are_refused(field: str, bounds: tuple[float, float, float]) -> None:
    with pytest.raises(InvalidInputError, match=field):
        eta(*bounds)
