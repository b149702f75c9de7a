"""Files that show a sweep: a page, figures and a table of numbers."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from localsmooth.metrics import OperatingPoint
from localsmooth.report import save_figure
from localsmooth.report.sweep import Sides, SweepPage, render_sweep
from localsmooth.results import load, run_info
from localsmooth.sweep.expand import Sweep
from localsmooth.sweep.outcome import Outcome, SweepFolder, read_outcomes
from localsmooth.sweep.section import ComparisonSection

__all__ = ["sweep_page", "write_sweep_report"]

_QUALITIES = {"miou": "mIoU", "accuracy": "accuracy"}


def sweep_page(sweep: Sweep, outcomes: Sequence[Outcome], folder: SweepFolder) -> SweepPage:
    """Everything that the page of a sweep shows."""
    methods: dict[str, list[OperatingPoint]] = {method.name: [] for method in sweep.section.method}
    bounds: list[str] = []
    for outcome in outcomes:
        if outcome.numbers is not None:
            methods[outcome.point.method].append(outcome.numbers)
            bounds += [bound for bound in outcome.numbers.radii if bound not in bounds]
    finished = [outcome for outcome in outcomes if outcome.numbers is not None]
    radius, notes = f"ACR of the certified {sweep.section.target}", list[str]()
    if finished:
        dataset = load(folder.result(finished[0].point))
        run = run_info(dataset)
        radius += f"\n({run.norm}, {run.units})"
        notes.append(
            f"{dataset.sizes['item']} items at the first point; each item's counts hold with probability "
            f"{1 - run.alpha:g} on its own. Means over items, and comparisons of them, carry no joint guarantee."
        )
    tails = [outcome for outcome in finished if outcome.numbers and outcome.tail > 0.01 * _largest(outcome.numbers)]
    if tails:
        notes.append(
            f"At {len(tails)} points more than 1 % of the radius lies beyond the largest budget, where nothing was "
            "computed: larger budgets would show more."
        )
    # Bounds that not every point has cannot be compared.
    common = [b for b in bounds if all(o.numbers and b in o.numbers.radii for o in finished)]
    return SweepPage(
        title=sweep.section.title,
        quality=_QUALITIES[sweep.section.quality],
        radius=radius,
        bounds=common,
        methods=methods,
        sides=[_sides(comparison, methods) for comparison in sweep.section.comparison],
        problems=[(o.point.method, o.point.label, o.problem) for o in outcomes if o.numbers is None],
        notes=notes,
    )


def _largest(numbers: OperatingPoint) -> float:
    return max(numbers.radii.values(), default=0.0)


def _sides(comparison: ComparisonSection, methods: dict[str, list[OperatingPoint]]) -> Sides:
    note = "Numbers of samples differ." if comparison.equal is None else f"Equal {comparison.equal}."
    return Sides(
        comparison.title,
        {name: methods[name] for name in comparison.ours},
        {name: methods[name] for name in comparison.baselines},
        note,
    )


def write_sweep_report(sweep: Sweep, out: Path) -> SweepPage:
    """Write `report.html`, `points.csv` and `figures/` into a sweep's directory, from what is finished.

    Parameters
    ----------
    sweep
        The sweep.
    out
        Its directory.
    """
    folder = SweepFolder(out)
    page = sweep_page(sweep, read_outcomes(sweep, folder), folder)
    (out / "report.html").write_text(render_sweep(page), encoding="utf-8")
    with (out / "points.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(
            ["method", "setting", "samples_per_output", "samples_per_item", sweep.section.quality]
            + [f"acr_{bound}" for bound in page.bounds]
        )
        for points in page.methods.values():
            for point in points:
                numbers = [point.quality, *(point.radii[bound] for bound in page.bounds)]
                writer.writerow(
                    [point.method, point.label, point.samples_per_output, point.total_samples]
                    + [f"{value:.6f}" for value in numbers]
                )
    figures = out / "figures"
    figures.mkdir(exist_ok=True)
    shown = {"all": page.methods} | {f"comparison-{n}": sides.methods for n, sides in enumerate(page.sides, start=1)}
    for name, methods in shown.items():
        if page.bounds and any(methods.values()):
            for suffix in ("svg", "pdf"):
                save_figure(page.figure(methods), figures / f"{name}.{suffix}")
    return page
