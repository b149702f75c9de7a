"""Variance-constrained certificates from scores, for all distributions whose squared likelihood ratio has a mean."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates.capping import cap_weights
from localsmooth.certificates.contract import ScoreCertificate, Thresholds, checked_score_bounds, require_noise
from localsmooth.noise import Bernoulli, BinaryNoise, Gaussian, Noise, SparseFlips

__all__ = [
    "SMALLEST_VARIANCE",
    "BernoulliScores",
    "GaussianScores",
    "SparseScores",
    "VarianceScores",
    "variance_constrained_eta",
]

SMALLEST_VARIANCE = 2.0**-40
"""Floor under the variance: far below what any number of samples resolves, and it keeps thresholds finite."""

_EPSILON = float(np.finfo(np.float64).eps)


def variance_constrained_eta(
    lower_mean: Float[np.ndarray, "outputs"],
    upper_second_moment: Float[np.ndarray, "outputs"],
    centre: Float[np.ndarray, "outputs"],
) -> Float[np.ndarray, "outputs"]:
    """ln(1 + (μ − 1/2)²/v), rounded down, and 0 where μ ≤ 1/2 or a bound is NaN.

    By the Cauchy–Schwarz inequality the mean score at a perturbed input is above 1/2 while
    E[Λ²] − 1 < (μ − 1/2)²/v, Λ the likelihood ratio. v is the second moment ζ about ν, or the smaller ζ − (μ − ν)²
    where ν ≤ μ: the true mean is at least μ, so the true variance is at most that. Bounds that contradict each other
    (v < 0) cannot both hold, and abstain. Source: Schuchardt et al. 2023, Appendix on variance-constrained
    certification, with the square that the printed statement lacks.

    Parameters
    ----------
    lower_mean, upper_second_moment, centre
        μ, ζ and ν; see `ScoreCertificate.certificates`.

    Raises
    ------
    InvalidInputError
        If a mean or a centre is outside [0, 1], or a second moment is negative.
    """
    mu, zeta, nu = checked_score_bounds(lower_mean, upper_second_moment, centre)
    gained = np.where(nu <= mu, (mu - nu) ** 2, 0.0)
    rounding = 4 * _EPSILON * (zeta + gained)
    variance = zeta - gained + rounding
    margin = mu - 0.5
    ratio = margin**2 / np.maximum(variance, SMALLEST_VARIANCE)
    eta = np.nextafter(np.log1p(ratio * (1 - 8 * _EPSILON)) * (1 - 4 * _EPSILON), 0.0)
    return np.where((margin > 0) & (variance >= 0), np.maximum(eta, 0.0), 0.0)


class VarianceScores(ScoreCertificate):
    """W = ln E[Λ²] for a unit of budget, which the noise knows, and η = ln(1 + (μ − 1/2)²/ζ) or better.

    See `variance_constrained_eta`. A subclass names itself and the noise whose weights these are.
    """

    family: ClassVar[type[Noise]]
    """Distributions that it holds for."""

    def certificates(
        self,
        noise: Noise,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        lower_mean: Float[np.ndarray, "outputs"],
        upper_second_moment: Float[np.ndarray, "outputs"],
        centre: Float[np.ndarray, "outputs"],
        group: Int[np.ndarray, "outputs"],
    ) -> Thresholds:
        """Weights and thresholds; see `ScoreCertificate.certificates`."""
        weights = require_noise(self.name, noise, self.family).weights(levels)
        eta = variance_constrained_eta(lower_mean, upper_second_moment, centre)
        # Bits flip whole: one that breaks every output of a group need not weigh more.
        return Thresholds(cap_weights(weights, eta, group) if isinstance(noise, BinaryNoise) else weights, eta)


class GaussianScores(VarianceScores):
    """For perturbations bounded in the l2 norm: W = 1/σ²."""

    name = "gaussian-scores"
    family = Gaussian


class BernoulliScores(VarianceScores):
    """For perturbations bounded in the number of flips: W = ln((1−θ)²/θ + θ²/(1−θ))."""

    name = "bernoulli-scores"
    family = Bernoulli


class SparseScores(VarianceScores):
    """For separate budgets of additions and deletions: W = γ⁺ for additions and γ⁻ for deletions."""

    name = "sparse-scores"
    family = SparseFlips
