"""Budgets for each point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from localsmooth.collective import AtMostGroups, Rows, Threat
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import BinaryNoise, Noise
from localsmooth.tasks.arrays import ItemThreat

__all__ = ["PerPoint"]


@dataclass(frozen=True)
class PerPoint(ItemThreat):
    """Every point moves by at most ε, in the norm that the noise certifies.

    What is certified against allows the adversary at least as much: in an input group Σ|δ|^p up to ε^p for each of
    its points, and in all groups together ε^p for each point that may move.

    Parameters
    ----------
    most
        How many points may move at all; None for all of them.

    Raises
    ------
    InvalidInputError
        If that is no whole number >= 0.
    """

    most: int | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.most, int | np.integer)  # pyright: ignore[reportUnnecessaryIsInstance]
        if self.most is not None and not (whole and self.most >= 0):
            raise InvalidInputError("most", f"got {self.most!r}", "Pass a whole number of points, or None for all")

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Return a row for each input group, and one for all.

        Raises
        ------
        InvalidInputError
            For noise on bits, which do not move.
        """
        del image
        self.require(noise)
        room, most = self._movable(layout)
        counts = [*room.tolist(), most]
        right = [[_times_power_up(count, budget, noise.norm) for count in counts] for budget in budgets]
        threat = Rows(np.concatenate([np.eye(room.size), np.ones((1, room.size))]), np.array(right))
        whole = layout.inputs.labels.ndim == 1  # a point whose coordinates lie in several groups spends in all of them
        return threat & AtMostGroups(most) if whole and most < room.size else threat

    def require(self, noise: Noise) -> None:
        """Refuse noise on bits."""
        if isinstance(noise, BinaryNoise):
            raise InvalidInputError(
                "threat", f"points do not move under {type(noise).__name__}", "Use Gaussian or Uniform noise"
            )

    def strain(
        self, weights: Float[np.ndarray, "*certificates output_groups columns"], layout: Layout
    ) -> Float[np.ndarray, "*certificates output_groups 1"]:
        """Let as many points as can move do so where they weigh most."""
        room, most = self._movable(layout)
        order = np.argsort(-weights, axis=-1)
        before = np.cumsum(room[order], axis=-1) - room[order]
        moved = np.clip(most - before, 0, room[order])
        total = (np.take_along_axis(weights, order, axis=-1) * moved).sum(axis=-1, keepdims=True)
        return np.nextafter(total * (1 + 2 * room.size * 2.0**-52), math.inf) * (total > 0)

    def words(self, noise: Noise) -> str:
        """Name the norm, and how many points move."""
        moved = "each point" if self.most is None else f"at most {self.most} points, each"
        return f"perturbation that moves {moved} by at most ε (l{noise.norm} norm of its coordinates)"

    def _movable(self, layout: Layout) -> tuple[Int[np.ndarray, "input_groups"], int]:
        """How many points of each input group may move, and how many in all."""
        labels = layout.inputs.labels
        points = labels.shape[-1]
        # Where coordinates of one point lie in several groups, it counts in each of them.
        held = np.unique(labels.astype(np.int64) * points + np.arange(points)) // points
        most = points if self.most is None else min(int(self.most), points)
        return np.minimum(np.bincount(held, minlength=layout.inputs.count), most), most


def _times_power_up(count: int, value: float, exponent: int) -> float:
    """Return count · value ** exponent, rounded up once."""
    exact = count * Fraction(value) ** exponent
    try:
        rounded = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(rounded, math.inf) if Fraction(rounded) < exact else rounded
