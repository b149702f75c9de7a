"""A table of the numbers on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from localsmooth.metrics import CleanAgreement, clean_agreement, numbering_words
from localsmooth.report import (
    TAIL_NOTE,
    acr_text,
    average_radius,
    bound_samples,
    budget_scale,
    curve,
    curves_by_kind,
    ended,
    foundations,
    has_target,
    inline_title,
    percent,
    prediction_numbers,
    reach_of_result,
    shown_targets,
    table_budgets,
    uneven_work,
    value_at,
    why_nothing,
    work_text,
)
from localsmooth.results import RunInfo, Saving, budget_kinds, budget_measure, run_info, symbol

__all__ = ["print_summary"]

_ITEMS = 10
_SHOWN = 7


def print_summary(results: Mapping[str, xr.Dataset], console: Console) -> None:
    """Print the certified shares at a few budgets, for every method, target and bound.

    Where there are two kinds of budget, first for one kind alone, then for pairs.

    Parameters
    ----------
    results
        Results by the name of their method.
    console
        Where to print.
    """
    whole = results
    results = next(iter(curves_by_kind(whole).values()))
    first = run_info(next(iter(results.values())))
    budgets = table_budgets(results, count=5)
    for target in shown_targets(results):
        shown = {method: dataset for method, dataset in results.items() if has_target(dataset, target)}
        console.print(_table(shown, target, budgets), soft_wrap=False)
    if any(average_radius(d, target, b).tail > 0 for d in results.values() for target, b in _curves(d)):
        console.print(TAIL_NOTE)
    if sentence := uneven_work(whole):
        console.print(sentence, style="bold", markup=False, highlight=False)
    measure = budget_measure(first)
    kind = f"an {measure} ({first.units})" if measure else f"a number of {first.units}"
    console.print(f"ε is {kind}; under every {first.threat}.")
    if sentence := budget_scale(next(iter(whole.values()))):
        console.print(sentence, highlight=False)
    for method, dataset in results.items():
        run, numbers = run_info(dataset), prediction_numbers(dataset)
        known = {
            "accuracy": numbers["accuracy"],
            "mIoU": numbers["miou"],
            "mIoU of candidates": numbers["candidate_miou"],
            "abstaining": numbers["abstention"],
        }
        shown = ", ".join(f"{word} {value:.3f}" for word, value in known.items() if value is not None)
        console.print(f"{method}: {shown}")
        if sentence := numbering_words(dataset):
            console.print(f"  {sentence}", style="bold", markup=False, highlight=False)
        if run.proven:
            items = dataset.sizes["item"]
            words = f"Each of {items} items holds" if items > 1 else "The certificate holds"
            words += f" with probability {1 - run.alpha:g}" + " on its own" * (items > 1)
        else:
            words = "These numbers are NOT proven: the rule for many outputs does not hold for all of them at once"
        passes = "" if (work := work_text(run)) is None else f"; {work} passes of the model over an item"
        console.print(f"  {words} (N₁ = {run.n_candidate}, {bound_samples(run)}{passes}).")
        for sentence in (*why_nothing(whole[method]), reach_of_result(whole[method])):
            if sentence:
                console.print(f"  {sentence}", highlight=False)
        if run.smoothing is not None:
            console.print(f"  About {run.smoothing.line()}.")
        if run.saving is not None:
            console.print(f"  {_saving(run.saving, dataset, ended(run))}", highlight=False)
        if run.left_out:
            shown = ", ".join(run.left_out[:_ITEMS]) + ", …" * (len(run.left_out) > _ITEMS)
            console.print(f"  Not certified, since sampling was ended before: {shown}.", markup=False, highlight=False)
        if (agreement := clean_agreement(dataset)) is not None:
            _print_agreement(agreement, console)
        for target in shown_targets({method: dataset}) if len(budget_kinds(whole[method])) == 2 else ():
            console.print(_pairs(whole[method], target), soft_wrap=False)
    _print_foundations({method: run_info(dataset) for method, dataset in whole.items()}, console)


def _curves(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """Target and bound of every curve."""
    return [(target, bound) for target in dataset["target"].values.tolist() for bound in run_info(dataset).bound_names]


def _print_agreement(agreement: CleanAgreement, console: Console) -> None:
    """What is left of the predictions without noise, by class where classes differ, and which classes are lost."""
    overall = agreement.overall
    console.print(
        f"  Agreement with the clean model: {percent(overall.candidate_share)} of {overall.clean} outputs, "
        f"{percent(overall.certified_share)} where an abstention counts as lost."
    )
    if agreement.differs:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("clean class")
        for heading in ("outputs", "keep it", "and do not abstain"):
            table.add_column(heading, justify="right")
        for one in agreement.classes:
            shares = (percent(one.candidate_share), percent(one.certified_share))
            table.add_row(escape(one.name), f"{one.clean}", *shares)
        console.print(table, soft_wrap=False)
    for sentence in agreement.warnings:
        console.print(f"  {sentence}", style="bold", markup=False, highlight=False)


def _saving(saving: Saving, dataset: xr.Dataset, by_somebody: bool) -> str:
    """Samples that were not drawn, or not counted, in total and for the first few items."""
    begins, word = ("Sampling was ended", "left out") if by_somebody else ("Stopped early", "saved")
    total = f"{begins}: {sum(saving.counted):,} of {sum(saving.planned):,} samples counted"
    items = [f"{name} {share:.0%}" for name, share in zip(dataset["item"].values[:_ITEMS], saving.shares, strict=False)]
    more = ", …" if len(saving.shares) > _ITEMS else ""
    return f"{total}, {saving.total:.0%} {word} ({', '.join(items)}{more})."


def _print_foundations(runs: Mapping[str, RunInfo], console: Console) -> None:
    """What certificates the numbers rest on, and which rule for many outputs, each sentence once."""
    console.print("What it rests on:")
    for names, sentences in foundations(runs, lambda run: (*run.assumptions, *run.replayed)).items():
        whose = "" if len(names) == len(runs) else f"{', '.join(names)}: "
        for sentence in sentences:
            console.print(f"  {whose}{sentence}", markup=False, highlight=False)


def _table(results: Mapping[str, xr.Dataset], target: str, budgets: Sequence[float]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(escape(inline_title(target)))
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


def _pairs(dataset: xr.Dataset, target: str) -> Table:
    """Means over items of what the strongest bound certifies at a few pairs of budgets."""
    bound = str(dataset["bound"].values[-1])
    share = (dataset["certified"].sel(bound=bound) / dataset["total"]).sel(target=target).mean("item")
    first, second = ((kind, symbol(kind), _some(dataset[kind].values.tolist())) for kind in budget_kinds(dataset))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(escape(f"{inline_title(target)} ({bound})"))
    for budget in second[2]:
        table.add_column(f"{second[1]}={budget:g}", justify="right")
    for budget in first[2]:
        shares = share.sel({first[0]: budget, second[0]: second[2]}).fillna(0.0).values.tolist()
        table.add_row(f"{first[1]}={budget:g}", *(f"{one:.3f}" for one in shares))
    return table


def _some(budgets: list[float]) -> list[float]:
    """At most a few of the budgets, the first and the last among them."""
    if len(budgets) <= _SHOWN:
        return budgets
    places = sorted({round(index * (len(budgets) - 1) / (_SHOWN - 1)) for index in range(_SHOWN)})
    return [budgets[place] for place in places]
