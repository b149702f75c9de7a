"""Uniform noise, for perturbations bounded in the l1 norm."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.noise.additive import AdditiveNoise
from localsmooth.noise.cumulative import RoundedLaw, rounded_uniform
from localsmooth.noise.randomness import Randomness

__all__ = ["Uniform"]


@dataclass(frozen=True)
class Uniform(AdditiveNoise):
    """z ~ U[x − λ, x + λ] with one half-width λ per pair of output and input group.

    W = 1/λ. The threshold that goes with it is 2q − 1, see `UniformVotes` in the certificates.

    Parameters
    ----------
    clamp, grid
        As in `AdditiveNoise`.
    """

    norm = 1
    distribution = "uniform"
    certificate = "uniform-votes"

    @staticmethod
    def fill(out: torch.Tensor, randomness: Randomness) -> None:
        """Overwrite `out` with numbers uniform on [−1, 1)."""
        randomness.uniform_(out)
        out.mul_(2).sub_(1)

    @classmethod
    def rounded(cls, step: Fraction) -> RoundedLaw:
        """See `rounded_uniform`."""
        return rounded_uniform(step)

    def weights(
        self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]
    ) -> Float[np.ndarray, "output_groups columns"]:
        """1/λ, rounded up; 0 where λ is infinite."""
        self.validate(levels)
        return np.where(np.isinf(levels), 0.0, np.nextafter(1.0 / self.effective(levels), np.inf))
