"""The page's tables, as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, cast

import xarray as xr

from localsmooth.metrics import Kept, class_iou, clean_agreement, confusion_matrix
from localsmooth.report.summary import (
    TAIL_NOTE,
    acr_text,
    average_radius,
    curve,
    has_target,
    method_label,
    prediction_numbers,
    shown_targets,
    table_budgets,
    value_at,
)
from localsmooth.report.work import work_text
from localsmooth.results import NO_LABEL, RunInfo, budget_measure, budget_units, run_info, target_title

__all__ = [
    "Table",
    "certificate_table",
    "class_table",
    "configuration_text",
    "lost_classes",
    "prediction_table",
    "run_table",
    "smoothing_table",
]

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


def class_table(results: Mapping[str, xr.Dataset]) -> Table | None:
    """IoU of each class, and how much of its clean predictions is left; None if neither is known."""
    rows: list[list[str]] = []
    for method, dataset in results.items():
        names = run_info(dataset).class_names
        prediction, label = dataset["prediction"].values, dataset["label"].values
        labelled = ~dataset["ignored"].values & (label != NO_LABEL)
        ious = class_iou(confusion_matrix(prediction, label, labelled, len(names))).tolist()
        agreement = clean_agreement(dataset)
        left = {} if agreement is None else {one.name: one for one in agreement.classes}
        for name, iou in zip(names, ious, strict=True):
            known = None if math.isnan(iou) else iou
            if known is not None or name in left:
                rows.append([method, name, percent(known), *_kept(left.get(name))])
        if agreement is not None:
            rows.append([method, "all", percent(prediction_numbers(dataset)["miou"]), *_kept(agreement.overall)])
    if not rows:
        return None
    note = (
        "Clean outputs: how many outputs the model predicts as the class without noise. Candidates keep: the share of "
        "these that the smoothed model predicts so too. Certified keep: the share that does so and does not abstain."
    )
    headings = ["Method", "Class", "IoU", "Clean outputs", "Candidates keep", "Certified keep"]
    return Table(headings, rows, text_columns=2, note=note)


def _kept(one: Kept | None) -> list[str]:
    if one is None:
        return [MISSING] * 3
    return [f"{one.clean:,}".replace(",", "\u202f"), percent(one.candidate_share), percent(one.certified_share)]


def lost_classes(results: Mapping[str, xr.Dataset]) -> dict[str, tuple[str, ...]]:
    """A sentence for each class that smoothing loses, by method."""
    found = {method: clean_agreement(dataset) for method, dataset in results.items()}
    return {method: one.warnings for method, one in found.items() if one is not None and one.warnings}


def certificate_table(results: Mapping[str, xr.Dataset]) -> Table:
    """What each bound of each method certifies: ACR, and the share at a few budgets."""
    budgets = table_budgets(results)
    headings = ["Method", "Target", "Bound", "ACR", *(f"ε = {budget:.4g}" for budget in budgets)]
    rows: list[list[str]] = []
    tails = False
    for method, dataset in results.items():
        for target in (target for target in shown_targets(results) if has_target(dataset, target)):
            for bound in dataset["bound"].values.tolist():
                radius = average_radius(dataset, target, bound)
                tails = tails or radius.tail > 0
                acr = acr_text(radius, 4)
                values = curve(dataset, target, bound)
                shares = [percent(value_at(dataset["budget"].values, values, budget)) for budget in budgets]
                rows.append([method_label(method, dataset), target_title(target), bound, acr, *shares])
    run = run_info(next(iter(results.values())))
    note = (
        f"ACR: average certifiable radius ({budget_units(run)}), as the lower sum over the "
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
        "N₂ (bound)": lambda run, dataset: "≤ " * (run.saving is not None) + f"{run.n_bound:,}".replace(",", "\u202f"),
        "Passes over an item": lambda run, dataset: work_text(run) or MISSING,
        "Budgets": lambda run, dataset: budget_measure(run) or "numbers",
        "Units": lambda run, dataset: run.units,
        "Time of all samples": lambda run, dataset: f"{run.seconds:,.1f} s".replace(",", "\u202f"),
        "Batch size": lambda run, dataset: f"{run.batch_size}",
        "Device": lambda run, dataset: run.device,
        "Precision": lambda run, dataset: run.precision,
        "Versions": lambda run, dataset: ", ".join(f"{name} {version}" for name, version in run.versions.items()),
    }  # fmt: skip
    runs = [(run_info(dataset), dataset) for dataset in results.values()]
    rows = [[name, *(fact(run, dataset) for run, dataset in runs)] for name, fact in facts.items()]
    note = (
        "Passes over an item: those of both stages and of all output groups; a pass over a window counts as its share "
        "of the item. The time of all samples is added up over workers and interruptions: it is not the time that "
        "passed."
    )
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
    """The whole configuration, indented; of paths on the machine of the run the last part."""
    return json.dumps(_without_places(run.configuration), indent=2, ensure_ascii=False)


def _without_places(value: Any) -> Any:
    """Shorten absolute paths, which say nothing elsewhere, and may say who ran it."""
    if isinstance(value, Mapping):
        return {key: _without_places(each) for key, each in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_without_places(each) for each in cast("Sequence[Any]", value)]
    if isinstance(value, str) and any(path.is_absolute() for path in (PurePosixPath(value), PureWindowsPath(value))):
        return f"…/{PureWindowsPath(value).name}"
    return value
