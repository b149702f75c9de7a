"""The contract between the pipeline and a kind of input: how it is drawn, kept, certified and shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import xarray as xr
from jaxtyping import Float

from localsmooth.collective import Bound
from localsmooth.errors import InvalidInputError
from localsmooth.execution import SamplingProgress
from localsmooth.runs import RunIdentity, SamplingPlan, Store
from localsmooth.sampling import ItemTally, SamplingOptions, Subject
from localsmooth.tasks.record import Facts, RunRecord
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.smoothing import Smoothing

__all__ = ["Asked", "Assignment", "Proof", "Sampled", "Task"]


@runtime_checkable
class Proof(Protocol):
    """What every kind of settings says."""

    @property
    def alpha(self) -> float:
        """Probability with which the certificate of one item may fail."""
        ...

    @property
    def needs_scores(self) -> bool:
        """Whether scores must be counted beside votes."""
        ...


Asked = TypeVar("Asked", bound=Proof)
"""What is proven: α, budgets and the strategies between tallies and counts, of one kind of input."""
Sampled = TypeVar("Sampled")
"""Everything that certifying needs once samples are drawn, of one kind of input."""


@dataclass(frozen=True, eq=False)
class Assignment(Generic[Sampled]):
    """A task under one smoothing, checked: what the pipeline works off.

    Parameters
    ----------
    subject
        What is drawn.
    plan
        How many samples, with the goals of a stopping rule filled in.
    collect
        Makes of the tallies, one per item, what is certified; items without one are left out.
    facts
        What the record says of it.
    draw
        Draws in a way of its own, in place of the sampler: gets the store of the chunks, and who is told.
    proven
        What is proven, with budgets filled in; None where that is what was asked.
    told
        What users should know before anything is drawn.
    """

    subject: Subject
    plan: SamplingPlan
    collect: Callable[[Sequence[ItemTally | None]], Sampled]
    facts: Facts
    draw: Callable[[Store, SamplingProgress], Sampled] | None = None
    proven: Any = None
    told: str = ""


class Task(ABC, Generic[Sampled, Asked]):
    """A model and the inputs of one kind that it is certified on.

    A new kind of input is a subclass in a folder of its own, and a line in `localsmooth.tasks.registry`.

    Attributes
    ----------
    name
        Name of the kind, in the registry, in records and in results.
    proves
        Class of its settings.
    unseen
        Why `plan` says nothing of what noise leaves of the predictions where no calibration inputs are given.
    """

    name: ClassVar[str]
    proves: ClassVar[type[Any]]
    unseen: ClassVar[str] = "How much of its predictions the model keeps under noise is not said for this kind of input"

    @classmethod
    def require_settings(cls, settings: object, what: str = "the task") -> None:
        """Refuse settings of another kind of input.

        Parameters
        ----------
        settings
            What is to be proven.
        what
            How to call what is certified.

        Raises
        ------
        InvalidInputError
            Naming the class that is wanted.
        """
        if not isinstance(settings, cls.proves):
            wanted = f"{cls.proves.__module__}.{cls.proves.__name__}"
            problem = f"{what} is about {cls.name}, and got a {type(settings).__name__}"
            raise InvalidInputError("prove", problem, f"Pass {wanted}")

    @abstractmethod
    def assign(
        self, smoothing: Smoothing, settings: Asked, options: SamplingOptions, scores: ScoreCounting | None
    ) -> Assignment[Sampled]:
        """Check everything that can be checked before anything is drawn.

        Parameters
        ----------
        smoothing
            How the model is smoothed.
        settings
            What will be proven.
        options
            How sampling is executed.
        scores
            How scores are counted; None for as little as the settings need.

        Raises
        ------
        InvalidInputError
            Naming what cannot be used.
        """

    def calibrated(
        self,
        subject: Subject,
        smoothing: Smoothing,
        calibration: object,
        levels: Sequence[Float[np.ndarray, " parameters"]],
        seed: int,
        options: SamplingOptions,
    ) -> Sequence[Subject]:
        """Make, for each level, calibration inputs under noise of this level everywhere.

        Parameters
        ----------
        subject, smoothing
            What is certified, as `assign` made it.
        calibration
            Inputs of the same kind, none of which is certified.
        levels
            Levels of the noise, or their parameters.
        seed
            Of the noise.
        options
            How sampling is executed.

        Raises
        ------
        InvalidInputError
            If there are none for this kind of input, they are of another kind, or one is to be certified.
        """
        del subject, smoothing, calibration, levels, seed, options
        raise InvalidInputError("calibration", f"{self.name} have none", "Leave it out")

    @classmethod
    @abstractmethod
    def save(cls, sampled: Sampled, store: Store) -> None:
        """Keep what certifying needs, tallies included."""

    @classmethod
    @abstractmethod
    def load(cls, record: RunRecord, store: Store) -> Sampled:
        """Read back what `save` kept.

        Parameters
        ----------
        record
            Of the finished run.
        store
            Where `save` wrote.

        Raises
        ------
        StoreError, RunRecordError
            If something is missing, damaged or of another run.
        """

    @classmethod
    @abstractmethod
    def settle(cls, sampled: Sampled, settings: Asked, record: RunRecord) -> Sequence[Asked]:
        """The settings of each item, with the rule for many outputs that the candidate stage chose.

        Parameters
        ----------
        sampled, settings, record
            As for `result`.

        Raises
        ------
        InvalidInputError
            If it does not hold for the run.
        """

    @classmethod
    @abstractmethod
    def result(
        cls,
        sampled: Sampled,
        settings: Asked,
        record: RunRecord,
        configuration: RunIdentity | None = None,
        progress: SamplingProgress | None = None,
    ) -> xr.Dataset:
        """Certify, and build the labelled result.

        Parameters
        ----------
        sampled
            From `load`, or collected.
        settings
            What to prove.
        record
            How the tallies came about.
        configuration
            What they depend on.
        progress
            Told how far it is.
        """

    @classmethod
    def overlaps(
        cls,
        sampled: Sampled,
        settings: Asked,
        record: RunRecord,
        configuration: RunIdentity | None = None,
        *,
        items: Sequence[int] = (),
        bound: Bound,
        tolerance: float = 1e-3,
        tell: Callable[[str], None] | None = None,
    ) -> xr.Dataset:
        """Certify IoU and Dice, and build the labelled result; kinds of input without classes to compare refuse.

        Parameters
        ----------
        sampled, settings, record, configuration
            As for `result`.
        items
            Numbers of the items; all if there is none.
        bound, tolerance
            As for `localsmooth.collective.certify_overlap`.
        tell
            Told which item is next.

        Raises
        ------
        InvalidInputError
            If there are no labels, or these settings certify none.
        """
        raise InvalidInputError("run", f"IoU of {cls.name} cannot be certified", "Certify its counts: recertify")

    @classmethod
    def shown_name(cls, record: RunRecord, settings: Asked) -> str:
        """What a result calls a run that is certified again."""
        del settings
        return record.method
