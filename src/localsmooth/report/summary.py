"""The numbers that page and figures show, asked from `metrics` and from the data set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from jaxtyping import Float

from localsmooth.metrics import (
    AverageRadius,
    abstention_rate,
    accuracy,
    average_certifiable_radius,
    confusion_matrix,
    mean_curve,
    mean_iou,
)
from localsmooth.results import NO_LABEL, RATIO, run_info

__all__ = [
    "average_radius",
    "best_curve",
    "curve",
    "has_target",
    "headline_budget",
    "method_label",
    "prediction_numbers",
    "table_budgets",
    "value_at",
]


def has_target(dataset: xr.Dataset, target: str) -> bool:
    """Whether the data set holds certificates for the target."""
    return target in dataset["target"].values.tolist()


def method_label(method: str, dataset: xr.Dataset) -> str:
    """Name of a method in legends and tables, with a warning where its counts are not proven."""
    return method if run_info(dataset).proven else f"{method} (NOT proven)"


def curve(dataset: xr.Dataset, target: str, bound: str) -> Float[np.ndarray, "budgets"]:
    """ξ(ε) of one bound: the mean over items of the certified share."""
    certified = dataset["certified"].sel(target=target, bound=bound).values
    return mean_curve(certified, dataset["total"].sel(target=target).values)


def best_curve(dataset: xr.Dataset, target: str) -> Float[np.ndarray, "budgets"]:
    """ξ(ε) of the strongest bound of each item at each budget; all bounds rest on the same samples, so it holds too."""
    certified = dataset["certified"].sel(target=target).max("bound").values
    return mean_curve(certified, dataset["total"].sel(target=target).values)


def average_radius(dataset: xr.Dataset, target: str, bound: str) -> AverageRadius:
    """ACR of one bound."""
    return average_certifiable_radius(dataset["budget"].values, curve(dataset, target, bound))


def value_at(
    budgets: Float[np.ndarray, "budgets"], values: Float[np.ndarray, "budgets"], budget: float
) -> float | None:
    """What a curve proves at a budget that need not be in its list: its value at the next larger one, or None."""
    place = int(np.searchsorted(budgets, budget * (1 - 1e-12), side="left"))
    return float(values[place]) if place < len(budgets) else None


def headline_budget(dataset: xr.Dataset) -> float:
    """Largest budget at which half of the outputs are certified; where there is none, the smallest positive budget."""
    budgets = dataset["budget"].values
    if has_target(dataset, RATIO):
        enough = np.flatnonzero((best_curve(dataset, RATIO) >= 0.5) & (budgets > 0))
        if enough.size:
            return float(budgets[enough[-1]])
    positive = budgets[budgets > 0]
    return float(positive[0] if positive.size else budgets[0])


def table_budgets(results: Mapping[str, xr.Dataset], count: int = 6) -> list[float]:
    """A few budgets of the first data set, from the smallest to the last at which anything is certified."""
    dataset = next(iter(results.values()))
    budgets = dataset["budget"].values
    alive = np.flatnonzero((dataset["certified"] > 0).any(("item", "target", "bound")).values)
    last = int(alive[-1]) if alive.size else len(budgets) - 1
    places = np.unique(np.linspace(0, last, count).round().astype(int))
    return budgets[places].tolist()


def prediction_numbers(dataset: xr.Dataset) -> dict[str, float | None]:
    """Accuracy and mIoU with abstentions wrong, both of the candidates, and the abstention rate.

    Where labels are missing, what needs them is None.
    """
    counted = ~dataset["ignored"].values
    prediction, label = dataset["prediction"].values, dataset["label"].values
    labelled = counted & (label != NO_LABEL)
    numbers: dict[str, float | None] = dict.fromkeys(
        ("accuracy", "miou", "abstention", "candidate_accuracy", "candidate_miou")
    )
    if counted.any():
        numbers["abstention"] = abstention_rate(prediction, counted)
    if labelled.any():
        classes = len(run_info(dataset).class_names)
        candidate = dataset["candidate"].values
        numbers["accuracy"] = accuracy(prediction, label, labelled)
        numbers["miou"] = mean_iou(confusion_matrix(prediction, label, labelled, classes))
        numbers["candidate_accuracy"] = accuracy(candidate, label, labelled)
        numbers["candidate_miou"] = mean_iou(confusion_matrix(candidate, label, labelled, classes))
    return numbers
