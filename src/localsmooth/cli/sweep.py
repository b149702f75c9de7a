"""`localsmooth sweep`: many configurations, compared."""

from __future__ import annotations

import io
import os
import sys
import warnings
from pathlib import Path

import typer
import xarray as xr
from rich import box
from rich.console import Console
from rich.table import Table

from localsmooth.cli.certify import run_configuration
from localsmooth.cli.telling import Teller
from localsmooth.config import AnyFile
from localsmooth.report import SweepPage, points_table, verdict
from localsmooth.sweep import (
    Here,
    Job,
    Processes,
    Sweep,
    SweepFolder,
    load_sweep,
    missing_jobs,
    run_sweep,
)
from localsmooth.sweep import write_sweep_report as write_report
from localsmooth.terminal import terminal

__all__ = ["certify_quietly", "sweep"]


def certify_quietly(configuration: AnyFile, out: Path) -> xr.Dataset:
    """Certify one point; several of them share the terminal, so that none may write to it."""
    silent = Teller(Console(file=io.StringIO()))
    with warnings.catch_warnings():
        # Certificates of one run that do not hold together: what the sweep's page says of all of its points.
        warnings.filterwarnings("ignore", "(?s).*held another certificate from the same samples")
        return run_configuration(configuration, out, silent)


def sweep(config: Path, out: Path, jobs: int | None, dry_run: bool) -> None:
    """Certify a grid of configurations and compare methods over all their settings; --jobs 0 runs one at a time."""
    console = terminal()
    # As for `localsmooth certify`: modules are looked for beside the file.
    sys.path.insert(0, str(config.resolve().parent))
    loaded = load_sweep(config)
    folder = SweepFolder(out)
    if dry_run:
        _list_points(loaded, folder, terminal(stderr=False))
        return
    missing = missing_jobs(loaded, folder)
    total = sum(len(job) for job in missing)
    console.print(f"{len(loaded.points)} points, {total} to run.")
    left = [total]

    def done(job: Job, seconds: float) -> None:
        left[0] -= len(job)
        failed = any(not folder.finished(point) for point in job)
        console.print("failed" if failed else "done", style="bold red" if failed else None, end=" ")
        console.print(f"after {seconds:.0f} s, {left[0]} left: {job[0].method}, {job[0].label}")

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    executor = Here() if jobs == 0 else Processes(cores if jobs is None else jobs)
    try:
        run_sweep(loaded, out, certify_quietly, executor, done)
    except KeyboardInterrupt:
        console.print("Interrupted. Finished chunks are kept: the same command goes on where this one stopped.")
        raise
    page = write_report(loaded, out)
    _print_page(page, terminal(stderr=False))
    console.print(f"Report: {out / 'report.html'}")
    if page.problems:
        for method, label, problem in page.problems:
            console.print("Failed:", style="bold red", end=" ")
            console.print(f"{method}, {label}: {problem}")
        console.print("The same command tries them again.")
        raise typer.Exit(1)


def _list_points(loaded: Sweep, folder: SweepFolder, console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("method", "setting", "samples per output", "samples per item", "state"):
        table.add_column(heading, overflow="fold", justify="right" if heading.startswith("samples") else "left")
    for point in loaded.points:
        state = "finished" if folder.finished(point) else "to run"
        table.add_row(point.method, point.label, f"{point.samples_per_output:,}", f"{point.total_samples:,}", state)
    console.print(table, soft_wrap=False)


def _print_page(page: SweepPage, console: Console) -> None:
    content = points_table(page.methods, page.bounds, page.quality)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, heading in enumerate(content.headings):
        table.add_column(heading, overflow="fold", justify="left" if column < content.text_columns else "right")
    for row in content.rows:
        table.add_row(*row)
    console.print(table, soft_wrap=False)
    for sides in page.sides:
        console.print(f"{sides.title}: {verdict(sides, page.bounds)}.")
