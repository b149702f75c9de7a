"""The sections of a sweep file."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from pydantic import Field, model_validator

from localsmooth.config import Section

__all__ = ["ComparisonSection", "MethodSection", "SweepSection"]

_MOST_POINTS = 10_000


class MethodSection(Section):
    """One method, with all settings that are tried.

    Keys are dotted keys of a certification's configuration, such as "noise.sigma_min". Values that are text may name
    other keys in braces: "models/{noise.sigma_min}.safetensors".
    """

    name: str = Field(min_length=1)
    """What reports call the method."""
    set: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Keys that are the same at all of the method's points and differ from the base."""
    grid: dict[str, list[Any]] = Field(default_factory=dict[str, list[Any]])
    """Lists of values; every combination is a point."""
    together: dict[str, list[Any]] = Field(default_factory=dict[str, list[Any]])
    """Lists of values of one length that change together: the first of each, the second of each, …"""
    points: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Points one by one."""

    @model_validator(mode="after")
    def _regular(self) -> MethodSection:
        lengths = {len(values) for values in self.together.values()}
        if len(lengths) > 1:
            raise ValueError(f"the lists of {', '.join(self.together)} differ in length")
        if any(not values for values in (*self.grid.values(), *self.together.values())):
            raise ValueError("a list of values is empty")
        if len(self.assignments()) > _MOST_POINTS:
            raise ValueError(f"there are more than {_MOST_POINTS} points")
        return self

    def assignments(self) -> list[dict[str, Any]]:
        """What every point changes, `set` left out: all combinations of grid, together and points."""
        tied = [dict(zip(self.together, values, strict=True)) for values in zip(*self.together.values(), strict=True)]
        combined = itertools.product(tied or [{}], self.points or [{}], itertools.product(*self.grid.values()))
        return [{**one, **point, **dict(zip(self.grid, values, strict=True))} for one, point, values in combined]


class ComparisonSection(Section):
    """Which methods are held against which."""

    title: str = Field(min_length=1)
    """Heading in the report."""
    ours: list[str] = Field(min_length=1)
    """Names of the methods that are to win."""
    baselines: list[str] = Field(min_length=1)
    """Names of the methods that they are compared with."""
    equal: Literal["samples per output", "total samples", "work"] | None = None
    """What must be the same for all of these methods' points. Numbers of samples are checked before anything runs;
    "work", passes over an item with windows counted by their share, within a tenth, in the results."""


class SweepSection(Section):
    """A sweep: a base configuration, methods with their settings, and comparisons."""

    title: str = "Sweep"
    """Heading of the report."""
    quality: Literal["miou", "accuracy"] | None = None
    """How well the smoothed classifier predicts, abstentions counted as wrong; by default mIoU, on graphs accuracy."""
    target: str = "ratio"
    """Which target's radii are compared: one of `certificate.targets`, or ratio and accuracy where none are named."""
    flips: Literal["deletions", "additions"] | None = None
    """On graphs: which flips the adversary has, and radii count; deletions by default."""
    base: dict[str, Any]
    """The configuration that all points start from, as in a file for `localsmooth certify`, for images or a graph."""
    method: list[MethodSection] = Field(min_length=1)
    """The methods."""
    comparison: list[ComparisonSection] = Field(default_factory=list[ComparisonSection])
    """The comparisons."""

    @model_validator(mode="after")
    def _named(self) -> SweepSection:
        names = [method.name for method in self.method]
        if len(set(names)) < len(names):
            raise ValueError("two methods share a name")
        for comparison in self.comparison:
            for name in (*comparison.ours, *comparison.baselines):
                if name not in names:
                    raise ValueError(f'the comparison "{comparison.title}" names "{name}", which is no method')
            both = set(comparison.ours) & set(comparison.baselines)
            if both:
                raise ValueError(f'the comparison "{comparison.title}" has "{min(both)}" on both sides')
        return self
