"""Other ways from an item's tallies to its certified counts than the collective problem over base certificates."""

from __future__ import annotations

from abc import ABC, abstractmethod

from localsmooth.layout import Layout
from localsmooth.noise import Noise
from localsmooth.pipeline.item import SampledItem
from localsmooth.pipeline.settings import CertificationSettings
from localsmooth.results import ItemResult

__all__ = ["ItemMethod"]


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
        """What is promised with probability 1 − α, where it is not the usual; {threat} stands for the threat's words."""
        del settings
        return ""
