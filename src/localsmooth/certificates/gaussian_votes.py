"""Gaussian votes: the certificate of Cohen et al. 2019 under one standard deviation per input group."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from localsmooth.blocks import blocks
from localsmooth.certificates.contract import Thresholds, VoteCertificate, checked_lower_probability, require_noise
from localsmooth.noise import Gaussian, Noise

__all__ = ["GaussianVotes", "gaussian_vote_eta"]

# Relative error allowed for scipy's normal distribution function on [-9, 0] (measured: below 2e-14).
_NDTR_ERROR = 1e-13


class GaussianVotes(VoteCertificate):
    """W = 1/σ², η = Φ⁻¹(q)² (Schuchardt et al. 2023, Section 5; Eiras et al. 2021 for one output)."""

    name = "gaussian-votes"

    def certificates(
        self,
        noise: Noise,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        lower_probability: Float[np.ndarray, "outputs"],
        group: Int[np.ndarray, "outputs"],
    ) -> Thresholds:
        """Weights and thresholds; see `VoteCertificate.certificates`."""
        require_noise(self.name, noise, Gaussian)
        return Thresholds(noise.weights(levels), gaussian_vote_eta(lower_probability))


def gaussian_vote_eta(lower_probability: Float[np.ndarray, "outputs"]) -> Float[np.ndarray, "outputs"]:
    """Φ⁻¹(q)², rounded down, and 0 where q ≤ 1/2 or NaN.

    The quantile only proposes a value; it counts after the distribution function, taken with an error margin, has
    confirmed that it is not too large.

    Raises
    ------
    InvalidInputError
        If a bound is outside [0, 1).
    """
    eta = np.empty(lower_probability.shape)
    for block in blocks(eta.size):
        eta[block] = _eta(checked_lower_probability(lower_probability[block]))
    return eta


def _eta(q: Float[np.ndarray, "outputs"]) -> Float[np.ndarray, "outputs"]:
    tail = np.where(q > 0.5, 1.0 - q, 0.5)  # exact, by Sterbenz's lemma
    target = tail * (1 + 2 * _NDTR_ERROR)
    root = np.maximum(-special.ndtri(np.minimum(target * (1 + _NDTR_ERROR), 0.5)), 0.0)
    confirmed = special.ndtr(-root) >= target
    eta = np.nextafter(root * root, 0.0)
    return np.where((q > 0.5) & confirmed & (root > 0), eta, 0.0)
