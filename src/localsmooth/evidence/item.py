"""What the checks need to know of an item, whatever the kind of input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.certificates import BaseCertificates, CertifiedOutputs, OutputVotes
from localsmooth.collective import Problem
from localsmooth.noise import Noise
from localsmooth.tasks import Alike, Stakes, Strategies

__all__ = ["Budgets", "CheckedItem", "Outputs", "Way"]


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs of one item that share α.

    Parameters
    ----------
    name
        The item's name.
    votes
        Their tallies.
    group
        Output group of each.
    levels
        The layout's level matrix.
    noise
        The distribution that was sampled.
    ignored
        Those that do not count; None if all do.
    """

    name: str
    votes: OutputVotes
    group: Int[np.ndarray, "outputs"]
    levels: Float[np.ndarray, "output_groups input_groups *parameters"]
    noise: Noise
    ignored: Bool[np.ndarray, "outputs"] | None = None


@dataclass(frozen=True, eq=False)
class Way:
    """One way to certify a target: base certificates, and what outputs that do not abstain are worth."""

    base: BaseCertificates
    stakes: Stakes


class Budgets(ABC):
    """The budgets of an item, and the collective problems that they are certified by.

    Attributes
    ----------
    sizes
        What each budget allows, in numbers: what is proven at one holds at all of which no number is larger.
    """

    sizes: Float[np.ndarray, "budgets numbers"]

    def together(self, base: BaseCertificates) -> Sequence[Int[np.ndarray, "some"]]:
        """Numbers of the budgets that share a problem; all share one by default."""
        del base
        return [np.arange(len(self.sizes))]

    @abstractmethod
    def problem(self, way: Way, chosen: Int[np.ndarray, "some"]) -> Problem:
        """Return the collective problem of some budgets, shown to ask no less than what is promised.

        Raises
        ------
        DoesNotHoldError
            If it allows the adversary less.
        """


class CheckedItem(ABC):
    """One item of a run, as it is certified: a kind of input has a subclass of its own.

    Attributes
    ----------
    outputs
        Its outputs.
    settings
        What is proven of it, the rule for many outputs settled.
    kinds
        Sizes of the budgets by their kind, as the result must name them.
    """

    outputs: Outputs
    settings: Strategies
    kinds: Mapping[str, Sequence[float]]

    @abstractmethod
    def stakes(self) -> Mapping[str, Stakes]:
        """What each target makes of the outputs if every candidate stands."""

    @abstractmethod
    def certify(self, way: Strategies, outputs: Alike) -> CertifiedOutputs:
        """Make certificates of the outputs by one way to share α, as the pipeline does."""

    def narrowed(self, made: CertifiedOutputs) -> CertifiedOutputs:
        """Return checked certificates with what is known besides, such as what outputs cannot see; checked as well.

        Raises
        ------
        DoesNotHoldError
            If more is promised than what is known.
        """
        return made

    def radius(self, alone: BaseCertificates) -> Float[np.ndarray, "outputs"] | None:
        """Radii of single outputs that the result shows; None where they say something else."""
        del alone
        return None

    @abstractmethod
    def budgets(self) -> Budgets:
        """The budgets."""
