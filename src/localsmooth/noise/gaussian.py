"""Gaussian noise, for perturbations bounded in the l2 norm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.errors import InvalidInputError
from localsmooth.noise.base import Noise, PreparedNoise
from localsmooth.noise.randomness import Randomness

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(Noise):
    """z ~ N(x, diag(σ)²) with one standard deviation per pair of output and input group.

    W = 1/σ² (Schuchardt et al. 2023, Proposition 5.1 for votes, and its variance-constrained form for scores).

    Parameters
    ----------
    clamp
        Clamp the noisy inputs to the model's declared bounds. The clamp is part of the base classifier, so budgets
        and radii stay in the declared input space.
    """

    clamp: bool = False
    norm = 2

    def validate(self, levels: Float[np.ndarray, "output_groups input_groups"]) -> None:
        """Refuse standard deviations that are not positive."""
        if levels.ndim != 2:
            raise InvalidInputError(
                "levels", f"shape {levels.shape} has further axes", "Gaussian noise has one standard deviation per pair"
            )
        if not (levels > 0).all():
            raise InvalidInputError(
                "levels",
                f"the smallest standard deviation is {levels.min()}",
                "Every standard deviation must be positive (inf hides inputs altogether)",
            )

    def weights(self, levels: Float[np.ndarray, "output_groups input_groups"]) -> Float[np.ndarray, "..."]:
        """1/σ², rounded up; 0 where σ is infinite."""
        self.validate(levels)
        hidden = np.isinf(levels)
        # The sampler may work in single precision: the smaller of σ and its rounding is what every sampler attains.
        with np.errstate(over="ignore"):
            levels = np.minimum(levels, levels.astype(np.float32).astype(np.float64))
        if not (levels > 0).all():
            raise InvalidInputError("levels", "a standard deviation underflows", "Use standard deviations above 1e-38")
        # Two correctly rounded operations err by less than two units in the last place, the subnormal range apart.
        weights = 1.0 / (levels * levels)
        for _ in range(3):
            weights = np.nextafter(weights, np.inf)
        return np.where(hidden, 0.0, weights)

    def prepare(
        self,
        item: torch.Tensor,
        level_map: Float[np.ndarray, "..."],
        bounds: tuple[float, float] | None,
        hidden_value: float,
    ) -> PreparedNoise:
        """Set up z = centre + σ·normal around one item."""
        if self.clamp and bounds is None:
            raise InvalidInputError(
                "clamp", "the model declares no input bounds to clamp to", "Declare them, or switch clamping off"
            )
        levels = torch.as_tensor(level_map).to(item.device, item.dtype)
        hidden = torch.isinf(levels)
        centre = torch.where(hidden, torch.as_tensor(hidden_value, dtype=item.dtype, device=item.device), item)
        scale = torch.where(hidden, torch.zeros_like(levels), levels).expand(item.shape)
        return _PreparedGaussian(centre.contiguous(), scale, bounds if self.clamp else None)

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {"distribution": "gaussian", "clamp": self.clamp}


@dataclass(frozen=True, eq=False)
class _PreparedGaussian(PreparedNoise):
    centre: torch.Tensor
    scale: torch.Tensor
    bounds: tuple[float, float] | None

    def draw(self, out: torch.Tensor, randomness: Randomness) -> None:
        randomness.normal_(out)
        torch.addcmul(self.centre, out, self.scale, out=out)
        if self.bounds is not None:
            out.clamp_(*self.bounds)
