"""What is counted while sampling: several counters can read the same samples at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.sampling.predictions import Predictions

__all__ = [
    "Accumulator",
    "Counter",
    "Counters",
    "CountingScope",
    "LabelCounts",
    "Votes",
    "compact_type",
    "require_votes_only",
]


@dataclass(frozen=True, eq=False)
class CountingScope:
    """What a counter knows before the first batch of a chunk.

    Parameters
    ----------
    shape
        Shape of the group's outputs in `Predictions`.
    classes
        Number of classes.
    device
        Where predictions live and counts must be kept.
    size
        Number of samples that the chunk will count.
    chosen
        What the candidate stage chose, by name, one row per output of the group in flat order (empty in the
        candidate stage): "candidate", and whatever further counters' `choose` added.
    """

    shape: tuple[int, ...]
    classes: int
    device: torch.device
    size: int
    chosen: Mapping[str, torch.Tensor] = field(default_factory=dict)


class Accumulator(ABC):
    """The running counts of one chunk, on the device."""

    @abstractmethod
    def update(self, predictions: Predictions) -> None:
        """Count one batch, without waiting for the device."""

    @abstractmethod
    def arrays(self) -> Mapping[str, torch.Tensor]:
        """The counts by name, each of shape (outputs, …); they are moved to the host once, at the end of a chunk."""


class Counter(ABC):
    """A statistic that merges by addition.

    A subclass is stateless and can be pickled; the arrays of its accumulators are stored with each chunk, and those
    of several chunks are added elementwise.
    """

    name: str
    """Prefix of the arrays in the store; unique within a stage."""

    @abstractmethod
    def start(self, scope: CountingScope) -> Accumulator:
        """Begin a chunk with empty counts."""

    def choose(self, counts: Mapping[str, np.ndarray], n: int) -> Mapping[str, np.ndarray]:
        """What the bound stage should know from the finished candidate stage: arrays of shape (outputs, …).

        Parameters
        ----------
        counts
            This counter's arrays, merged over all chunks of the candidate stage of one output group.
        n
            Number of samples in them.
        """
        del counts, n
        return {}

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters, as stored with a run (JSON-compatible)."""
        return {"name": self.name}


def compact_type(largest: int) -> torch.dtype:
    """Smallest integer type that holds counts from 0 to `largest` and that torch computes with."""
    if largest < 2**8:
        return torch.uint8
    return torch.int16 if largest < 2**15 else torch.int32


class LabelCounts(Counter):
    """How often each class was predicted; chooses the most frequent as the candidate (the smallest on ties)."""

    name = "labels"

    def start(self, scope: CountingScope) -> Accumulator:
        """Begin with zero counts."""
        return _LabelAccumulator(scope)

    def choose(self, counts: Mapping[str, np.ndarray], n: int) -> Mapping[str, np.ndarray]:
        """The candidate class of each output."""
        del n
        classes = counts["counts"].shape[1]
        return {"candidate": counts["counts"].argmax(axis=1).astype(np.int16 if classes <= 2**15 else np.int32)}


class _LabelAccumulator(Accumulator):
    def __init__(self, scope: CountingScope) -> None:
        outputs = int(np.prod(scope.shape))
        self._type = compact_type(scope.size)
        self._counts = torch.zeros((scope.classes, outputs), dtype=torch.int32, device=scope.device)
        self._one = torch.ones((1, 1), dtype=torch.int32, device=scope.device)

    def update(self, predictions: Predictions) -> None:
        labels = predictions.labels.reshape(predictions.size, -1).to(torch.int64)
        self._counts.scatter_add_(0, labels, self._one.expand(labels.shape))

    def arrays(self) -> Mapping[str, torch.Tensor]:
        return {"counts": self._counts.to(self._type).T.contiguous()}


class Votes(Counter):
    """How often the candidate was predicted, on samples that did not choose it."""

    name = "votes"

    def start(self, scope: CountingScope) -> Accumulator:
        """Begin with zero votes for the chosen candidates."""
        return _VoteAccumulator(scope)


class _VoteAccumulator(Accumulator):
    def __init__(self, scope: CountingScope) -> None:
        self._type = compact_type(scope.size)
        self._candidate = scope.chosen["candidate"].reshape(scope.shape)
        self._votes = torch.zeros(scope.shape, dtype=torch.int32, device=scope.device)

    def update(self, predictions: Predictions) -> None:
        labels = predictions.labels
        if self._candidate.dtype != labels.dtype:
            self._candidate = self._candidate.to(labels.dtype)
        self._votes += (labels == self._candidate).sum(dim=0, dtype=torch.int32)

    def arrays(self) -> Mapping[str, torch.Tensor]:
        return {"votes": self._votes.to(self._type).reshape(-1)}


@dataclass(frozen=True)
class Counters:
    """What each stage counts.

    Parameters
    ----------
    candidate
        Counters of the candidate stage; one of them must choose "candidate", as `LabelCounts` does.
    bound
        Counters of the bound stage.
    """

    candidate: tuple[Counter, ...] = (LabelCounts(),)
    bound: tuple[Counter, ...] = (Votes(),)

    def configuration(self) -> Mapping[str, object]:
        """Everything that the tallies depend on, as stored with a run (JSON-compatible)."""
        return {
            "candidate": [dict(counter.configuration()) for counter in self.candidate],
            "bound": [dict(counter.configuration()) for counter in self.bound],
        }


def require_votes_only(counters: Counters) -> None:
    """Refuse to stop early where anything but votes is counted in the bound stage.

    Raises
    ------
    InvalidInputError
        Naming the counter.
    """
    for counter in counters.bound:
        if not isinstance(counter, Votes):
            raise InvalidInputError(
                "stop",
                f"{counter.name} are counted, and their bounds do not hold at a number of samples that depends on them",
                "Count and certify votes alone, or draw every sample of the plan",
            )
