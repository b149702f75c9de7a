"""`localsmooth overlap`: certified IoU and Dice from stored tallies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import xarray as xr
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from localsmooth.cli.commands import BoundName
from localsmooth.cli.recertify import asked_settings
from localsmooth.disk import require_writable
from localsmooth.pipeline import certified_overlap
from localsmooth.report import bound_samples, overlap_table
from localsmooth.results import run_info, save_overlaps
from localsmooth.tasks import load_record
from localsmooth.terminal import terminal

__all__ = ["overlap", "print_overlaps"]


def overlap(
    run: Path,
    item: list[str] | None,
    alpha: float | None,
    budgets: str | None,
    additions: str | None,
    deletions: str | None,
    bound: BoundName,
    tolerance: float,
    config: Path | None,
    to: Path | None,
) -> None:
    """Certify the IoU and Dice of every class from the tallies of a finished run, without sampling."""
    record = load_record(run)
    place = require_writable(run / "overlap.nc" if to is None else to)
    settings = asked_settings(
        run, record, config, alpha, {"budgets": budgets, "additions": additions, "deletions": deletions}
    )
    console = terminal()
    found = certified_overlap(
        run, settings, items=item or None, bound=bound.value, tolerance=tolerance, tell=lambda text: console.print(text)
    )
    save_overlaps(found, place)
    print_overlaps({str(found.attrs["method"]): found}, terminal(stderr=False))
    shown = f" Picture: localsmooth report {run}" if to is None else ""
    console.print(f"IoU and Dice: {place}.{shown}")


def print_overlaps(overlaps: Mapping[str, xr.Dataset], console: Console) -> None:
    """Print the certified IoU of every class, and of their mean, at a few budgets.

    Parameters
    ----------
    overlaps
        Certified overlaps by the name of their method.
    console
        Where to print.
    """
    for title, content in overlap_table(overlaps, count=5):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        if title:
            console.print(title)
        for place, heading in enumerate(content.headings):
            table.add_column(escape(heading), justify="left" if place < content.text_columns else "right")
        for row in content.rows:
            table.add_row(*map(escape, row))
        console.print(table, soft_wrap=False)
        console.print(content.note)
    for method, dataset in overlaps.items():
        info = run_info(dataset)
        words = f"Each of {dataset.sizes['item']} items holds with probability {1 - info.alpha:g} on its own"
        if not info.proven:
            words = "These numbers are NOT proven: the rule for many outputs does not hold for all of them at once"
        console.print(f"{method}: {words} (N₁ = {info.n_candidate}, {bound_samples(info)}); under every {info.threat}.")
