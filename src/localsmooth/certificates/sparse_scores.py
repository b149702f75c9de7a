"""Sparsity-aware scores, for separate budgets of additions and deletions."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates.capping import cap_weights
from localsmooth.certificates.contract import ScoreCertificate, Thresholds, require_noise
from localsmooth.certificates.variance import variance_constrained_eta
from localsmooth.noise import Noise, SparseFlips

__all__ = ["SparseScores"]


class SparseScores(ScoreCertificate):
    """W = γ⁺ for additions and γ⁻ for deletions, η = ln(1 + (μ − 1/2)²/ζ) or better; see `variance_constrained_eta`."""

    name = "sparse-scores"

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
        require_noise(self.name, noise, SparseFlips)
        eta = variance_constrained_eta(lower_mean, upper_second_moment, centre)
        return Thresholds(cap_weights(noise.weights(levels), eta, group), eta)
