"""Uniform votes, for perturbations bounded in the l1 norm."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates.contract import Thresholds, VoteCertificate, checked_lower_probability, require_noise
from localsmooth.noise import Noise, Uniform

__all__ = ["UniformVotes"]


class UniformVotes(VoteCertificate):
    """W = 1/λ, η = 2q − 1.

    A shift by δ moves at most a share Σ_d |δ_d|/(2λ_d) of the product of uniform laws, and the candidate's probability
    stays above 1/2 while that share is below q − 1/2. (The threshold Φ⁻¹(q) of Schuchardt et al. 2023 is unsound: at
    q = .99 it claims 2.33 λ, where a shift by .98 λ can already bring a classifier down to 1/2.)
    """

    name = "uniform-votes"

    def certificates(
        self,
        noise: Noise,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        lower_probability: Float[np.ndarray, "outputs"],
        group: Int[np.ndarray, "outputs"],
    ) -> Thresholds:
        """Weights and thresholds; see `VoteCertificate.certificates`."""
        require_noise(self.name, noise, Uniform)
        q = checked_lower_probability(lower_probability)
        # 2q is exact, and so is the difference wherever it counts (q ≥ 1/2, by Sterbenz's lemma).
        return Thresholds(noise.weights(levels), np.where(q > 0.5, 2 * q - 1, 0.0))
