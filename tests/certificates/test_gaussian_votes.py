"""Gaussian votes against arbitrary precision, closed forms and bad input."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from localsmooth.certificates import GaussianVotes, certified_radius
from localsmooth.certificates.gaussian_votes import gaussian_vote_eta
from localsmooth.errors import InvalidInputError
from localsmooth.layout import isotropic_layout
from localsmooth.noise import Gaussian, Noise

HARD = [0.5, np.nextafter(0.5, 1), 0.5 + 1e-13, 0.5 + 1e-9, 0.6, 0.99, 1 - 1e-9, 1 - 2.0**-52, np.nextafter(1.0, 0)]


def exact_tail(root: float) -> mpmath.mpf:
    return mpmath.erfc(mpmath.mpf(root) / mpmath.sqrt(2)) / 2


@pytest.mark.parametrize("q", HARD)
def test_eta_is_below_the_exact_square_quantile(q: float) -> None:
    with mpmath.workdps(60):
        eta = float(gaussian_vote_eta(np.array([q]))[0])
        # √η must not pass the quantile: the upper tail there is still at least 1 − q.
        assert exact_tail(mpmath.sqrt(mpmath.mpf(eta))) >= 1 - mpmath.mpf(q)


@settings(deadline=None)
@given(st.floats(0.5, 1.0, exclude_max=True))
def test_eta_is_sound_and_hardly_smaller_than_the_quantile(q: float) -> None:
    with mpmath.workdps(40):
        eta = float(gaussian_vote_eta(np.array([q]))[0])
        assert exact_tail(mpmath.sqrt(mpmath.mpf(eta))) >= 1 - mpmath.mpf(q)
    assert np.sqrt(eta) >= norm.isf(1 - q) * (1 - 1e-11) - 1e-11


def test_eta_is_monotone() -> None:
    q = np.sort(np.concatenate([np.linspace(0, 1, 2001)[:-1], 1 - np.geomspace(1e-16, 0.5, 1000)]))
    assert (np.diff(gaussian_vote_eta(q)) >= 0).all()


def test_half_nan_and_less_abstain() -> None:
    np.testing.assert_array_equal(gaussian_vote_eta(np.array([0.0, 0.3, 0.5, np.nan])), 0.0)


@pytest.mark.parametrize("q", [1.0, 1.5, -0.1, np.inf])
def test_probabilities_that_no_sample_can_give_are_refused(q: float) -> None:
    with pytest.raises(InvalidInputError, match="lower_probability"):
        gaussian_vote_eta(np.array([0.9, q]))


def test_another_noise_is_refused() -> None:
    class Other(Gaussian):
        pass

    GaussianVotes().certificates(Other(), np.ones((1, 1)), np.array([0.9]), np.array([0]))  # a subclass is a Gaussian

    class Foreign(Noise):
        norm = 1
        validate = weights = prepare = configuration = lambda self, *a: None

    with pytest.raises(InvalidInputError, match="Foreign"):
        GaussianVotes().certificates(Foreign(), np.ones((1, 1)), np.array([0.9]), np.array([0]))


def test_one_cell_gives_the_textbook_radius() -> None:
    sigma, q = 0.25, np.array([0.4, 0.6, 0.9, 0.999])
    layout = isotropic_layout(sigma, (8, 8), (2, 2))
    group = layout.outputs.labels.ravel()
    weights, eta = GaussianVotes().certificates(Gaussian(), layout.levels, q, group)
    radius = certified_radius(weights, eta, group, norm=2)
    textbook = np.where(q > 0.5, sigma * norm.ppf(q), 0.0)
    np.testing.assert_allclose(radius, textbook, rtol=1e-11)
    assert (radius <= textbook).all()
