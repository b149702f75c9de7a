"""What the flip distributions on binary data have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.noise.base import Noise, PreparedNoise
from localsmooth.noise.divergence import renyi_divergence, second_order_divergence
from localsmooth.noise.randomness import Randomness

__all__ = ["BinaryNoise", "BitLaws", "PreparedFlips"]


class BitLaws(NamedTuple):
    """Probability of a one, for a bit that the adversary leaves alone and for one that it flips."""

    clean: Float[np.ndarray, "output_groups columns"]
    perturbed: Float[np.ndarray, "output_groups columns"]


class BinaryNoise(Noise):
    """A product distribution over bits, where each kind of flip replaces one law of a bit by another."""

    norm = 0
    certificate = "renyi-votes"

    @abstractmethod
    def bit_laws(self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]) -> BitLaws:
        """Laws of a bit without and with a flip, per output group and column of W. Equal where inputs are hidden."""

    def weights(
        self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]
    ) -> Float[np.ndarray, "output_groups columns"]:
        """Weigh each flip by ln E[Λ²], Λ the likelihood ratio of flipped to clean, rounded up (Rényi order 2).

        Source: Schuchardt et al. 2023, Section 5 (variance-constrained certification).
        """
        return second_order_divergence(*self.bit_laws(levels))

    def renyi_weights(
        self, levels: Float[np.ndarray, "output_groups input_groups *parameters"], order: float
    ) -> Float[np.ndarray, "output_groups columns"]:
        """Rényi divergence D_α(flipped ‖ clean) of one bit, rounded up, for votes certificates of order α > 1."""
        return renyi_divergence(*self.bit_laws(levels), order)


@dataclass(frozen=True, eq=False)
class PreparedFlips(PreparedNoise):
    """Flip each bit of one item independently.

    Parameters
    ----------
    item
        The clean item; hidden elements already replaced.
    flip
        Probability of a flip per element, a multiple of 2⁻²⁴.
    """

    item: torch.Tensor
    flip: torch.Tensor

    def draw(self, out: torch.Tensor, randomness: Randomness) -> None:
        """Overwrite `out` with samples."""
        randomness.uniform_(out)
        torch.where(out < self.flip, 1 - self.item, self.item, out=out)
