"""How many samples, cut into which chunks, under which seed."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import NoneType

from localsmooth.errors import InvalidInputError, require_kind, require_number
from localsmooth.runs.stopping import StoppingRule

__all__ = ["Chunk", "PassPlan", "SamplingPlan", "Stage"]


class Stage(Enum):
    """Which draw a sample belongs to; nothing that is certified may be chosen by looking at the BOUND samples."""

    CANDIDATE = 0
    BOUND = 1


@dataclass(frozen=True, order=True)
class Chunk:
    """A unit of work: `size` samples of one stage for one output group of one item.

    The key (item, group, stage, index) identifies the chunk in the store and its random stream.
    """

    item: int
    group: int
    stage: int
    index: int
    size: int

    @property
    def key(self) -> tuple[int, int, int, int]:
        """Identity of the chunk within a run."""
        return (self.item, self.group, self.stage, self.index)


@dataclass(frozen=True)
class SamplingPlan:
    """What is drawn, independently of how it is executed.

    Parameters
    ----------
    n_candidate
        N₁, samples per item and output group to choose the candidate label.
    n_bound
        N₂, further samples to bound the candidate's probability (or score).
    seed
        The run's seed.
    chunk_size
        Samples per chunk; the last chunk of a stage may be smaller.
    stop
        When an output group may do with fewer than `n_bound` samples; never by default.

    Raises
    ------
    InvalidInputError
        If a number is not whole, there is nothing to draw, or the seed is negative.
    """

    n_candidate: int
    n_bound: int
    seed: int = 0
    chunk_size: int = 128
    stop: StoppingRule | None = None

    def __post_init__(self) -> None:
        for field in ("n_candidate", "n_bound", "chunk_size", "seed"):
            try:
                if isinstance(getattr(self, field), bool):
                    raise TypeError
                object.__setattr__(self, field, operator.index(getattr(self, field)))
            except TypeError:
                raise InvalidInputError(field, f"got {getattr(self, field)!r}", "Pass a whole number") from None
        for field in ("n_candidate", "n_bound", "chunk_size"):
            if getattr(self, field) < 1:
                raise InvalidInputError(field, f"got {getattr(self, field)}", "Pass at least 1")
        require_kind("stop", self.stop, StoppingRule, NoneType)
        if self.seed < 0:
            raise InvalidInputError("seed", f"got {self.seed}", "Pass a non-negative integer")

    def configuration(self) -> Mapping[str, object]:
        """Everything that the tallies depend on, as stored with a run (JSON-compatible)."""
        numbers = ("seed", "n_candidate", "n_bound", "chunk_size")
        rule = {} if self.stop is None else {"stop": dict(self.stop.configuration())}
        return {name: getattr(self, name) for name in numbers} | rule

    def samples(self, stage: Stage) -> int:
        """Number of samples of one stage, if none is saved."""
        return self.n_candidate if stage is Stage.CANDIDATE else self.n_bound

    def chunks(self, item: int, group: int, stage: Stage) -> Iterator[Chunk]:
        """Yield the chunks of one stage for one item and output group."""
        total = self.samples(stage)
        for index, start in enumerate(range(0, total, self.chunk_size)):
            yield Chunk(item, group, stage.value, index, min(self.chunk_size, total - start))


_SPLIT = 1 / 9
_MOST = 2**53  # whole numbers beyond it are no floating point numbers


@dataclass(frozen=True)
class PassPlan:
    """A budget of work, from which numbers of samples follow once it is known what a sample takes.

    Parameters
    ----------
    passes
        Passes over one item that may be spent, both stages and all output groups together. A pass over a window counts
        by the share of the item that it is; items of several sizes share numbers of samples, by their mean.
    split
        Share of the samples that choose candidates (N₁); the others bound them (N₂).
    seed, chunk_size, stop
        As in `SamplingPlan`.

    Raises
    ------
    InvalidInputError
        If the budget is no number, not positive, or above 2⁵³, the split is no share, or something would be wrong with
        the plan.
    """

    passes: float | int
    split: float = _SPLIT
    seed: int = 0
    chunk_size: int = 128
    stop: StoppingRule | None = None

    def __post_init__(self) -> None:
        for field in ("passes", "split"):
            require_number(field, getattr(self, field), "Pass a number")
        if self.passes > _MOST and self.passes != math.inf:
            raise InvalidInputError("passes", "more than can be counted", f"Pass at most {_MOST:,}")
        if not 0 < self.passes < math.inf:
            raise InvalidInputError("passes", f"got {self.passes}", "Pass a positive number")
        if not 0 < self.split < 1:
            raise InvalidInputError("split", f"got {self.split}", "Pass a share strictly between 0 and 1")
        SamplingPlan(1, 1, self.seed, self.chunk_size, self.stop)  # refuses the rest

    def plan(self, each: float | int) -> SamplingPlan:
        """As many samples as the budget affords.

        Parameters
        ----------
        each
            Passes that one sample of every output group takes.

        Raises
        ------
        InvalidInputError
            If that is not one for each stage.
        """
        total = int(self.passes / each * (1 + 1e-9))  # shares of windows add up to 1 but for rounding
        if total < 2:
            problem = f"{self.passes:g} passes an item are {total} samples of each output group, of {each:g} passes"
            raise InvalidInputError("passes", problem, "Allow more: each of two stages needs one")
        first = min(max(1, round(self.split * total)), total - 1)
        return SamplingPlan(first, total - first, self.seed, self.chunk_size, self.stop)
