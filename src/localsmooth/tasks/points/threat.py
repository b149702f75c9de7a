"""Budgets for each point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from localsmooth.collective import AtMostGroups, Threat
from localsmooth.layout import Layout
from localsmooth.noise import Noise
from localsmooth.tasks.arrays import THREATS, PerPosition

__all__ = ["PerPoint"]


@THREATS.register
@dataclass(frozen=True)
class PerPoint(PerPosition):
    """Every point moves by at most ε, in the norm that the noise certifies; at most `most` points move at all.

    What is certified against allows the adversary at least as much: in an input group Σ|δ|^p up to ε^p for each of
    its points, in all groups together ε^p for each point that may move, and something in no more groups than that.
    """

    name: ClassVar[str] = "per-point"

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Return a row for each input group, one for all, and a limit on the groups where few points move."""
        rows = super().threat(budgets, image, layout, noise)
        # A point whose coordinates lie in several groups spends in all of them.
        whole = layout.inputs.labels.ndim < image.ndim
        if self.most is None or not whole or self.most >= layout.inputs.count:
            return rows
        return rows & AtMostGroups(int(self.most))

    def words(self, noise: Noise, units: str) -> str:
        """Name the norm, and how many points move."""
        del units
        moved = "each point" if self.most is None else f"at most {self.most} points, each"
        return f"perturbation that moves {moved} by at most ε (l{noise.norm} norm of its coordinates)"
