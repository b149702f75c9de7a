"""How to make worlds of each noise: a line for every one that the package offers."""

from __future__ import annotations

from bit_worlds import BitWorld, World, bit_world
from grids import GridGaussian, GridUniform
from real_worlds import RealWorld, gaussian_world, uniform_world

from localsmooth.noise import Bernoulli, Gaussian, SparseFlips, Uniform

__all__ = ["WORLDS", "BitWorld", "RealWorld", "World"]

WORLDS = {
    Gaussian: gaussian_world,
    Uniform: uniform_world,
    Bernoulli: bit_world,
    SparseFlips: bit_world,
    # What is constant between edges along single inputs stays so when these are rounded, whatever the noise.
    GridGaussian: uniform_world,
    GridUniform: uniform_world,
}
"""How to make worlds of each noise."""
