"""What noise that is added to the input has in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from types import NoneType
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.noise.base import Noise, PreparedNoise
from localsmooth.noise.cumulative import RoundedLaw
from localsmooth.noise.on_grid import PreparedSteps, shown_step, whole_steps
from localsmooth.noise.precision import attained_levels, require_floating
from localsmooth.noise.randomness import Randomness
from localsmooth.noise.table import DrawingTable

__all__ = ["AdditiveNoise"]

_MOST_STEPS = 1 << 15  # of a level: its table has some 600 000 numbers then, and is made in seconds
_STEPS_PER_LEVEL = 8  # rounding has a standard deviation of 1/28 of the level then
_SMALLEST, _LARGEST = 1e-30, 1e30


@dataclass(frozen=True)
class AdditiveNoise(Noise):
    """z = x + level·s with independent draws s of one standard law.

    *On a grid.* Let the base classifier round its input to whole multiples of a step h first, so that g is f ∘
    round. Where x is made of such multiples, round(x + z) = x + round(z) for every z: smoothing g with *real* noise
    around x is adding K, the noise rounded to whole steps, whose law is known exactly. Votes for draws of K are
    votes for real noise, and the certificate, with the exact level in W, speaks of the smoothed g at every real x'.
    An element of k steps reaches f as float(k + K) · float(h): one function of the whole number, thus part of g, as
    are the clamp and hidden constants, which follow it. K comes from a table of 64-bit thresholds, whose distance
    to the law is bounded (`drawing_error`).

    Parameters
    ----------
    clamp
        Clamp the noisy inputs to the model's declared bounds. The clamp is part of the base classifier, so budgets
        and radii stay in the declared input space.
    grid
        Step of a grid that every input lies on, up to a thousandth of a step and rounding, such as 1/255 for images of
        8 bits: noise is drawn as whole steps, and the certificate, about the point of the grid, holds without taking
        floating point numbers for real ones. None draws floating point numbers. "auto" leaves it to the items of a
        run: a grid where all of them lie on the one that `shown_step` sees, floating point numbers elsewhere.

    Raises
    ------
    InvalidInputError
        If the grid is no positive number.
    """

    clamp: bool = False
    grid: float | Literal["auto"] | None = "auto"

    def __post_init__(self) -> None:
        if self.grid == "auto":
            return
        require_kind("grid", self.grid, float, int, NoneType)
        if self.step is not None and not _SMALLEST <= self.step <= _LARGEST:
            raise InvalidInputError("grid", f"got {self.grid!r}", 'Pass the step, such as 1/255, or None, or "auto"')

    @property
    def step(self) -> float | None:
        """Step of the grid; None where floating point numbers are drawn, as they are until a run has settled it."""
        return None if self.grid is None or self.grid == "auto" else float(self.grid)

    @classmethod
    def of_run(cls, **parameters: object) -> Noise:
        """Make the noise of a run again; one whose configuration has no grid drew floating point numbers."""
        return super().of_run(**({"grid": None} | parameters))

    def suited(
        self,
        items: Sequence[torch.Tensor],
        levels: Sequence[Float[np.ndarray, "_ _ ..."]],
    ) -> Noise:
        """Settle the grid, where it is "auto".

        It is halved while it is coarse for the smallest level, so that rounding changes what the model sees little.
        """
        if self.grid != "auto":
            return self
        finite = np.concatenate([np.empty(0), *(each[np.isfinite(each)] for each in levels)])
        step = next((found for each in items if (found := shown_step(each)) is not None), None)
        if step is not None and finite.size:
            while step > finite.min() / _STEPS_PER_LEVEL:
                step /= 2
            made = replace(self, grid=step)
            try:
                for item in items:
                    made.require_item(item)
                for level in np.unique(finite):
                    made.validate(np.full((1, 1), level))
                    made.table(level)
            except InvalidInputError:
                pass
            else:
                return made
        return replace(self, grid=None)

    @staticmethod
    @abstractmethod
    def fill(out: torch.Tensor, randomness: Randomness) -> None:
        """Overwrite `out` with draws of the standard law."""

    @classmethod
    def rounded(cls, step: Fraction) -> RoundedLaw:
        """Return the law of round(s / step); a family that can be drawn on a grid overrides this.

        Parameters
        ----------
        step
            Of the grid, where the level is 1.

        Raises
        ------
        InvalidInputError
            If the family does not.
        """
        raise InvalidInputError("grid", f"{cls.__name__} noise cannot be drawn on a grid", "Leave the grid out")

    def validate(self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]) -> None:
        """Refuse levels that are not positive, in single precision too.

        Raises
        ------
        InvalidInputError
            If there is not one positive level per pair of output and input group, or one has more than 2¹⁵ steps of
            the grid.
        """
        if levels.ndim != 2:
            raise InvalidInputError(
                "levels",
                f"shape {levels.shape} has further axes",
                f"{type(self).__name__} noise has one level per pair of output and input group",
            )
        if not (levels > 0).all():
            raise InvalidInputError(
                "levels",
                f"the smallest level is {levels.min()}",
                "Every level must be positive (inf hides inputs altogether)",
            )
        attained_levels(levels)
        finite = levels[np.isfinite(levels)]
        if self.step is not None and (finite > _MOST_STEPS * self.step).any():
            raise InvalidInputError(
                "levels",
                f"the level {finite.max():g} has more than {_MOST_STEPS} steps of {self.step:g}",
                "Use a coarser grid, or grid=None",
            )

    def effective(self, levels: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Levels that the weights may assume: those that single precision attains, or exact ones on a grid."""
        return attained_levels(levels) if self.step is None else levels

    def table(self, level: float) -> DrawingTable:
        """Return the table for noise of a level on the grid.

        Parameters
        ----------
        level
            Positive and finite.
        """
        assert self.step is not None, "noise that is not on a grid has no table"
        return _table(type(self), level, self.step)

    def require_item(self, item: torch.Tensor) -> None:
        """Refuse items that are off the grid."""
        if self.step is not None:
            whole_steps(item, self.step)

    def drawing_error(
        self,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        sizes: Int[np.ndarray, "input_groups"],
    ) -> float | None:
        """Add up the errors of the tables over all elements; distances of independent numbers add up at most."""
        if self.step is None:
            return None
        different, which = np.unique(levels, return_inverse=True)
        error = np.array([self.table(level).error if math.isfinite(level) else 0.0 for level in different.tolist()])
        # More than rounding takes from a sum of 2³⁰ terms, whatever its order.
        return math.nextafter(float((error[which.reshape(levels.shape)] * sizes).sum()) * (1 + 1e-6), math.inf)

    def prepare(
        self,
        item: torch.Tensor,
        level_map: Float[np.ndarray, "..."],
        bounds: tuple[float, float] | None,
        hidden_value: float,
    ) -> PreparedNoise:
        """Set up the distribution around one item.

        Raises
        ------
        InvalidInputError
            If samples are clamped, and the model declares no bounds, or the item is off the grid.
        """
        require_floating(item)
        if self.clamp and bounds is None:
            raise InvalidInputError(
                "clamp", "the model declares no input bounds to clamp to", "Declare them, or switch clamping off"
            )
        limits = bounds if self.clamp else None
        if self.step is not None:
            return PreparedSteps.around(item, level_map, self.step, self.table, limits, hidden_value)
        levels = torch.as_tensor(level_map).to(item.device, item.dtype)
        hidden = torch.isinf(levels)
        centre = torch.where(hidden, torch.as_tensor(hidden_value, dtype=item.dtype, device=item.device), item)
        scale = torch.where(hidden, torch.zeros_like(levels), levels).expand(item.shape)
        return _PreparedSum(self, centre.contiguous(), scale, limits)

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters."""
        grid = {} if self.step is None else {"grid": self.step}
        return {"distribution": self.distribution, "clamp": self.clamp} | grid


@lru_cache(maxsize=256)
def _table(family: type[AdditiveNoise], level: float, grid: float) -> DrawingTable:
    return DrawingTable.of(family.rounded(Fraction(grid) / Fraction(level)))


@dataclass(frozen=True, eq=False)
class _PreparedSum(PreparedNoise):
    noise: AdditiveNoise
    centre: torch.Tensor
    scale: torch.Tensor
    bounds: tuple[float, float] | None

    def draw(self, out: torch.Tensor, randomness: Randomness) -> None:
        self.noise.fill(out, randomness)
        torch.addcmul(self.centre, out, self.scale, out=out)
        if self.bounds is not None:
            out.clamp_(*self.bounds)
