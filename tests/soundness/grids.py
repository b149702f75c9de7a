"""Noise on a grid, as classes of their own that need no arguments."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.noise import Gaussian, Uniform

__all__ = ["STEP", "GridGaussian", "GridUniform"]

STEP = 1 / 8
"""Items of real worlds lie on it."""


@dataclass(frozen=True)
class GridGaussian(Gaussian):
    grid: float | None = STEP


@dataclass(frozen=True)
class GridUniform(Uniform):
    grid: float | None = STEP
