"""Gaussian noise, for perturbations bounded in the l2 norm."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.noise.additive import AdditiveNoise
from localsmooth.noise.cumulative import RoundedLaw, rounded_gaussian
from localsmooth.noise.randomness import Randomness

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(AdditiveNoise):
    """z ~ N(x, diag(σ)²) with one standard deviation σ per pair of output and input group.

    W = 1/σ² (Schuchardt et al. 2023, Proposition 5.1 for votes, and its variance-constrained form for scores).

    Parameters
    ----------
    clamp, grid
        As in `AdditiveNoise`.
    """

    norm = 2
    distribution = "gaussian"
    certificate = "gaussian-votes"

    @staticmethod
    def fill(out: torch.Tensor, randomness: Randomness) -> None:
        """Overwrite `out` with standard normal numbers."""
        randomness.normal_(out)

    @classmethod
    def rounded(cls, step: Fraction) -> RoundedLaw:
        """See `rounded_gaussian`."""
        return rounded_gaussian(step)

    def weights(
        self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]
    ) -> Float[np.ndarray, "output_groups columns"]:
        """1/σ², rounded up; 0 where σ is infinite."""
        self.validate(levels)
        attained = self.effective(levels)
        # Two correctly rounded operations err by less than two units in the last place, the subnormal range apart.
        weights = 1.0 / (attained * attained)
        for _ in range(3):
            weights = np.nextafter(weights, np.inf)
        return np.where(np.isinf(levels), 0.0, weights)
