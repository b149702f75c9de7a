"""Files that show a sweep: a page, figures and a table of numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localsmooth.config import GraphConfiguration
from localsmooth.disk import expanded, make_folder, write_atomically
from localsmooth.metrics import OperatingPoint
from localsmooth.report import Sides, SweepPage, alike, inline_title, render_sweep, save_figure
from localsmooth.results import budget_units
from localsmooth.sweep.expansion import Sweep
from localsmooth.sweep.outcome import Outcome, SweepFolder, read_outcomes
from localsmooth.sweep.point import SweepPoint
from localsmooth.sweep.section import ComparisonSection

__all__ = ["sweep_page", "write_sweep_report"]

_QUALITIES = {"miou": "mIoU", "accuracy": "accuracy"}
_OWN = "own bound"


def sweep_page(sweep: Sweep, outcomes: Sequence[Outcome]) -> SweepPage:
    """Everything that the page of a sweep shows."""
    finished = [outcome for outcome in outcomes if outcome.numbers is not None]
    bounds = _bounds([outcome.point for outcome in finished])
    methods: dict[str, list[OperatingPoint]] = {method.name: [] for method in sweep.section.method}
    for outcome in finished:
        if outcome.numbers is not None:
            methods[outcome.point.method].append(_under(bounds, outcome.point, outcome.numbers))
    radius, notes = f"ACR, {inline_title(sweep.section.target)}", list[str]()
    if finished and finished[0].run is not None:
        first, run = finished[0], finished[0].run
        kind = f"{sweep.flips}, " if sweep.on_graph else ""
        radius += f"\n({kind}{budget_units(run)})"
        notes.append(
            f"{_items(first.items)} at the first point; the counts of one item at one point hold with probability "
            f"{1 - run.alpha:g} on their own. Means over items, and comparisons of points, carry no joint guarantee."
        )
    own = sorted({outcome.point.method for outcome in finished if outcome.point.bounds is None})
    if own and bounds != [_OWN]:
        notes.append(f"The bound of {', '.join(own)} is its own; its radius stands under every collective bound.")
    notes += [f"The points differ in {fact}: mind that when comparing them." for fact in _differences(finished)]
    tails = [outcome for outcome in finished if outcome.numbers and outcome.tail > 0.01 * _largest(outcome.numbers)]
    if tails:
        notes.append(
            f"At {len(tails)} points more than 1 % of the radius lies beyond the largest budget, where nothing was "
            "computed: larger budgets may show more."
        )
    return SweepPage(
        title=sweep.section.title,
        quality=_QUALITIES[sweep.quality],
        radius=radius,
        bounds=bounds,
        methods=methods,
        sides=[_sides(comparison, methods, finished) for comparison in sweep.section.comparison],
        problems=[(o.point.method, o.point.label, o.problem) for o in outcomes if o.numbers is None],
        notes=notes,
        smoothings=[
            (one.point.method, one.point.label, one.run.smoothing)
            for one in finished
            if one.run is not None and one.run.smoothing is not None
        ],
    )


def _bounds(points: Sequence[SweepPoint]) -> list[str]:
    """Collective bounds that all points share; where all are baselines, one name for each one's own bound."""
    named = [point.bounds for point in points if point.bounds is not None]
    if not named:
        return [_OWN] if points else []
    return [bound for bound in named[0] if all(bound in bounds for bounds in named)]


def _under(bounds: Sequence[str], point: SweepPoint, numbers: OperatingPoint) -> OperatingPoint:
    """The point with radii under these names: a baseline's own radius is what it has under each of them."""
    if point.bounds is not None:
        return replace(numbers, radii={bound: numbers.radii[bound] for bound in bounds})
    return replace(numbers, radii=dict.fromkeys(bounds, max(numbers.radii.values())))


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"


def _differences(finished: Sequence[Outcome]) -> list[str]:
    """What all points should have in common and do not."""
    facts: dict[str, set[str]] = {"alpha": set(), "budgets": set(), "items": set()}
    for outcome in finished:
        configuration = outcome.point.configuration
        facts["alpha"].add(str(configuration.certificate.alpha))
        if isinstance(configuration, GraphConfiguration):
            flips = (configuration.certificate.additions, configuration.certificate.deletions)
            budgets: object = [each if isinstance(each, str) else sorted({0, *each}) for each in flips]
        else:
            budgets = configuration.certificate.budget_values()
        facts["budgets"].add(str(budgets))
        facts["items"].add(str(configuration.items))
    return [fact for fact, values in facts.items() if len(values) > 1]


def _largest(numbers: OperatingPoint) -> float:
    return max(numbers.radii.values(), default=0.0)


def _sides(
    comparison: ComparisonSection, methods: dict[str, list[OperatingPoint]], finished: Sequence[Outcome]
) -> Sides:
    note = "Numbers of samples differ." if comparison.equal is None else f"Equal {comparison.equal}."
    if comparison.equal == "work":
        compared = (*comparison.ours, *comparison.baselines)
        runs = [one.run for one in finished if one.point.method in compared and one.run is not None]
        note = _work_note([run.work for run in runs if run.work is not None])
    return Sides(
        comparison.title,
        {name: methods[name] for name in comparison.ours},
        {name: methods[name] for name in comparison.baselines},
        note,
    )


def _work_note(works: Sequence[float]) -> str:
    if not works:
        return "It is not known how much work the methods did."
    low, high = min(works), max(works)
    said = f"{low:,.0f}" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f}"
    return f"{'Equal' if alike(works) else 'NOT equal'} work: {said} passes over an item."


def write_sweep_report(sweep: Sweep, out: Path) -> SweepPage:
    """Write `report.html`, `points.csv` and `figures/` into a sweep's directory, from what is finished.

    Parameters
    ----------
    sweep
        The sweep.
    out
        Its directory.
    """
    page = sweep_page(sweep, read_outcomes(sweep, SweepFolder(out)))
    out = expanded(out)
    write_atomically(out / "report.html", render_sweep(page).encode("utf-8", errors="replace"))
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(
        ["method", "setting", "samples_per_output", "samples_per_item", sweep.quality]
        + [f"acr_{bound}".replace(" ", "_") for bound in page.bounds]
    )
    for points in page.methods.values():
        for point in points:
            numbers = [point.quality, *(point.radii[bound] for bound in page.bounds)]
            writer.writerow(
                [point.method, point.label, point.samples_per_output, point.total_samples]
                + [f"{value:.6f}" for value in numbers]
            )
    write_atomically(out / "points.csv", stream.getvalue().encode("utf-8", errors="replace"))
    figures = out / "figures"
    make_folder(figures)
    shown = {"all": page.methods} | {f"comparison-{n}": sides.methods for n, sides in enumerate(page.sides, start=1)}
    for name, methods in shown.items():
        if page.bounds and any(methods.values()):
            for suffix in ("svg", "pdf"):
                save_figure(page.figure(methods), figures / f"{name}.{suffix}")
    return page
