"""The sections that say what the adversary may do to an item."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field

from localsmooth.config.section import AnyOf, Section, value_of
from localsmooth.registry import Registry
from localsmooth.tasks.arrays import Flips, ItemThreat, Kind, NormBall, PerPosition

__all__ = ["THREAT_SECTIONS", "AnyThreat", "PerPositionSection", "ThreatSection"]


class ThreatSection(Section):
    """Base of the sections of threats; each has a key `kind` with one value."""

    @abstractmethod
    def build(self) -> ItemThreat:
        """Make the threat."""


class NormBallSection(ThreatSection):
    """Perturbations of norm at most ε, in the norm of the noise: what holds where there is no such section."""

    kind: Literal["norm-ball"]

    def build(self) -> NormBall:
        """Make the threat."""
        return NormBall()


class FlipsSection(ThreatSection):
    """At most ε flips of bits (or of edges, beside `[edges]`), under sparsity-aware noise."""

    kind: Literal["flips"]
    flips: Literal["any", "additions", "deletions"] = "any"
    """Which flips a budget buys."""

    def build(self) -> Flips:
        """Make the threat."""
        return Flips(Kind[self.flips.upper()])


class PerPositionSection(ThreatSection):
    """Every position (a pixel, a token, a point) moves by at most ε over its channels, in the norm of the noise."""

    kind: Literal["per-position"]
    most: int | None = Field(default=None, ge=1)
    """Number of positions that move at all; by default every one may."""

    def build(self) -> PerPosition:
        """Make the threat."""
        return PerPosition(self.most)


THREAT_SECTIONS = Registry[ThreatSection](
    "section of a threat", value_of("kind"), NormBallSection, FlipsSection, PerPositionSection
)
"""Sections by kind of threat."""

AnyThreat = Annotated[ThreatSection, AnyOf(THREAT_SECTIONS, "kind")]
