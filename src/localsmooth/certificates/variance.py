"""The variance-constrained threshold, common to all distributions whose squared likelihood ratio has a mean."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from localsmooth.certificates.contract import checked_score_bounds

__all__ = ["SMALLEST_VARIANCE", "variance_constrained_eta"]

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
