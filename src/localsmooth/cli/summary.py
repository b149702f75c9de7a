"""A table of the numbers on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr
from rich import box
from rich.console import Console
from rich.table import Table

from localsmooth.report import (
    TAIL_NOTE,
    acr_text,
    average_radius,
    curve,
    has_target,
    prediction_numbers,
    table_budgets,
    value_at,
)
from localsmooth.results import ACCURACY, RATIO, Saving, has_joint, kind_curve, run_info

__all__ = ["print_result", "print_summary"]

_ITEMS = 10
_BUDGETS = 7
_TARGET_WORDS = {RATIO: "certified ratio", ACCURACY: "certified accuracy"}


def print_result(result: xr.Dataset, console: Console) -> None:
    """Print the summary of one result, and the table over two kinds of budgets where it has them.

    Parameters
    ----------
    result
        The result.
    console
        Where to print.
    """
    print_summary({str(result.attrs["method"]): result}, console)
    if not has_joint(result):
        return
    bound = str(result["bound"].values[-1])
    for target, words in _TARGET_WORDS.items():
        if target in result["target"].values:
            console.print(_joint(result, target, bound, f"{words} ({bound})"), soft_wrap=False)
    if kind_curve(result, "addition").sizes["budget"] > 1:
        console.print("Additions alone are the table's column ε⁻ = 0, deletions alone its row ε⁺ = 0.", highlight=False)


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
    budgets = table_budgets(results, count=5)
    for target, words in _TARGET_WORDS.items():
        shown = {method: dataset for method, dataset in results.items() if has_target(dataset, target)}
        if shown:
            console.print(_table(shown, target, words, budgets), soft_wrap=False)
    if any(average_radius(d, target, b).tail > 0 for d in results.values() for target, b in _curves(d)):
        console.print(TAIL_NOTE)
    console.print(f"ε is an {first.norm} norm in units of {first.units}; under every {first.threat}.")
    for method, dataset in results.items():
        run, numbers = run_info(dataset), prediction_numbers(dataset)
        known = {
            "accuracy": numbers["accuracy"],
            "mIoU": numbers["miou"],
            "mIoU without abstaining": numbers["candidate_miou"],
            "abstaining": numbers["abstention"],
        }
        shown = ", ".join(f"{word} {value:.3f}" for word, value in known.items() if value is not None)
        console.print(f"{method}: {shown}")
        if run.proven:
            words = f"Each of {dataset.sizes['item']} items holds with probability {1 - run.alpha:g} on its own"
        else:
            words = "These numbers are NOT proven: the rule for many outputs does not hold for all of them at once"
        console.print(f"  {words} (N₁ = {run.n_candidate}, N₂ = {run.n_bound}).")
        if run.smoothing is not None:
            console.print(f"  About {run.smoothing.line()}.")
        if run.saving is not None:
            console.print(f"  {_saving(run.saving, dataset)}")


def _curves(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """Target and bound of every curve."""
    targets = [target for target in _TARGET_WORDS if has_target(dataset, target)]
    return [(target, bound) for target in targets for bound in run_info(dataset).bound_names]


def _saving(saving: Saving, dataset: xr.Dataset) -> str:
    """Samples saved by stopping early, in total and for the first few items."""
    total = f"Stopped early: {sum(saving.counted):,} of {sum(saving.planned):,} samples counted"
    items = [f"{name} {share:.0%}" for name, share in zip(dataset["item"].values[:_ITEMS], saving.shares, strict=False)]
    more = ", …" if len(saving.shares) > _ITEMS else ""
    return f"{total}, {saving.total:.0%} saved ({', '.join(items)}{more})."


def _table(results: Mapping[str, xr.Dataset], target: str, words: str, budgets: Sequence[float]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(words)
    table.add_column("bound")
    table.add_column("ACR", justify="right")
    for budget in budgets:
        table.add_column(f"ε={budget:.3g}", justify="right")
    for method, dataset in results.items():
        for bound in run_info(dataset).bound_names:
            values = curve(dataset, target, bound)
            cells = [value_at(dataset["budget"].values, values, budget) for budget in budgets]
            radius = average_radius(dataset, target, bound)
            shares = ("–" if cell is None else f"{cell:.3f}" for cell in cells)
            table.add_row(method, bound, acr_text(radius, 3), *shares)
    return table


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
    if len(budgets) <= _BUDGETS:
        return budgets
    places = sorted({round(index * (len(budgets) - 1) / (_BUDGETS - 1)) for index in range(_BUDGETS)})
    return [budgets[place] for place in places]
