"""`localsmooth report`: one page from one or several results."""

from __future__ import annotations

import re
from pathlib import Path

import xarray as xr

from localsmooth.disk import make_folder, require_writable
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline import interruption
from localsmooth.report import (
    curves_figure,
    flip_kinds,
    graph_figure,
    has_target,
    item_figure,
    lettered,
    letters_of,
    overlap_figure,
    save_figure,
    shown_targets,
    write_pdf,
    write_report,
)
from localsmooth.results import load, load_overlaps
from localsmooth.terminal import terminal

__all__ = ["load_results", "report"]

_OVERLAPS = "overlap.nc"
_RESULT = "result.nc"


def load_results(runs: list[Path]) -> dict[str, xr.Dataset]:
    """Load results from run directories or files, named by their methods.

    Raises
    ------
    InvalidInputError
        If a directory holds no result.
    """
    results: dict[str, xr.Dataset] = {}
    for run in runs:
        path = run / _RESULT if run.is_dir() else run
        if not path.is_file():
            raise InvalidInputError("RUN", f"{path} does not exist", "Finish the run first: localsmooth certify")
        result = load(path)
        name = str(result.attrs["method"])
        while name in results:
            name += "'"
        results[name] = result
    return results


def report(runs: list[Path], to: Path | None, pdf: Path | None, figures: Path | None, title: str) -> None:
    """Write a self-contained HTML page, and a PDF file, of one run or several; what `overlap` left there, too."""
    first = runs[0]
    results = load_results(runs)
    target = require_writable(_place(first) if to is None else to)
    paper = None if pdf is None else require_writable(pdf)
    console = terminal()
    beside = {method: run / _OVERLAPS for method, run in zip(results, runs, strict=True)}
    overlaps = {method: load_overlaps(path) for method, path in beside.items() if path.is_file()}
    for run in runs:
        if told := interruption(run if run.is_dir() else run.parent):
            console.print(f"{told}. Shown is what was certified before")
    write_report(results, target, title=title, overlaps=overlaps)
    console.print(f"Report: {target}")
    if paper is not None:
        write_pdf(results, paper, title=title, overlaps=overlaps)
        console.print(f"PDF: {paper}")
    if figures is not None:
        with lettered(letters_of(results.values())):
            _write_figures(results, overlaps, figures)
        console.print(f"Figures: {figures}")


def _place(run: Path) -> Path:
    """Where the page goes: `report.html` for a run's own result, and beside another file under its name."""
    if run.is_dir() or run.name == _RESULT:
        return (run if run.is_dir() else run.parent) / "report.html"
    return run.with_suffix(".html")


def _file_name(target: str) -> str:
    """A target's name where names of files may hold letters, digits and little else."""
    return re.sub(r"[^\w.-]+", "-", target)


def _write_figures(results: dict[str, xr.Dataset], overlaps: dict[str, xr.Dataset], folder: Path) -> None:
    """Curves of each target over all results, of the IoU where it is certified, and a panel of every item of each."""
    make_folder(folder)
    for target in shown_targets(results):
        if all(has_target(result, target) for result in results.values()):
            drawn = curves_figure(results, target)
            for suffix in ("pdf", "png"):
                save_figure(drawn, folder / f"certified-{_file_name(target)}.{suffix}")
    if overlaps:
        drawn = overlap_figure(overlaps)
        for suffix in ("pdf", "png"):
            save_figure(drawn, folder / f"certified-iou.{suffix}")
    for number, result in enumerate(results.values()):
        for item in range(result.sizes["item"]):
            drawn = graph_figure(result) if flip_kinds(result) else item_figure(result, item)
            for suffix in ("pdf", "png"):
                save_figure(drawn, folder / f"result{number}-item{item}.{suffix}")
