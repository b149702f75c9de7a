"""Smoothing distributions: each draws its samples and knows its certificate weights, from one level matrix."""

from localsmooth.noise.additive import AdditiveNoise
from localsmooth.noise.base import Noise, PreparedNoise
from localsmooth.noise.bernoulli import Bernoulli
from localsmooth.noise.binary import BinaryNoise, BitLaws
from localsmooth.noise.caps import FlipCaps, flip_caps
from localsmooth.noise.divergence import second_order_divergence
from localsmooth.noise.gaussian import Gaussian
from localsmooth.noise.precision import drawable_probabilities
from localsmooth.noise.randomness import Randomness
from localsmooth.noise.sparse import SparseFlips
from localsmooth.noise.uniform import Uniform
from localsmooth.registry import Registry

NOISES = Registry[Noise](
    "noise", lambda kind: getattr(kind, "distribution", None), Gaussian, Uniform, Bernoulli, SparseFlips
)
"""Families by the name in configuration files and stored runs."""

__all__ = [
    "NOISES",
    "AdditiveNoise",
    "Bernoulli",
    "BinaryNoise",
    "BitLaws",
    "FlipCaps",
    "Gaussian",
    "Noise",
    "PreparedNoise",
    "Randomness",
    "SparseFlips",
    "Uniform",
    "drawable_probabilities",
    "flip_caps",
    "second_order_divergence",
]
