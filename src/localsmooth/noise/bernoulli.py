"""Bernoulli flips of binary data, for perturbations bounded in the number of flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.errors import InvalidInputError
from localsmooth.noise.base import PreparedNoise
from localsmooth.noise.binary import BinaryNoise, BitLaws, PreparedFlips
from localsmooth.noise.precision import drawable_probabilities, require_binary

__all__ = ["Bernoulli"]


@dataclass(frozen=True)
class Bernoulli(BinaryNoise):
    """Every bit is flipped with probability θ, one θ per pair of output and input group.

    W = ln((1−θ)²/θ + θ²/(1−θ)) (Schuchardt et al. 2023, Section 5). θ = 1/2 makes the inputs irrelevant (W = 0);
    θ = 0 and θ = 1 perturb nothing and tolerate nothing (W = inf). θ is rounded to a multiple of 2⁻²⁴.
    """

    distribution = "bernoulli"

    def validate(self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]) -> None:
        """Refuse levels that are not probabilities.

        Raises
        ------
        InvalidInputError
            If there is not one probability per pair of output and input group.
        """
        if levels.ndim != 2:
            raise InvalidInputError(
                "levels", f"shape {levels.shape} has further axes", "Bernoulli noise has one probability per pair"
            )
        drawable_probabilities(levels)

    def bit_laws(self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]) -> BitLaws:
        """A clean bit comes out flipped with probability θ, a flipped one with 1 − θ."""
        self.validate(levels)
        flip = drawable_probabilities(levels)
        flip = np.where(np.isinf(flip), 0.5, flip)
        return BitLaws(flip, 1 - flip)

    def prepare(
        self,
        item: torch.Tensor,
        level_map: Float[np.ndarray, "..."],
        bounds: tuple[float, float] | None,
        hidden_value: float,
    ) -> PreparedNoise:
        """Set up the flips around one item; `bounds` play no role."""
        require_binary(item)
        flip = torch.as_tensor(drawable_probabilities(level_map)).to(item.device, item.dtype)
        hidden = torch.isinf(flip)
        centre = torch.where(hidden, torch.as_tensor(hidden_value, dtype=item.dtype, device=item.device), item)
        return PreparedFlips(centre, torch.where(hidden, torch.zeros_like(flip), flip))

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {"distribution": self.distribution}
