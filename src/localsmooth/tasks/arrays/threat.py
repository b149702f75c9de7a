"""From a budget to a threat model for one item."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.collective import Ball, Caps, Integer, Threat
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import BinaryNoise, Noise, SparseFlips, flip_caps

__all__ = ["Flips", "ItemThreat", "Kind", "NormBall"]


class ItemThreat(ABC):
    """What the adversary may do to an item, for a list of budgets."""

    @abstractmethod
    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Spell the budgets out for one item.

        Parameters
        ----------
        budgets
            ε, ascending.
        image, layout, noise
            The item, the layout it was sampled with, and the distribution.
        """

    def strain(
        self, weights: Float[np.ndarray, "*certificates output_groups columns"], layout: Layout
    ) -> Float[np.ndarray, "*certificates output_groups columns_or_1"]:
        """What outputs on their own can be fed: the largest entry of a row, times ε^p, is the most that W·b can be.

        By default ε^p is spent where it weighs most. A threat in which ε is no budget for the whole item has its own.

        Parameters
        ----------
        weights
            W, of one base certificate or several.
        layout
            The layout they belong to.
        """
        del layout
        return weights

    @abstractmethod
    def words(self, noise: Noise) -> str:
        """What the adversary may do, to follow "under every" in the promise; ε is the budget."""


@dataclass(frozen=True)
class NormBall(ItemThreat):
    """Perturbations of norm at most ε, in the norm that the noise certifies.

    Binary data are perturbed in whole bits, no more than an input group has.
    """

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Return the ball, with caps where the noise is on bits."""
        if isinstance(noise, SparseFlips):
            return Flips(Kind.ANY).threat(budgets, image, layout, noise)
        ball = Ball(tuple(budgets), noise.norm)
        if not isinstance(noise, BinaryNoise):
            return ball
        caps = flip_caps(torch.from_numpy(image), layout.inputs).changes
        return ball & Caps(caps.astype(np.float64)) & Integer()

    def words(self, noise: Noise) -> str:
        """Name the norm."""
        return f"perturbation of l{noise.norm} norm at most ε"


class Kind(Enum):
    """Which flips of bits the adversary makes."""

    ADDITIONS = "additions"
    DELETIONS = "deletions"
    ANY = "flips of either kind"


@dataclass(frozen=True)
class Flips(ItemThreat):
    """At most ε flips of one kind, or of both kinds together, under sparsity-aware noise.

    No more bits are added than there are zeros in an input group, and no more deleted than there are ones.
    """

    kind: Kind = Kind.ANY

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Return the ball over both kinds, with caps of 0 for the kind that is not allowed."""
        if not isinstance(noise, SparseFlips):
            raise InvalidInputError(
                "threat", f"additions and deletions are not told apart by {type(noise).__name__}", "Use SparseFlips"
            )
        caps = flip_caps(torch.from_numpy(image), layout.inputs)
        room = np.concatenate([caps.additions, caps.deletions]).astype(np.float64)
        if self.kind is Kind.ADDITIONS:
            room[caps.additions.size :] = 0.0
        elif self.kind is Kind.DELETIONS:
            room[: caps.additions.size] = 0.0
        return Ball(tuple(budgets), 0) & Caps(room) & Integer()

    def words(self, noise: Noise) -> str:
        """Name the kind of flips."""
        del noise
        if self.kind is Kind.ANY:
            return "perturbation that changes at most ε bits"
        other = Kind.DELETIONS if self.kind is Kind.ADDITIONS else Kind.ADDITIONS
        return f"perturbation of at most ε {self.kind.value} and no {other.value} of bits"
