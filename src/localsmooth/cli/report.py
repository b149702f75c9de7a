"""`localsmooth report`: one page from one or several results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import xarray as xr
from rich.console import Console

from localsmooth.errors import InvalidInputError
from localsmooth.report import curves_figure, item_figure, save_figure, write_report
from localsmooth.report.summary import has_target
from localsmooth.results import ACCURACY, RATIO, load

__all__ = ["load_results", "report"]


def load_results(runs: list[Path]) -> dict[str, xr.Dataset]:
    """Load results from run directories or files, named by their methods.

    Raises
    ------
    InvalidInputError
        If a directory holds no result.
    """
    results: dict[str, xr.Dataset] = {}
    for run in runs:
        path = run / "result.nc" if run.is_dir() else run
        if not path.is_file():
            raise InvalidInputError("RUN", f"{path} does not exist", "Finish the run first: localsmooth certify")
        result = load(path)
        name = str(result.attrs["method"])
        while name in results:
            name += "'"
        results[name] = result
    return results


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories or result files.", show_default=False)],
    to: Annotated[Path | None, typer.Option("--to", help="Page to write. [default: report.html in the run]")] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="Folder for figures in PDF and PNG.")] = None,
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "Collective robustness certificate",
) -> None:
    """Write a self-contained HTML page that shows one run or compares several."""
    first = runs[0]
    target = (first if first.is_dir() else first.parent) / "report.html" if to is None else to
    results = load_results(runs)
    write_report(results, target, title=title)
    console = Console(stderr=True)
    console.print(f"Report: {target}", highlight=False)
    if figures is not None:
        _write_figures(results, figures)
        console.print(f"Figures: {figures}", highlight=False)


def _write_figures(results: dict[str, xr.Dataset], folder: Path) -> None:
    """Curves of each target over all results, and a panel of every item of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for target in (RATIO, ACCURACY):
        if all(has_target(result, target) for result in results.values()):
            drawn = curves_figure(results, target)
            for suffix in ("pdf", "png"):
                save_figure(drawn, folder / f"certified-{target}.{suffix}")
    for number, result in enumerate(results.values()):
        for item in range(result.sizes["item"]):
            drawn = item_figure(result, item)
            for suffix in ("pdf", "png"):
                save_figure(drawn, folder / f"result{number}-item{item}.{suffix}")
