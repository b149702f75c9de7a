"""Other ways from an item's tallies to its certified counts than the collective problem over base certificates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from localsmooth.certificates.combined import OutputVotes
from localsmooth.execution import SamplingProgress
from localsmooth.layout import Layout
from localsmooth.models import Model
from localsmooth.noise import Noise
from localsmooth.pipeline.item import SampledItem
from localsmooth.pipeline.settings import CertificationSettings
from localsmooth.results import ItemResult
from localsmooth.runs import SamplingPlan, Store
from localsmooth.sampling import SamplingOptions

__all__ = ["Drawn", "ItemMethod"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was drawn for one item.

    Parameters
    ----------
    votes
        Candidates and votes.
    further
        What else a method needs, by name; kept with the run.
    """

    votes: OutputVotes
    further: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])


class ItemMethod(ABC):
    """Certifies one item from its tallies; a baseline is one of these."""

    name: str
    """Name in configuration files."""

    def adjust(self, settings: CertificationSettings) -> CertificationSettings:
        """Return the settings as the method uses them, so that checks and records speak of these."""
        return settings

    @abstractmethod
    def require(self, layout: Layout, noise: Noise) -> None:
        """Refuse a layout or a noise that the method does not hold for.

        Raises
        ------
        InvalidInputError
            Naming what does not fit.
        """

    @abstractmethod
    def bound_names(self, settings: CertificationSettings) -> tuple[str, ...]:
        """Names of the bounds that `certify` fills in, weakest first."""

    def draw(
        self,
        model: Model,
        images: Sequence[np.ndarray],
        layouts: Sequence[Layout],
        noise: Noise,
        plan: SamplingPlan,
        store: Store,
        settings: CertificationSettings,
        options: SamplingOptions,
        progress: SamplingProgress,
    ) -> list[Drawn] | None:
        """Draw samples for all items in a way of its own; None where votes are all that is needed.

        Parameters
        ----------
        model, layouts, noise, plan, store, options, progress
            As in `localsmooth.execution.sample`.
        images
            The items' inputs.
        settings
            What will be proven.
        """
        del model, images, layouts, noise, plan, store, settings, options, progress
        return None

    @abstractmethod
    def certify(self, item: SampledItem, noise: Noise, settings: CertificationSettings) -> ItemResult:
        """Certify one item.

        Parameters
        ----------
        item
            The item with its tallies.
        noise
            The distribution that was sampled.
        settings
            What to prove, after `adjust`.
        """

    @abstractmethod
    def assumptions(self, settings: CertificationSettings) -> tuple[str, ...]:
        """Sentences that the promise rests on, and what it does not say."""

    def promise(self, settings: CertificationSettings) -> str:
        """What holds with probability 1 − α, where it is not the usual; {threat} stands for the threat's words."""
        del settings
        return ""
