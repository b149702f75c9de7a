"""What chunks are drawn of: the contract between the engine and the kinds of input that it smooths."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Integer

from localsmooth.layout import Layout
from localsmooth.runs import RunIdentity, SamplingPlan, Store
from localsmooth.sampling.counter import Counters
from localsmooth.sampling.options import BatchSize, SamplingOptions
from localsmooth.sampling.predictions import Predictions

__all__ = ["PreparedGroup", "Ready", "Subject", "groups_of"]


class PreparedGroup(ABC):
    """One output group of one item, ready to draw: its smoothing distribution, and the base classifier on samples.

    Attributes
    ----------
    shape
        Shape of the group's outputs; their flat order is the order of their positions in the item.
    elements
        Input elements of one sample, for which a batch size is scaled.
    precision
        Type in which noise is drawn, for the record.
    """

    shape: tuple[int, ...]
    elements: int
    precision: str = "float32"

    @abstractmethod
    def draw(self, count: int, stream: Any) -> Any:
        """Draw a batch of samples; what is taken from the stream depends on nothing but their number.

        Parameters
        ----------
        count
            Samples to draw.
        stream
            From `Subject.stream`.
        """

    @abstractmethod
    def predict(self, batch: Any) -> Predictions:
        """Ask the base classifier about a batch."""

    @abstractmethod
    def inputs(self, batch: Any) -> np.ndarray:
        """Write a batch out as an array, samples first, for whoever looks into what went wrong with it."""

    @property
    @abstractmethod
    def bytes_per_sample(self) -> int:
        """Size of one sample in the array that `inputs` returns."""

    def release(self) -> None:  # noqa: B027 (few kinds keep anything)
        """Let go of memory that is kept between batches."""


@dataclass(frozen=True, eq=False)
class Ready:
    """A subject after the trials before the first chunk.

    Parameters
    ----------
    subject
        The subject as it will be drawn, for example with its model in another memory order.
    batch_size
        Samples per forward pass.
    messages
        What the user should know.
    """

    subject: Subject
    batch_size: BatchSize
    messages: tuple[str, ...] = ()


class Subject(ABC):
    """Everything that the content of chunks depends on: items, model, layouts, noise, seed and counters.

    A new kind of input is one of these. It can be pickled, so that chunks may be drawn in other processes.

    Attributes
    ----------
    layouts
        One per item.
    seed
        The run's seed.
    counters
        What each stage counts.
    classes
        Number of classes.
    device
        Where the model runs.
    concurrent
        Whether several threads may draw at once, each from a `replica`.
    """

    layouts: Sequence[Layout]
    seed: int
    counters: Counters

    @property
    @abstractmethod
    def classes(self) -> int:
        """Number of classes."""

    @property
    def device(self) -> torch.device:
        """Where the model runs, and where counts are kept while a chunk is drawn."""
        return torch.device("cpu")

    @property
    def concurrent(self) -> bool:
        """Whether several threads may draw at once, each from a replica of its own."""
        return False

    @abstractmethod
    def prepare(self, item: int, group: int) -> PreparedGroup:
        """Set up one output group of one item."""

    @abstractmethod
    def stream(self, key: tuple[int, ...]) -> Any:
        """Return the random stream of the run's seed and a key, such as that of a chunk."""

    @abstractmethod
    def describe(self, plan: SamplingPlan) -> RunIdentity:
        """Describe a run by all that affects its tallies: not by batch size, device, workers or memory format."""

    def replica(self) -> Subject:
        """Return the same subject for another thread: nothing that a call could change is shared."""
        return self

    def reseeded(self, seed: int) -> Subject:
        """Return the same subject with other streams.

        Parameters
        ----------
        seed
            Of these streams.
        """
        made = copy.copy(self)
        object.__setattr__(made, "seed", seed)  # some subjects are frozen
        return made

    def notes(self) -> tuple[str, ...]:
        """Return what the user should know before anything is drawn."""
        return ()

    @abstractmethod
    def try_out(self) -> None:
        """Refuse a model that is random, mixes the samples of a batch, or returns something else than it declares.

        Raises
        ------
        InvalidInputError
            Saying what the model does wrong.
        """

    def get_ready(
        self, plan: SamplingPlan, store: Store, options: SamplingOptions, conditions: AbstractContextManager[None]
    ) -> Ready:
        """Find the fastest way to draw, and try the model that way.

        Parameters
        ----------
        plan
            What will be drawn.
        store
            Where a choice is kept, so that an interrupted run goes on as it began.
        options
            What was asked for.
        conditions
            A context in which this process runs the model as the workers will.
        """
        del plan, store, conditions
        return Ready(self, BatchSize(options.batch_size or 1))

    @abstractmethod
    def clean_labels(self, item: int) -> Integer[np.ndarray, "..."]:
        """Return what the base classifier predicts without noise, in the shape of the item's outputs.

        Parameters
        ----------
        item
            Which item. Where output groups have windows, each is shown its own.
        """

    def trial_labels(self, item: int, group: int, key: tuple[int, ...], count: int) -> Integer[np.ndarray, " labels"]:
        """Labels of a few samples, batch by batch, that are the same on every device.

        Parameters
        ----------
        item, group
            Which output group.
        key
            Of the samples' stream.
        count
            Number of samples.
        """
        with torch.inference_mode():
            prepared, stream = self.prepare(item, group), self.stream(key)
            labels = [prepared.predict(prepared.draw(1, stream)).labels for _ in range(count)]
        return torch.stack(labels).cpu().numpy().astype(np.int32).ravel()


def groups_of(subject: Subject) -> list[tuple[int, int]]:
    """Every output group of every item, as (item, group)."""
    return [(item, group) for item, layout in enumerate(subject.layouts) for group in range(layout.outputs.count)]
