"""Certified IoU and Dice on the page and on the terminal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from jaxtyping import Float

from localsmooth.errors import InvalidInputError
from localsmooth.report.charts import Chart, Series, band, drawn_chart, staircase
from localsmooth.report.palette import method_color
from localsmooth.report.promise import promise
from localsmooth.report.summary import budget_label, method_label, value_at
from localsmooth.report.tables import Table, percent
from localsmooth.results import RunInfo, budget_kinds, run_info, symbol

__all__ = [
    "OverlapPanel",
    "overlap_curves",
    "overlap_mean",
    "overlap_panel",
    "overlap_reach",
    "overlap_table",
    "overlaps_of",
]

_NOTE = (
    "Means over the items that have the class among their labels, rounded down. Whatever one perturbation within the "
    "budget does, an item’s IoU with the labels is at least what is certified; outputs that abstain are given to the "
    "adversary, at ε = 0 too. Measured: the IoU of the candidates without a perturbation. Attack leaves: these bounds "
    "cannot prove more than that of the mean."
)


@dataclass(frozen=True)
class OverlapPanel:
    """What the page shows of IoU and Dice: promises with the methods that make them, diagrams, tables by title."""

    promises: dict[str, list[str]]
    charts: list[Chart]
    tables: list[tuple[str, Table]]


def overlap_panel(overlaps: Mapping[str, xr.Dataset], colors: Mapping[str, str]) -> OverlapPanel:
    """Make the panel of certified overlaps.

    Parameters
    ----------
    overlaps
        By the name of their method; at least one.
    colors
        Of the methods.
    """
    promises: dict[str, list[str]] = {}
    for method, dataset in overlaps.items():
        promises.setdefault(promise(run_info(dataset)), []).append(method)
    return OverlapPanel(promises, _charts(overlaps, colors), overlap_table(overlaps))


def overlap_curves(dataset: xr.Dataset) -> dict[str, xr.Dataset]:
    """Overlaps over each kind of budget that has any above 0, the others being 0, as dimension `budget`."""
    kinds = budget_kinds(dataset)
    used = [kind for kind in reversed(kinds) if dataset.sizes[kind] > 1] or list(kinds[:1])
    alone = {kind: dataset.isel({other: 0 for other in kinds if other != kind}, drop=True) for kind in used}
    return {kind: one if kind == "budget" else one.rename({kind: "budget"}) for kind, one in alone.items()}


def overlap_mean(values: xr.DataArray) -> Float[np.ndarray, "*shape"]:
    """Mean over the items that have a value."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice")
        return values.mean("item", skipna=True).values


def _charts(overlaps: Mapping[str, xr.Dataset], colors: Mapping[str, str]) -> list[Chart]:
    """Diagrams of the mean IoU: proven, left by the best attack, and as measured without a perturbation."""
    first = run_info(next(iter(overlaps.values())))
    made: list[Chart] = []
    by_method = {method: overlap_curves(dataset) for method, dataset in overlaps.items()}
    for kind in next(iter(by_method.values())):
        alone = {
            method: overlap_curves(dataset)[kind]
            for method, dataset in overlaps.items()
            if kind in overlap_curves(dataset)
        }
        limit = max(overlap_reach(dataset) for dataset in alone.values())
        series: list[Series] = []
        for method, dataset in alone.items():
            name, budgets = method_label(method, dataset), dataset["budget"].values
            measured = np.full(budgets.size, float(overlap_mean(dataset["candidate_iou"].mean("class", skipna=True))))
            low, high = (np.nan_to_num(overlap_mean(dataset[each])) for each in ("mean_iou", "mean_iou_upper"))
            for words, dash, values, area in (
                ("certified", "", low, band(budgets, low, high, limit)),
                ("attack leaves", "9 4", high, ""),
                ("unperturbed", "2 4", measured, ""),
            ):
                shown, path = [round(float(value), 6) for value in values], staircase(budgets, values, limit)
                series.append(Series(f"{name} · {words}", colors[method], dash, budgets.tolist(), shown, path, area))
        words = "" if kind == "budget" else f", {kind} only"
        label = budget_label(first, kind)
        made.append(drawn_chart("overlap", f"Certified mean IoU{words}", label, series, limit))
    return made


def _cells(wanted: Sequence[float], budgets: np.ndarray, values: np.ndarray) -> list[str]:
    return [_percent(value_at(budgets, values, budget)) for budget in wanted]


def _percent(share: float | None) -> str:
    return percent(None if share is None or math.isnan(share) else share)


def _some_budgets(dataset: xr.Dataset, count: int) -> list[float]:
    """A few budgets, from the smallest to the last at which anything is certified."""
    alive = np.flatnonzero((dataset["iou"] > 0).any(("item", "class")).values)
    last = int(alive[-1]) if alive.size else dataset.sizes["budget"] - 1
    return dataset["budget"].values[np.unique(np.linspace(0, last, count).round().astype(int))].tolist()


def overlap_reach(dataset: xr.Dataset) -> float:
    """End of the budget axis: a little beyond the last budget at which attacks leave anything."""
    budgets = dataset["budget"].values
    alive = budgets[(dataset["mean_iou_upper"] > 0).any("item").values]
    return min(float(budgets[-1]), 1.1 * float(alive.max(initial=0.0)) or float(budgets[-1])) or 1.0


def overlap_table(overlaps: Mapping[str, xr.Dataset], count: int = 7) -> list[tuple[str, Table]]:
    """The IoU of each class and the means at a few budgets, for each kind of budget with its name.

    Parameters
    ----------
    overlaps
        By the name of their method.
    count
        Number of budgets.
    """
    made: list[tuple[str, Table]] = []
    by_method = {method: overlap_curves(dataset) for method, dataset in overlaps.items()}
    for kind in dict.fromkeys(kind for curves in by_method.values() for kind in curves):
        alone = {
            method: overlap_curves(dataset)[kind]
            for method, dataset in overlaps.items()
            if kind in overlap_curves(dataset)
        }
        budgets = _some_budgets(next(iter(alone.values())), count)
        headings = [
            "Method",
            "Class",
            "Certified",
            "Measured",
            *(f"{symbol(kind)} = {budget:.4g}" for budget in budgets),
        ]
        rows: list[list[str]] = []
        for method, dataset in alone.items():
            name, where = method_label(method, dataset), dataset["budget"].values
            measured = overlap_mean(dataset["candidate_iou"])
            cells = partial(_cells, budgets, where)

            for number, called in enumerate(dataset["class"].values.tolist()):
                proven = overlap_mean(dataset["iou"].isel({"class": number}))
                if not np.isnan(proven).all():
                    rows.append([name, called, "IoU", _percent(float(measured[number])), *cells(proven)])
            over = _percent(float(overlap_mean(dataset["candidate_iou"].mean("class", skipna=True))))
            rows.append([name, "mean", "IoU", over, *cells(overlap_mean(dataset["mean_iou"]))])
            rows.append([name, "mean", "IoU, attack leaves", over, *cells(overlap_mean(dataset["mean_iou_upper"]))])
            rows.append([name, "mean", "Dice", "–", *cells(overlap_mean(dataset["mean_dice"]))])
        made.append(("" if kind == "budget" else f"{kind.capitalize()} only", Table(headings, rows, 3, _NOTE)))
    return made


def overlaps_of(overlaps: Mapping[str, xr.Dataset], runs: Mapping[str, RunInfo]) -> OverlapPanel | None:
    """The panel of overlaps, if there are any.

    Raises
    ------
    InvalidInputError
        If overlaps are of other samples than the result of their method, or have other kinds of budget.
    """
    for method, dataset in overlaps.items():
        found, run = run_info(dataset), runs.get(method)
        said = ("smoothing", "n_candidate", "n_bound", "class_names", "norm", "units")
        if run is None or any(getattr(found, name) != getattr(run, name) for name in said):
            raise InvalidInputError(
                "overlaps",
                f"those of {method} are of other samples than its result",
                "Run localsmooth overlap again, or leave them out",
            )
        if found.budgets.keys() != run.budgets.keys():
            raise InvalidInputError("overlaps", f"those of {method} have other kinds of budget", "Certify them again")
    colors = {method: method_color(index) for index, method in enumerate(runs)}
    return overlap_panel(overlaps, colors) if overlaps else None
