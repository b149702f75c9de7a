"""Sparsity-aware flips of binary data, for separate budgets of additions and deletions."""

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

__all__ = ["SparseFlips"]


@dataclass(frozen=True)
class SparseFlips(BinaryNoise):
    """A zero becomes one with probability θ⁺, a one becomes zero with probability θ⁻ (Bojchevski et al. 2020).

    Levels have a trailing axis (θ⁺, θ⁻). The columns of W are all input groups for additions (0 → 1), then all input
    groups for deletions (1 → 0): γ⁺ = ln((θ⁻)²/(1−θ⁺) + (1−θ⁻)²/θ⁺) and γ⁻ = ln((1−θ⁺)²/θ⁻ + (θ⁺)²/(1−θ⁻))
    (Schuchardt et al. 2023, Section 5). θ⁺ + θ⁻ = 1 makes the inputs irrelevant (W = 0). Where a flipped bit can take
    a value that the clean one cannot (θ⁺ or θ⁻ of 0 or 1 otherwise) nothing is tolerated (W = inf). Both
    probabilities are rounded to multiples of 2⁻²⁴.
    """

    distribution = "sparse-flips"
    kinds: tuple[str, ...] = ("additions", "deletions")

    def validate(self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]) -> None:
        """Refuse levels that are not pairs of probabilities."""
        _check_pairs(levels, 3)

    def bit_laws(self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]) -> BitLaws:
        """An addition takes a bit from law θ⁺ to law 1 − θ⁻, a deletion takes it back."""
        self.validate(levels)
        flip = drawable_probabilities(levels)
        flip = np.where(np.isinf(flip), 0.5, flip)
        zero, one = flip[..., 0], 1 - flip[..., 1]
        return BitLaws(np.concatenate([zero, one], axis=1), np.concatenate([one, zero], axis=1))

    def prepare(
        self,
        item: torch.Tensor,
        level_map: Float[np.ndarray, "..."],
        bounds: tuple[float, float] | None,
        hidden_value: float,
    ) -> PreparedNoise:
        """Set up the flips around one item; `bounds` play no role."""
        require_binary(item)
        _check_pairs(level_map, 1)
        flip = torch.as_tensor(drawable_probabilities(level_map)).to(item.device, item.dtype)
        hidden = torch.isinf(flip[..., 0])
        flip = torch.where(item == 1, flip[..., 1], flip[..., 0])
        centre = torch.where(hidden, torch.as_tensor(hidden_value, dtype=item.dtype, device=item.device), item)
        return PreparedFlips(centre, torch.where(hidden, torch.zeros_like(flip), flip))

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {"distribution": self.distribution}


def _check_pairs(levels: Float[np.ndarray, "..."], at_least: int) -> None:
    if levels.ndim < at_least or levels.shape[-1] != 2 or (at_least == 3 and levels.ndim != 3):
        raise InvalidInputError(
            "levels",
            f"shape {levels.shape} has no trailing axis of two probabilities",
            "Pass the probabilities (0 becomes 1, 1 becomes 0) along the last axis",
        )
    hidden = np.isinf(levels)
    if (hidden.any(axis=-1) != hidden.all(axis=-1)).any():
        raise InvalidInputError("levels", "one probability of a pair is infinite", "Hide inputs with a pair of inf")
    drawable_probabilities(levels)
