"""What noise that is added to the input has in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.errors import InvalidInputError
from localsmooth.noise.base import Noise, PreparedNoise
from localsmooth.noise.precision import attained_levels, require_floating
from localsmooth.noise.randomness import Randomness

__all__ = ["AdditiveNoise"]


@dataclass(frozen=True)
class AdditiveNoise(Noise):
    """z = x + level·s with independent draws s of one standard law.

    Parameters
    ----------
    clamp
        Clamp the noisy inputs to the model's declared bounds. The clamp is part of the base classifier, so budgets
        and radii stay in the declared input space.
    """

    clamp: bool = False

    @staticmethod
    @abstractmethod
    def fill(out: torch.Tensor, randomness: Randomness) -> None:
        """Overwrite `out` with draws of the standard law."""

    def validate(self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]) -> None:
        """Refuse levels that are not positive, in single precision too.

        Raises
        ------
        InvalidInputError
            If there is not one positive level per pair of output and input group.
        """
        if levels.ndim != 2:
            raise InvalidInputError(
                "levels",
                f"shape {levels.shape} has further axes",
                f"{type(self).__name__} noise has one level per pair of output and input group",
            )
        if not (levels > 0).all():
            raise InvalidInputError(
                "levels",
                f"the smallest level is {levels.min()}",
                "Every level must be positive (inf hides inputs altogether)",
            )
        attained_levels(levels)

    def prepare(
        self,
        item: torch.Tensor,
        level_map: Float[np.ndarray, "..."],
        bounds: tuple[float, float] | None,
        hidden_value: float,
    ) -> PreparedNoise:
        """Set up the distribution around one item.

        Raises
        ------
        InvalidInputError
            If samples are clamped, and the model declares no bounds.
        """
        require_floating(item)
        if self.clamp and bounds is None:
            raise InvalidInputError(
                "clamp", "the model declares no input bounds to clamp to", "Declare them, or switch clamping off"
            )
        levels = torch.as_tensor(level_map).to(item.device, item.dtype)
        hidden = torch.isinf(levels)
        centre = torch.where(hidden, torch.as_tensor(hidden_value, dtype=item.dtype, device=item.device), item)
        scale = torch.where(hidden, torch.zeros_like(levels), levels).expand(item.shape)
        return _PreparedSum(self, centre.contiguous(), scale, bounds if self.clamp else None)

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {"distribution": self.distribution, "clamp": self.clamp}


@dataclass(frozen=True, eq=False)
class _PreparedSum(PreparedNoise):
    noise: AdditiveNoise
    centre: torch.Tensor
    scale: torch.Tensor
    bounds: tuple[float, float] | None

    def draw(self, out: torch.Tensor, randomness: Randomness) -> None:
        self.noise.fill(out, randomness)
        torch.addcmul(self.centre, out, self.scale, out=out)
        if self.bounds is not None:
            out.clamp_(*self.bounds)
