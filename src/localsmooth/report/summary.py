"""The numbers that page and figures show, asked from `metrics` and from the data set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
from localsmooth.results import (
    ACCURACY,
    AGREEMENT,
    NO_LABEL,
    RATIO,
    RunInfo,
    budget_kinds,
    budget_units,
    kind_curve,
    run_info,
    symbol,
    target_promise,
    target_title,
)

__all__ = [
    "TAIL_NOTE",
    "acr_text",
    "average_radius",
    "best_curve",
    "budget_label",
    "counted_words",
    "curve",
    "curves_by_kind",
    "has_target",
    "headline_budget",
    "headline_rule",
    "headline_target",
    "inline_title",
    "method_label",
    "prediction_numbers",
    "shown_targets",
    "table_budgets",
    "value_at",
]


def budget_label(run: RunInfo, kind: str) -> str:
    """What stands at the axis of a kind of budget: its symbol, what it measures, its units."""
    return f"budget {symbol(kind)}  ({budget_units(run)})"


def has_target(dataset: xr.Dataset, target: str) -> bool:
    """Whether the data set holds certificates for the target."""
    return target in dataset["target"].values.tolist()


def shown_targets(results: Mapping[str, xr.Dataset]) -> list[str]:
    """Targets of the results, in their order."""
    return list(dict.fromkeys(target for dataset in results.values() for target in dataset["target"].values.tolist()))


def headline_target(*datasets: xr.Dataset) -> str:
    """Target of the headline: what is correct, or without labels as the clean model has it, before what merely stays.

    The ratio, which predictions of a background everywhere would push to 1, comes last.
    """
    every = shown_targets({str(place): dataset for place, dataset in enumerate(datasets)})
    shared = [target for target in every if all(has_target(dataset, target) for dataset in datasets)] or every
    wanted = [target for target in (ACCURACY, AGREEMENT) if target in shared]
    return (wanted + [target for target in shared if target != RATIO] + [RATIO])[0]


def inline_title(target: str) -> str:
    """What a target is called within a sentence, or along an axis."""
    title = target_title(target)
    return title[0].lower() + title[1:]


def counted_words(target: str) -> tuple[str, str]:
    """What a share of a target is a share of, and what it does: "of the outputs", "keep their prediction"."""
    if target in (RATIO, ACCURACY, AGREEMENT):
        return "of the outputs", target_promise(target)
    return f"of the {inline_title(target).removeprefix('certified ')}", "stands"


def curves_by_kind(results: Mapping[str, xr.Dataset]) -> dict[str, dict[str, xr.Dataset]]:
    """Results with the single dimension `budget`, for each kind of budget that one of them has, the last kind first."""
    kinds = budget_kinds(next(iter(results.values())))[::-1]
    used = [kind for kind in kinds if any(dataset.sizes[kind] > 1 for dataset in results.values())] or kinds[:1]
    return {kind: {method: kind_curve(dataset, kind) for method, dataset in results.items()} for kind in used}


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


def acr_text(radius: AverageRadius, digits: int) -> str:
    """The area under what is proven up to the largest budget, rounded down; "≥" where outputs are certified there, too.

    The lower sum without what is left at the largest budget would rank curves wrongly: a stronger bound leaves more.
    """
    scale = 10**digits
    total = math.floor((radius.value + radius.tail) * scale + 1e-9) / scale
    return ("≥ " if radius.tail > 0 else "") + f"{total:.{digits}f}"


TAIL_NOTE = (
    "≥: some outputs are still certified at the largest budget, beyond which nothing was computed: larger budgets "
    "may show more."
)


def headline_budget(*datasets: xr.Dataset) -> float:
    """Largest budget at which one of the results certifies half of what the headline counts, whatever their order.

    Where there is none, the smallest positive budget. Results that are not proven count only among themselves.
    """
    reached = _reached(datasets)
    if reached:
        return max(reached)
    budgets = np.unique(np.concatenate([dataset["budget"].values for dataset in datasets]))
    positive = budgets[budgets > 0]
    return float(positive[0] if positive.size else budgets[0])


def _reached(datasets: Sequence[xr.Dataset]) -> list[float]:
    proven = [dataset for dataset in datasets if run_info(dataset).proven] or datasets
    target = headline_target(*datasets)
    return [budget for dataset in proven for budget in _half(dataset, target)]


def _half(dataset: xr.Dataset, target: str) -> list[float]:
    """Positive budgets at which half of a target is certified."""
    if not has_target(dataset, target):
        return []
    budgets = dataset["budget"].values
    return budgets[(best_curve(dataset, target) >= 0.5) & (budgets > 0)].tolist()


def headline_rule(*datasets: xr.Dataset) -> str:
    """How `headline_budget` was chosen, in words."""
    budget, target = headline_budget(*datasets), headline_target(*datasets)
    what, does = counted_words(target)
    if _reached(datasets):
        who = "one of the methods certifies" if len(datasets) > 1 else "it is certified"
        return f"ε = {budget:.4g} is the largest computed budget at which {who} that at least half {what} {does}."
    return f"At no positive budget is it certified that half {what} {does}: ε = {budget:.4g} is the smallest one."


def table_budgets(results: Mapping[str, xr.Dataset], count: int = 6) -> list[float]:
    """Budgets of the first data set: all if they are few, else some up to the last at which anything is certified."""
    dataset = next(iter(results.values()))
    budgets = dataset["budget"].values
    if len(budgets) <= count:
        return budgets.tolist()
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
