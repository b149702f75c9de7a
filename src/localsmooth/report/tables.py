"""The page's tables, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import xarray as xr

from localsmooth.report.charts import TITLES
from localsmooth.report.summary import (
    TAIL_NOTE,
    acr_text,
    average_radius,
    curve,
    has_target,
    method_label,
    prediction_numbers,
    table_budgets,
    value_at,
)
from localsmooth.results import RunInfo, run_info

__all__ = ["Table", "certificate_table", "configuration_text", "prediction_table", "run_table", "smoothing_table"]

MISSING = "–"


@dataclass(frozen=True)
class Table:
    """Headings and rows; the first `text_columns` columns are words, the others numbers."""

    headings: list[str]
    rows: list[list[str]]
    text_columns: int = 1
    note: str = ""


def percent(share: float | None) -> str:
    """A share as text with one decimal, never rounded up."""
    return MISSING if share is None else f"{int(share * 1000 + 1e-9) / 10:.1f} %"


def prediction_table(results: Mapping[str, xr.Dataset]) -> Table:
    """How well each method predicts."""
    headings = ["Method", "Accuracy", "mIoU", "Abstention rate", "Accuracy of candidates", "mIoU of candidates"]
    keys = ("accuracy", "miou", "abstention", "candidate_accuracy", "candidate_miou")
    rows: list[list[str]] = []
    for method, dataset in results.items():
        numbers = prediction_numbers(dataset)
        rows.append([method, *(percent(numbers[key]) for key in keys)])
    note = (
        "Accuracy and mIoU count an abstention as wrong; the last two columns are those of the most frequent class "
        "before the test that may abstain. mIoU comes from one confusion matrix over the whole data set."
    )
    return Table(headings, rows, note=note)


def certificate_table(results: Mapping[str, xr.Dataset]) -> Table:
    """What each bound of each method certifies: ACR, and the share at a few budgets."""
    budgets = table_budgets(results)
    headings = ["Method", "Target", "Bound", "ACR", *(f"ε = {budget:.4g}" for budget in budgets)]
    rows: list[list[str]] = []
    tails = False
    for method, dataset in results.items():
        for target, title in TITLES.items():
            if not has_target(dataset, target):
                continue
            for bound in dataset["bound"].values.tolist():
                radius = average_radius(dataset, target, bound)
                tails = tails or radius.tail > 0
                acr = acr_text(radius, 4)
                values = curve(dataset, target, bound)
                shares = [percent(value_at(dataset["budget"].values, values, budget)) for budget in budgets]
                rows.append([method_label(method, dataset), title, bound, acr, *shares])
    run = run_info(next(iter(results.values())))
    note = (
        f"ACR: average certifiable radius in the {run.norm} norm, in {run.units}, as the lower sum over the "
        f"budgets, up to the largest one. Shares are means over items. All numbers are rounded down."
    )
    if tails:
        note += f" {TAIL_NOTE}"
    return Table(headings, rows, text_columns=3, note=note)


def run_table(results: Mapping[str, xr.Dataset]) -> Table:
    """How each method was run."""
    facts = {
        "Items": lambda run, dataset: f"{dataset.sizes['item']}",
        "α": lambda run, dataset: f"{run.alpha:g}",
        "N₁ (candidate)": lambda run, dataset: f"{run.n_candidate:,}".replace(",", "\u202f"),
        "N₂ (bound)": lambda run, dataset: f"{run.n_bound:,}".replace(",", "\u202f"),
        "Norm": lambda run, dataset: run.norm,
        "Units": lambda run, dataset: run.units,
        "Time of all samples": lambda run, dataset: f"{run.seconds:,.1f} s".replace(",", "\u202f"),
        "Batch size": lambda run, dataset: f"{run.batch_size}",
        "Device": lambda run, dataset: run.device,
        "Precision": lambda run, dataset: run.precision,
        "Versions": lambda run, dataset: ", ".join(f"{name} {version}" for name, version in run.versions.items()),
    }  # fmt: skip
    runs = [(run_info(dataset), dataset) for dataset in results.values()]
    rows = [[name, *(fact(run, dataset) for run, dataset in runs)] for name, fact in facts.items()]
    note = "The time of all samples is added up over workers and interruptions: it is not the time that passed."
    return Table(["", *results], rows, text_columns=1 + len(runs), note=note)


def smoothing_table(results: Mapping[str, xr.Dataset]) -> Table | None:
    """Which smoothed classifier each result is about; None where no result says so."""
    facts = {method: {} if (s := run_info(d).smoothing) is None else s.facts() for method, d in results.items()}
    names = list(dict.fromkeys(name for said in facts.values() for name in said))
    if not names:
        return None
    rows = [[name, *(said.get(name, "not recorded") for said in facts.values())] for name in names]
    return Table(["", *results], rows, text_columns=1 + len(facts))


def configuration_text(run: RunInfo) -> str:
    """The whole configuration, indented."""
    return json.dumps(run.configuration, indent=2, ensure_ascii=False)
