"""The page of a sweep: fronts, tables of who dominates whom, and every point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from localsmooth.metrics import Domination, OperatingPoint, dominations
from localsmooth.report.pareto import pareto_figure
from localsmooth.report.sections import PageSection, render_sections
from localsmooth.report.tables import Table, percent
from localsmooth.results import SmoothedClassifier

__all__ = ["Sides", "SweepPage", "domination_table", "points_table", "render_sweep", "smoothings_table", "verdict"]


@dataclass(frozen=True)
class Sides:
    """Two sides of a comparison.

    Parameters
    ----------
    title
        Heading.
    ours, baselines
        Points by the name of their method.
    note
        What is equal, and what is not.
    """

    title: str
    ours: Mapping[str, Sequence[OperatingPoint]]
    baselines: Mapping[str, Sequence[OperatingPoint]]
    note: str = ""

    @property
    def methods(self) -> dict[str, Sequence[OperatingPoint]]:
        """Both sides."""
        return {**self.ours, **self.baselines}

    def beaten(self, bound: str) -> list[Domination]:
        """For every point of the baselines, which of ours beats it."""
        return dominations(_flat(self.baselines), _flat(self.ours), bound)

    def lost(self, bound: str) -> list[Domination]:
        """For every point of ours, which of the baselines' beats it."""
        return dominations(_flat(self.ours), _flat(self.baselines), bound)


@dataclass(frozen=True)
class SweepPage:
    """Everything that the page shows.

    Parameters
    ----------
    title
        Heading.
    quality, radius
        What the two numbers of a point are, with units.
    bounds
        Collective bounds, weakest first; tables are by the last one.
    methods
        All points by the name of their method.
    sides
        The comparisons.
    problems
        Method, setting and message of every point that is missing.
    notes
        What the numbers rest on.
    smoothings
        Method and setting of every point that says which smoothed classifier it is about.
    """

    title: str
    quality: str
    radius: str
    bounds: Sequence[str]
    methods: Mapping[str, Sequence[OperatingPoint]]
    sides: Sequence[Sides]
    problems: Sequence[tuple[str, str, str]] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    smoothings: Sequence[tuple[str, str, SmoothedClassifier]] = ()

    def figure(self, methods: Mapping[str, Sequence[OperatingPoint]] | None = None) -> Figure:
        """Fronts of some methods, all by default, with one panel per bound."""
        return pareto_figure(self.methods if methods is None else methods, self.bounds, self.quality, self.radius)


def _flat(methods: Mapping[str, Sequence[OperatingPoint]]) -> list[OperatingPoint]:
    return [point for points in methods.values() for point in points]


def _floor(value: float) -> str:
    return f"{math.floor(value * 1000 + 1e-9) / 1000:.3f}"


def verdict(sides: Sides, bounds: Sequence[str]) -> str:
    """How many points of each side are dominated, by every bound, in one sentence."""
    parts: list[str] = []
    for bound in bounds:
        beaten, lost = sides.beaten(bound), sides.lost(bound)
        parts.append(
            f"by {bound}, {sum(one.winner is not None for one in beaten)} of {len(beaten)} points of "
            f"{', '.join(sides.baselines)} are dominated, and {sum(one.winner is not None for one in lost)} of "
            f"{len(lost)} of {', '.join(sides.ours)}"
        )
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def domination_table(found: Sequence[Domination], bound: str, quality: str) -> Table:
    """What beats each point, and by how much."""
    headings = ["Method", "Setting", "Dominated by", quality, "ACR", f"{quality} gained", "ACR gained"]
    rows: list[list[str]] = []
    for one in found:
        winner = "–" if one.winner is None else f"{one.winner.method}, {one.winner.label}"
        gains = ["–", "–"]
        if one.winner is not None:
            gains = [f"+{one.quality_gain * 100:.1f} %", f"+{_floor(one.radius_gain)}"]
        numbers = [percent(one.loser.quality), _floor(one.loser.radii[bound])]
        rows.append([one.loser.method, one.loser.label, winner, *numbers, *gains])
    note = (
        f"By the {bound} bound. A point is dominated by one that is at least as good in both numbers and better in "
        "one; of several, the one with the largest ACR is named."
    )
    return Table(headings, rows, text_columns=3, note=note)


def points_table(methods: Mapping[str, Sequence[OperatingPoint]], bounds: Sequence[str], quality: str) -> Table:
    """Every point with its costs, its quality and its radius by every bound."""
    headings = ["Method", "Setting", "Samples per output", "Samples per item", quality, *(f"ACR, {b}" for b in bounds)]
    rows = [
        [
            point.method,
            point.label,
            f"{point.samples_per_output:,}".replace(",", "\u202f"),
            f"{point.total_samples:,}".replace(",", "\u202f"),
            percent(point.quality),
            *(_floor(point.radii[bound]) if bound in point.radii else "–" for bound in bounds),
        ]
        for point in _flat(methods)
    ]
    note = (
        "ACR is the lower Riemann sum over the budgets, with the tail beyond the largest budget. A sample of a method "
        "with windows is a call on a part of the item only. All numbers are rounded down."
    )
    return Table(headings, rows, text_columns=2, note=note)


def smoothings_table(smoothings: Sequence[tuple[str, str, SmoothedClassifier]]) -> Table:
    """Which smoothed classifier each point is about."""
    said = [(method, label, smoothing.facts()) for method, label, smoothing in smoothings]
    names = list(said[0][2])
    rows = [[method, label, *(facts[name] for name in names)] for method, label, facts in said]
    return Table(["Method", "Setting", *names], rows, text_columns=2 + len(names))


def render_sweep(page: SweepPage) -> str:
    """Make one HTML page that works offline."""
    sections: list[PageSection] = []
    if page.problems:
        rows = [list(row) for row in page.problems]
        sections.append(PageSection("Points that are missing", tables=[Table(["Method", "Setting", "Why"], rows, 3)]))
    if page.bounds and any(page.methods.values()):
        sections.append(PageSection("All methods", figure=page.figure()))
        strongest = page.bounds[-1]
        for sides in page.sides:
            if any(sides.ours.values()) and any(sides.baselines.values()):
                found = (sides.beaten(strongest), sides.lost(strongest))
                tables = [domination_table(each, strongest, page.quality) for each in found]
                figure = page.figure(sides.methods)
                text = verdict(sides, page.bounds) + "."
                sections.append(PageSection(sides.title, sides.note, figure, text, tables))
    sections.append(PageSection("All points", tables=[points_table(page.methods, page.bounds, page.quality)]))
    if page.smoothings:
        sections.append(PageSection("Which smoothed classifiers", tables=[smoothings_table(page.smoothings)]))
    return render_sections(page.title, page.notes, sections)
