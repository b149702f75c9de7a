"""A table of the numbers on the terminal."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from rich.console import Console
from rich.table import Table

from localsmooth.report.summary import (
    average_radius,
    curve,
    has_target,
    prediction_numbers,
    table_budgets,
    value_at,
)
from localsmooth.results import ACCURACY, RATIO, run_info

__all__ = ["print_summary"]

_TARGET_WORDS = {RATIO: "certified ratio", ACCURACY: "certified accuracy"}


def print_summary(results: Mapping[str, xr.Dataset], console: Console) -> None:
    """Print the certified shares at a few budgets, for every method, target and bound.

    Parameters
    ----------
    results
        Results by the name of their method.
    console
        Where to print.
    """
    first = run_info(next(iter(results.values())))
    budgets = table_budgets(results)
    table = Table(title=f"Certified shares; {first.norm} budgets in units of {first.units}", title_justify="left")
    for heading in ("method", "target", "bound", "ACR"):
        table.add_column(heading)
    for budget in budgets:
        table.add_column(f"ε={budget:.3g}", justify="right")
    for method, dataset in results.items():
        shares = dataset["budget"].values
        for target, words in _TARGET_WORDS.items():
            if not has_target(dataset, target):
                continue
            for bound in run_info(dataset).bound_names:
                values = curve(dataset, target, bound)
                cells = [value_at(shares, values, budget) for budget in budgets]
                radius = average_radius(dataset, target, bound)
                table.add_row(
                    method,
                    words,
                    bound,
                    f"{radius.value:.4f}",
                    *("–" if cell is None else f"{cell:.3f}" for cell in cells),
                )
        table.add_section()
    console.print(table)
    for method, dataset in results.items():
        run, numbers = run_info(dataset), prediction_numbers(dataset)
        known = {
            "accuracy": numbers["accuracy"],
            "mIoU": numbers["miou"],
            "mIoU without abstaining": numbers["candidate_miou"],
            "abstaining": numbers["abstention"],
        }
        shown = ", ".join(f"{word} {value:.3f}" for word, value in known.items() if value is not None)
        console.print(f"{method}: {shown}", highlight=False)
        console.print(
            f"  Each of {dataset.sizes['item']} items holds with probability {1 - run.alpha:g} on its own "
            f"(N₁ = {run.n_candidate}, N₂ = {run.n_bound}).",
            highlight=False,
        )
