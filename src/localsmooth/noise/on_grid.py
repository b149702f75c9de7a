"""Noise on a grid: inputs and noise as whole numbers of steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError
from localsmooth.noise.base import PreparedNoise
from localsmooth.noise.randomness import Randomness
from localsmooth.noise.table import GUIDE_BITS, DrawingTable

__all__ = ["PreparedSteps", "shown_step", "whole_steps"]

_TOLERANCE, _ROUNDING = 1e-3, 2.0**-23  # of a step, and of the value, which single precision may have rounded
_FINEST = 1 << 20  # steps of an item, which can still be told apart
_LARGEST = 1 << 24  # whole numbers up to here are single precision numbers
_SEVERAL = 4  # different values, which are a coincidence on a grid no more
_GLANCE = 1 << 12  # elements that show at once that most items are on no grid
_PIECE = 1 << 17  # elements that are drawn at once, so that they stay in the cache


def whole_steps(item: torch.Tensor, grid: float) -> Int[torch.Tensor, "..."]:
    """Number of steps of each element of an item.

    Raises
    ------
    InvalidInputError
        If an element is off the grid by a thousandth of a step, and more than single precision rounds it by.
    """
    steps = item.detach().to("cpu", torch.float64) / grid
    whole = steps.round()
    near = (steps - whole).abs() <= _TOLERANCE + whole.abs() * _ROUNDING
    if not bool(near.all()):
        value = float(steps[~near][0]) * grid
        raise InvalidInputError(
            "grid",
            f"the input has the value {value:g}, which is no multiple of {grid:g}",
            "Pass inputs on the grid (those of 8 bits, divided by 255, are on 1/255), or grid=None, which takes "
            "floating point noise for real noise",
        )
    if bool((whole.abs() >= _FINEST).any()):
        raise InvalidInputError("grid", f"inputs have more than 2^20 steps of {grid:g}", "Use a coarser grid")
    return whole.to(item.device, torch.int32)


def shown_step(item: torch.Tensor) -> float | None:
    """Step of the grid that an item shows itself to be on: 1/255, as images of 8 bits are, or 1; None if on neither.

    Items of few different values, which lie on many grids, show none.

    Parameters
    ----------
    item
        Any shape.
    """
    for step in (1.0, 1 / 255):
        try:
            whole_steps(item.flatten()[:_GLANCE], step)
            whole = whole_steps(item, step)
        except InvalidInputError:
            continue
        return step if whole.unique().numel() >= _SEVERAL else None
    return None


@dataclass(frozen=True, eq=False)
class PreparedSteps(PreparedNoise):
    """Whole numbers drawn from tables, added to an item's, and turned into the model's input.

    Parameters
    ----------
    grid
        Length of a step.
    cell
        For each element, where its table's guide has the middle.
    add
        For each element, what leads from a place among all thresholds to the sum of item and noise.
    sure
        For all tables and values of the first bits, the place among all thresholds, or −1 where it takes all bits.
    low, high
        The first and the last place that it can be.
    thresholds
        Of all tables.
    rounds
        How often the places from `low` to `high` have to be halved at most.
    hidden
        Which elements are a constant, if any are.
    hidden_value
        The constant.
    bounds
        What samples are clamped to.
    """

    grid: float
    cell: Int[torch.Tensor, "..."]
    add: Int[torch.Tensor, "..."]
    sure: Int[torch.Tensor, " cells"]
    low: Int[torch.Tensor, " cells"]
    high: Int[torch.Tensor, " cells"]
    thresholds: Int[torch.Tensor, " thresholds"]
    rounds: int
    hidden: torch.Tensor | None
    hidden_value: float
    bounds: tuple[float, float] | None

    @classmethod
    def around(
        cls,
        item: torch.Tensor,
        level_map: Float[np.ndarray, "..."],
        grid: float,
        table: Callable[[float], DrawingTable],
        bounds: tuple[float, float] | None,
        hidden_value: float,
    ) -> PreparedSteps:
        """Set noise up around an item.

        Parameters
        ----------
        item, level_map, bounds, hidden_value
            As for `Noise.prepare`.
        grid
            Length of a step.
        table
            Makes the table of a level.

        Raises
        ------
        InvalidInputError
            If the item is not on the grid.
        """
        hidden = torch.as_tensor(np.isinf(level_map)).to(item.device).expand(item.shape)
        whole = whole_steps(torch.where(hidden, torch.zeros_like(item), item), grid)
        levels, which = np.unique(np.where(np.isinf(level_map), np.nan, level_map), return_inverse=True)
        tables = [table(float(level)) for level in levels[~np.isnan(levels)]] or [table(grid)]
        if int(whole.abs().max()) + max(-each.first for each in tables) >= _LARGEST:
            raise InvalidInputError("grid", f"inputs and noise have 2^24 steps of {grid:g}", "Use a coarser grid")
        which = np.minimum(which.reshape(level_map.shape), len(tables) - 1)  # hidden elements are drawn, and not used
        starts = np.cumsum([0, *(each.thresholds.size for each in tables)])[:-1]
        low, high = (
            np.concatenate([getattr(each, name) + start for each, start in zip(tables, starts, strict=True)])
            for name in ("low", "high")
        )
        shift = np.array([each.first for each in tables]) - starts

        def here(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
            return torch.as_tensor(array).to(item.device, dtype)

        return cls(
            grid,
            here((which << GUIDE_BITS) + (1 << GUIDE_BITS - 1), torch.int64).expand(item.shape),
            here(shift[which], torch.int32) + whole,
            here(np.where(high - low <= 1, low, -1), torch.int32),
            here(low, torch.int64),
            here(high, torch.int64),
            here(np.concatenate([each.thresholds for each in tables]), torch.int64),
            int((high - low).max()).bit_length(),
            hidden if bool(hidden.any()) else None,
            hidden_value,
            bounds,
        )

    def draw(self, out: torch.Tensor, randomness: Randomness) -> None:
        """Overwrite `out` with samples: float(item + noise) · float(grid), in the precision of `out`."""
        for piece in out.split(max(1, _PIECE // max(1, self.add.numel()))):
            piece.copy_(self._sums(randomness.bits(tuple(piece.shape))))
            piece.mul_(torch.tensor(self.grid, dtype=out.dtype, device=out.device))
        if self.hidden is not None:
            out.masked_fill_(self.hidden, self.hidden_value)
        if self.bounds is not None:
            out.clamp_(*self.bounds)

    def _sums(self, bits: Int[torch.Tensor, "samples *item"]) -> Int[torch.Tensor, "samples *item"]:
        cells = (bits >> (64 - GUIDE_BITS)).add_(self.cell)
        place = torch.take(self.sure, cells)
        open_ = torch.nonzero(place.view(-1) < 0).view(-1)
        # Where the place is not known yet, this compares with anything.
        place += bits > torch.take(self.thresholds, place.clamp(min=0).to(torch.int64))
        if open_.numel():
            place.view(-1)[open_] = self._bisected(bits.view(-1)[open_], cells.view(-1)[open_]).to(torch.int32)
        return place.add_(self.add)

    def _bisected(self, bits: Int[torch.Tensor, " some"], cells: Int[torch.Tensor, " some"]) -> torch.Tensor:
        """The number of thresholds below `bits`: above those at `low`, and below that at `high`."""
        low, high = self.low[cells], self.high[cells]
        for _ in range(self.rounds):
            middle = (low + high) >> 1
            above = bits > self.thresholds[middle]
            low, high = torch.where(above, middle + 1, low), torch.where(above, high, middle)
        return low
