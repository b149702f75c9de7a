"""Why a result certifies nothing."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from localsmooth.report.promise import ended
from localsmooth.report.tables import percent
from localsmooth.results import RunInfo, budget_kinds, reach_words, rounded_down, run_info, symbol, target_title

__all__ = ["reach_of_result", "why_nothing"]

_UNSURE = 0.5


def reach_of_result(dataset: xr.Dataset) -> str:
    """Say how far certificates could reach with the run's numbers of samples; nothing where that is not known."""
    run = run_info(dataset)
    words = reach_words(run.reach, run.budgets, run.bound_names)
    if words and ended(run):
        words += f" That is with all of N₂ = {run.n_bound}; fewer samples were counted, and reach less far."
    return words


def why_nothing(dataset: xr.Dataset) -> list[str]:
    """Say why a result certifies nothing at any positive budget, for all targets or for one; nothing where it does.

    Parameters
    ----------
    dataset
        A result.

    Returns
    -------
    list[str]
        Sentences.
    """
    run, kinds = run_info(dataset), budget_kinds(dataset)
    if not any(budget > 0 for budgets in run.budgets.values() for budget in budgets):
        return []
    positive = sum((dataset[kind] > 0 for kind in kinds), xr.DataArray(False))
    most = (dataset["certified"] * positive).max([str(name) for name in dataset["certified"].dims if name != "target"])
    empty = [str(target) for target in dataset["target"].values if float(most.sel(target=target)) == 0]
    if not empty:
        return []
    if len(empty) < dataset.sizes["target"]:
        return [_target_words(dataset, target) for target in empty]
    first = "Nothing is certified beyond ε = 0."
    return [first, *(_too_few(run) or [*_unsure(dataset, run), *_disagreeing(dataset)])]


def _target_words(dataset: xr.Dataset, target: str) -> str:
    stake, total = (float(dataset[name].sel(target=target).sum()) for name in ("stake", "total"))
    share = percent(stake / total) if total else "none"
    return (
        f"{target_title(target)}: nothing is certified beyond ε = 0. Of what it counts, {share} is predicted so at all."
    )


def _too_few(run: RunInfo) -> list[str]:
    """Where not even unanimous votes reach the smallest positive budget of any kind."""
    short: list[str] = []
    for kind, each in run.reach.items():
        smallest = min((budget for budget in run.budgets[kind] if budget > 0), default=math.inf)
        if set(run.bound_names) <= each.keys() and smallest > max(each.values()):
            short.append(
                f"{symbol(kind)} = {rounded_down(max(each.values()))}, and the smallest budget is {smallest:g}"
            )
    if not short or len(short) < sum(max(budgets) > 0 for budgets in run.budgets.values()):
        return []
    return [
        f"There are too few samples for so many outputs: with N₂ = {run.n_bound} and α = {run.alpha:g}, unanimous "
        f"votes reach {'; '.join(short)}. Draw more samples, or name smaller budgets."
    ]


def _unsure(dataset: xr.Dataset, run: RunInfo) -> list[str]:
    """How unanimous the votes are, and what more samples would lead to."""
    counted = ~dataset["ignored"].values
    sentences: list[str] = []
    if run.saving is None and counted.any():
        share = float(np.median(dataset["votes"].values[counted])) / run.n_bound
        sentences.append(
            f"Too few outputs have unanimous votes for what N₂ = {run.n_bound} can reach; the median output has."
            if share == 1
            else f"The votes are not unanimous enough: the median output has {percent(share)} of them."
        )
    helps = [f"{symbol(kind)} ≈ {rounded_down(limit)}" for kind, limit in run.limit.items() if limit > 0]
    if helps:
        sentences.append(f"More samples would help up to {' and '.join(helps)}.")
    elif run.limit:
        sentences.append("More samples would not help: there is too much noise, or the model is too unsure here.")
    return sentences


def _disagreeing(dataset: xr.Dataset) -> list[str]:
    """Whether noise changes most of the predictions."""
    if "clean" not in dataset:
        return []
    known = ~dataset["ignored"].values & (dataset["clean"].values >= 0)
    same = (dataset["candidate"].values == dataset["clean"].values)[known]
    if not same.size or same.mean() >= _UNSURE:
        return []
    return [
        f"Only {percent(float(same.mean()))} of the outputs are predicted as without noise: there is too much noise "
        "for this model."
    ]
