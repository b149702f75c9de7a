"""The sections that name a smoothing distribution."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from localsmooth.config.section import AnyOf, Section, value_of
from localsmooth.noise import Bernoulli, Gaussian, Noise, SparseFlips, Uniform
from localsmooth.registry import Registry
from localsmooth.tasks.arrays import Flips, ItemThreat, Kind, NormBall

__all__ = [
    "NOISE_SECTIONS",
    "AnyNoise",
    "BernoulliSection",
    "GaussianSection",
    "Level",
    "NoiseSection",
    "SparseFlipsSection",
    "UniformSection",
]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _ratio(value: object) -> object:
    """Read "1/255" as a number; whatever else is left to be checked."""
    try:
        return float(Fraction(value)) if isinstance(value, str) else value
    except (ValueError, ZeroDivisionError, OverflowError):
        return value


Step = Annotated[float, Field(gt=1e-30, lt=1e30), BeforeValidator(_ratio)]
Probability = Annotated[float, Field(gt=0, lt=1)]
Level = float | tuple[float, ...]
"""One number, or the parameters where a family has several."""


class NoiseSection(Section):
    """Base of the sections of noises; each has a key `distribution` with the one name of its family."""

    symbol: ClassVar[str] = "level"
    """What tables call a level."""

    @abstractmethod
    def build(self) -> Noise:
        """Make the noise."""

    @abstractmethod
    def levels(self) -> tuple[Level, Level]:
        """Levels in an output's own cell, and in the farthest."""

    def threat(self) -> ItemThreat:
        """What the adversary may do; by default all that the norm of the noise allows."""
        return NormBall()


class AdditiveSection(NoiseSection):
    """Base of the sections of noise that is added."""

    clamp: bool = False
    """Clamp noisy inputs to the bounds of the model."""
    grid: Step | Literal["auto", "none"] = "auto"
    """Step of a grid that all inputs lie on, such as "1/255" for images of 8 bits: noise is drawn as whole steps, and
    the certificate does not take floating point numbers for real ones. "auto": where all inputs are seen to be on one,
    of steps of 1/255 or 1 (or these halved, for small levels); "none": floating point numbers."""

    @property
    def step(self) -> float | Literal["auto"] | None:
        """The grid, as noises take it."""
        return None if self.grid == "none" else self.grid


class GaussianSection(AdditiveSection):
    """Gaussian noise for the l2 norm."""

    symbol = "σ"

    distribution: Literal["gaussian"]
    sigma_min: Positive
    """Standard deviation inside an output's own cell."""
    sigma_max: Positive
    """Standard deviation in the farthest cell."""

    @model_validator(mode="after")
    def _ordered(self) -> GaussianSection:
        if self.sigma_max < self.sigma_min:
            raise ValueError("sigma_max must not be below sigma_min")
        return self

    def build(self) -> Gaussian:
        """Make the noise."""
        return Gaussian(clamp=self.clamp, grid=self.step)

    def levels(self) -> tuple[Level, Level]:
        """Smallest and largest standard deviation."""
        return self.sigma_min, self.sigma_max


class UniformSection(AdditiveSection):
    """Uniform noise for the l1 norm: each input is moved by up to lambda."""

    symbol = "λ"

    distribution: Literal["uniform"]
    lambda_min: Positive
    """Half width inside an output's own cell."""
    lambda_max: Positive
    """Half width in the farthest cell."""

    @model_validator(mode="after")
    def _ordered(self) -> UniformSection:
        if self.lambda_max < self.lambda_min:
            raise ValueError("lambda_max must not be below lambda_min")
        return self

    def build(self) -> Uniform:
        """Make the noise."""
        return Uniform(clamp=self.clamp, grid=self.step)

    def levels(self) -> tuple[Level, Level]:
        """Smallest and largest half width."""
        return self.lambda_min, self.lambda_max


class BernoulliSection(NoiseSection):
    """Flips of binary inputs, for a number of changed bits."""

    symbol = "θ"

    distribution: Literal["bernoulli"]
    theta_min: Probability
    """Probability of a flip inside an output's own cell."""
    theta_max: Probability
    """Probability of a flip in the farthest cell; 0.5 hides the inputs."""

    @model_validator(mode="after")
    def _ordered(self) -> BernoulliSection:
        if self.theta_max < self.theta_min:
            raise ValueError("theta_max must not be below theta_min")
        return self

    def build(self) -> Bernoulli:
        """Make the noise."""
        return Bernoulli()

    def levels(self) -> tuple[Level, Level]:
        """Smallest and largest probability."""
        return self.theta_min, self.theta_max


class SparseFlipsSection(NoiseSection):
    """Sparsity-aware flips of binary inputs, for added and deleted bits (or edges, beside `[edges]`)."""

    distribution: Literal["sparse-flips"]
    addition_min: Probability
    """Probability that a zero becomes one, or two nodes are joined, inside an output's own cell (or cluster)."""
    addition_max: Probability
    """The same in the farthest cell."""
    deletion_min: Probability
    """Probability that a one becomes zero, or an edge is lost, inside an output's own cell (or cluster)."""
    deletion_max: Probability
    """The same in the farthest cell."""
    flips: Literal["any", "additions", "deletions"] = "any"
    """Which flips a budget buys."""

    @model_validator(mode="after")
    def _ordered(self) -> SparseFlipsSection:
        if self.addition_max < self.addition_min or self.deletion_max < self.deletion_min:
            raise ValueError("a largest probability must not be below the smallest")
        return self

    def build(self) -> SparseFlips:
        """Make the noise."""
        return SparseFlips()

    def levels(self) -> tuple[Level, Level]:
        """Smallest and largest probabilities, of additions and of deletions."""
        return (self.addition_min, self.deletion_min), (self.addition_max, self.deletion_max)

    def threat(self) -> ItemThreat:
        """The flips that a budget buys."""
        return Flips(Kind[self.flips.upper()])


NOISE_SECTIONS = Registry[NoiseSection](
    "section of a noise",
    value_of("distribution"),
    GaussianSection,
    UniformSection,
    BernoulliSection,
    SparseFlipsSection,
)
"""Sections by distribution."""

AnyNoise = Annotated[NoiseSection, AnyOf(NOISE_SECTIONS, "distribution")]
