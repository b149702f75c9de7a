"""Gaussian scores, for perturbations bounded in the l2 norm."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates.contract import ScoreCertificate, Thresholds, require_noise
from localsmooth.certificates.variance import variance_constrained_eta
from localsmooth.noise import Gaussian, Noise

__all__ = ["GaussianScores"]


class GaussianScores(ScoreCertificate):
    """W = 1/σ², η = ln(1 + (μ − 1/2)²/ζ) or better; see `variance_constrained_eta`."""

    name = "gaussian-scores"

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
        require_noise(self.name, noise, Gaussian)
        eta = variance_constrained_eta(lower_mean, upper_second_moment, centre)
        return Thresholds(noise.weights(levels), eta)
