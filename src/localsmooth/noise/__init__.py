"""Smoothing distributions: each draws its samples and knows its certificate weights, from one level matrix."""

from localsmooth.noise.base import Noise, PreparedNoise
from localsmooth.noise.gaussian import Gaussian
from localsmooth.noise.randomness import Randomness

__all__ = ["Gaussian", "Noise", "PreparedNoise", "Randomness"]
