"""Runs on graphs, as the commands show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr
from rich import box
from rich.console import Console
from rich.table import Table

from localsmooth.cli.summary import print_summary
from localsmooth.collective import as_bounds
from localsmooth.config import GraphCertificateSection, load_graph_certificate
from localsmooth.errors import InvalidInputError
from localsmooth.results import kind_curve
from localsmooth.tasks import RunRecord
from localsmooth.tasks.graphs import GraphSettings, GraphTask

__all__ = ["graph_settings", "print_graph_summary"]

_SHOWN = 7


def graph_settings(
    record: RunRecord,
    *,
    alpha: float | None,
    additions: Sequence[float] | None,
    deletions: Sequence[float] | None,
    bounds: Sequence[str] | None,
    config: Path | None,
) -> GraphSettings:
    """What a graph's run was certified with, but for what is given."""
    settings = _settings(record, config)
    changes: dict[str, Any] = {}
    if alpha is not None:
        changes["alpha"] = alpha
    for name, budgets in (("additions", additions), ("deletions", deletions)):
        if budgets is not None:
            if not all(float(budget).is_integer() for budget in budgets):
                raise InvalidInputError(f"--{name}", "a budget is no whole number", "Write numbers of flips: 0,1,2")
            changes[name] = [int(budget) for budget in budgets]
    if bounds is not None:
        if settings.baseline is not None:
            raise InvalidInputError("--bound", f"{settings.baseline.name} has a bound of its own", "Leave --bound out")
        changes["bounds"] = as_bounds(bounds, "--bound")
    return replace(settings, **changes)


def _settings(record: RunRecord, config: Path | None) -> GraphSettings:
    if config is not None:
        return load_graph_certificate(config).build()
    stored = record.configuration.get("certificate")
    if stored is not None:
        return GraphCertificateSection.model_validate(stored).build()
    # A run made in Python: what its certificates were made of is not known, what they were about is.
    return GraphTask.settings(record)


def print_graph_summary(result: xr.Dataset, console: Console) -> None:
    """Print the curves for one kind of flip, and the table over both."""
    method = str(result.attrs["method"])
    print_summary({method: result}, console)
    bound = str(result["bound"].values[-1])
    for target, words in (("ratio", "certified ratio"), ("accuracy", "certified accuracy")):
        if target in result["target"].values:
            console.print(_joint(result, target, bound, f"{words} ({bound})"), soft_wrap=False)
    additions = kind_curve(result, "addition")
    if additions.sizes["budget"] > 1:
        console.print("Additions alone are the table's column ε⁻ = 0, deletions alone its row ε⁺ = 0.", highlight=False)


def _joint(result: xr.Dataset, target: str, bound: str, title: str) -> Table:
    certified = result["joint_certified"].isel(item=0).sel(target=target, bound=bound)
    total = int(result["total"].isel(item=0).sel(target=target))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title)
    deletions = _some(result["deletion"].values.tolist())
    for budget in deletions:
        table.add_column(f"ε⁻={budget}", justify="right")
    for addition in _some(result["addition"].values.tolist()):
        shares = (float(certified.sel(addition=addition, deletion=budget)) / max(total, 1) for budget in deletions)
        table.add_row(f"ε⁺={addition}", *(f"{share:.3f}" for share in shares))
    return table


def _some(budgets: list[int]) -> list[int]:
    """At most a few of the budgets, the first and the last among them."""
    if len(budgets) <= _SHOWN:
        return budgets
    places = sorted({round(index * (len(budgets) - 1) / (_SHOWN - 1)) for index in range(_SHOWN)})
    return [budgets[place] for place in places]
