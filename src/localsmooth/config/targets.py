"""The sections that say what is counted, where a name alone does not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Discriminator, Field, Tag

from localsmooth.config.faults import ConfigurationError
from localsmooth.config.section import AnyOf, ExistingPath, Section, value_of
from localsmooth.errors import InvalidInputError
from localsmooth.registry import Registry
from localsmooth.results import ACCURACY, RATIO
from localsmooth.tasks import Foreground, OfClass, Target, Weighted, as_targets

__all__ = ["TARGET_SECTIONS", "AnyTarget", "TargetSection", "make_targets", "target_names"]


class TargetSection(Section):
    """Base of the sections of targets; each has a key `kind` with one value."""

    @property
    @abstractmethod
    def called(self) -> str:
        """What results call the target."""

    @abstractmethod
    def build(self) -> Target:
        """Make the target."""


class ForegroundSection(TargetSection):
    """Outputs of all classes but the background's that are correct (without labels: as the clean model has them)."""

    kind: Literal["foreground"]
    background: list[str | int] = Field(default=[0], min_length=1)
    """Names or numbers of the classes that do not count."""

    @property
    def called(self) -> str:
        """The name of every foreground."""
        return "foreground"

    def build(self) -> Foreground:
        """Make the target."""
        return Foreground(tuple(self.background))


class OfClassSection(TargetSection):
    """Correct outputs of one class; `"class:NAME"` says the same."""

    kind: Literal["class"]
    of: str | int
    """Its name or number."""

    @property
    def called(self) -> str:
        """The class's own name."""
        return f"class:{self.of}"

    def build(self) -> OfClass:
        """Make the target."""
        return OfClass(self.of)


class WeightedSection(TargetSection):
    """Outputs by weights of your own; a mask of zeros and ones is a region of interest."""

    kind: Literal["weighted"]
    file: ExistingPath
    """A `.npy` file with a weight of at least 0 for each output, of the shape of the outputs of every item (on a graph:
    one for each node that is certified). Weights must not come from the samples that are bounded."""
    name: str = Field(default="weighted", min_length=1)
    """What results call the target."""
    correct: bool = False
    """Whether an output counts only where it is correct."""

    @property
    def called(self) -> str:
        """The key `name`."""
        return self.name

    def build(self) -> Weighted:
        """Make the target.

        Raises
        ------
        ConfigurationError
            If the file holds no weights.
        """
        try:
            weights = np.load(self.file, allow_pickle=False)
            return Weighted(weights, name=self.name, correct=self.correct)
        except (OSError, ValueError, TypeError, InvalidInputError) as error:
            raise ConfigurationError(f"certificate.targets: {self.file} holds no weights: {error}") from error


TARGET_SECTIONS = Registry[TargetSection](
    "section of a target", value_of("kind"), ForegroundSection, OfClassSection, WeightedSection
)
"""Sections by kind of target."""


def _known(name: str) -> str:
    try:
        as_targets([name])
    except InvalidInputError as error:
        raise ValueError(f"{error.problem}. {error.remedy}") from None
    return name


def _tag(value: object) -> str:
    return "(name)" if isinstance(value, str) else "(table)"


AnyTarget = Annotated[
    Annotated[str, AfterValidator(_known), Tag("(name)")]
    | Annotated[TargetSection, AnyOf(TARGET_SECTIONS, "kind"), Tag("(table)")],
    Discriminator(_tag),
]
"""A target's name, or a table."""


def target_names(given: Sequence[str | TargetSection] | None) -> list[str]:
    """What results call the targets of labelled items.

    Parameters
    ----------
    given
        Names and sections.
    """
    return [RATIO, ACCURACY] if given is None else [one if isinstance(one, str) else one.called for one in given]


def make_targets(given: Sequence[str | TargetSection] | None) -> tuple[Target, ...]:
    """Make the targets; none for the usual ones.

    Parameters
    ----------
    given
        Names and sections.

    Raises
    ------
    ConfigurationError
        If two have one name, or a file holds no weights.
    """
    if given is None:
        return ()
    made = [one.build() if isinstance(one, TargetSection) else one for one in given]
    try:
        return as_targets(made)
    except InvalidInputError as error:
        raise ConfigurationError(f"certificate.targets: {error.problem}. {error.remedy}.") from error
