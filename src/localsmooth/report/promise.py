"""What the result promises, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import xarray as xr

from localsmooth.metrics import average_certifiable_radius
from localsmooth.report.summary import (
    acr_text,
    best_curve,
    counted_words,
    has_target,
    headline_budget,
    headline_target,
    value_at,
)
from localsmooth.report.tables import percent
from localsmooth.results import ACCURACY, RATIO, RunInfo, run_info

__all__ = [
    "BOUND_WORDS",
    "OWN_BOUND",
    "Tile",
    "assumptions",
    "bound_samples",
    "described",
    "ended",
    "foundations",
    "promise",
    "promises_of",
    "tiles",
]


BOUND_WORDS = {
    "naive": "counts the outputs that are robust each on its own, as if every output had an adversary to itself",
    "lp": "lets all outputs share one perturbation: a linear program over how its budget is spent, in which outputs "
    "may fall in part (Schuchardt et al. 2023)",
    "envelope": "shares one perturbation as lp does, over the convex envelope of how many outputs of a group fall: "
    "never weaker than lp, from the same samples",
    "exact": "searches for the worst way to spend the budget (branch and bound): the best that these base certificates "
    "can prove, up to its time limit",
}
"""What each collective bound counts, to follow its name."""

OWN_BOUND = "belongs to its method, see what the promise rests on"


@dataclass(frozen=True)
class Tile:
    """One large number with its explanation."""

    method: str
    number: str
    text: str


def ended(run: RunInfo) -> bool:
    """Whether sampling was ended before its plan by somebody, and not by a rule of its own."""
    return run.saving is not None and (run.smoothing is None or "stop" not in run.smoothing.plan)


def bound_samples(run: RunInfo) -> str:
    """N₂, which is no more than the largest number where sampling stopped before its plan."""
    return f"N₂ {'=' if run.saving is None else '≤'} {run.n_bound}"


def promise(run: RunInfo) -> str:
    """The guarantee in one sentence, or that there is none."""
    if not run.proven:
        return (
            f"None. The confidence bounds follow a published rule that does not hold for many outputs "
            f"at once (nominal α = {run.alpha:g}; N₁ = {run.n_candidate}, {bound_samples(run)} samples per group). "
            f"The counts over {run.norm} budgets (in {run.units}) reproduce that publication and certify nothing."
        )
    confidence = f"{100 * (1 - run.alpha):.6g} %"
    if run.promise:
        return (
            f"For each item on its own, with probability at least {confidence} over the random samples "
            f"(α = {run.alpha:g}; N₁ = {run.n_candidate}, {bound_samples(run)}; ε in {run.units}): {run.promise}"
        )
    return (
        f"For each item on its own, with probability at least {confidence} over the random samples "
        f"(α = {run.alpha:g}; N₁ = {run.n_candidate} samples per output group to choose the candidates, "
        f"{bound_samples(run)} further ones to bound their probability): under every {run.threat} "
        f"(in {run.units}), at least the certified number of the smoothed classifier’s outputs keep their "
        f"prediction, all of them against this one perturbation of the whole input."
    )


def promises_of(runs: Mapping[str, RunInfo]) -> dict[str, list[str]]:
    """Every promise once, with the methods that make it."""
    promises: dict[str, list[str]] = {}
    for method, run in runs.items():
        promises.setdefault(promise(run), []).append(method)
    return promises


def assumptions(run: RunInfo) -> list[str]:
    """What the promise rests on and what it does not say."""
    device = f"The model was evaluated in {run.precision} on {run.device} with batches of {run.batch_size}"
    if run.precision != "float32":
        device += "; the promise is about the model in this precision"
    subject = "This is about the smoothed classifier"
    if not run.promise:
        subject += (
            ", which takes the majority vote over noisy inputs (or, where certificates are from scores, the largest "
            "mean score)"
        )
    return [
        f"{subject}, and not about the model without noise. Means over items describe the data set and carry no joint "
        "guarantee.",
        "All bounds and budgets of an item rest on the same confidence bounds, and hold or fail together.",
        device + ".",
        *run.assumptions,
        *run.replayed,
        *([f"Not certified, since sampling was ended before: {', '.join(run.left_out)}."] if run.left_out else []),
    ]


def described(runs: Mapping[str, RunInfo], outputs: str) -> str:
    """What maps of single outputs are where counts alone are promised; empty where they hold for all together."""
    methods = [method for method, run in runs.items() if run.described]
    if not methods:
        return ""
    of = "" if len(methods) == len(runs) else f" of {' and '.join(methods)}"
    return (
        f"The certified numbers{of} are promised, and nothing of single {outputs}: what is drawn of these, and whether "
        f"they abstain, follows from a bound of each by itself at level α, and does not hold for all of them together."
    )


def foundations(
    runs: Mapping[str, RunInfo], sentences: Callable[[RunInfo], Iterable[str]] = assumptions
) -> dict[tuple[str, ...], list[str]]:
    """What the promises rest on, each sentence once: by the methods that it holds for, those of all methods first."""
    methods: dict[str, list[str]] = {}
    for method, run in runs.items():
        for sentence in dict.fromkeys(sentences(run)):
            methods.setdefault(sentence, []).append(method)
    made: dict[tuple[str, ...], list[str]] = {}
    for sentence, names in sorted(methods.items(), key=lambda entry: -len(entry[1])):
        made.setdefault(tuple(names), []).append(sentence)
    return made


def tiles(results: Mapping[str, xr.Dataset]) -> list[Tile]:
    """The headline number of each method, at one budget for all; see `headline_budget` and `headline_target`.

    Where there are several methods, the average certifiable radius of each stands beside it.
    """
    budget, target = headline_budget(*results.values()), headline_target(*results.values())
    what, does = counted_words(target)
    made: list[Tile] = []
    for method, dataset in results.items():
        if not has_target(dataset, target):
            continue
        share = value_at(dataset["budget"].values, best_curve(dataset, target), budget)
        run, items = run_info(dataset), dataset.sizes["item"]
        claim = f"provably {does}" if run.proven else f"{does}, as published but NOT proven,"
        if run.promise:
            claim += " wherever the smoothed model answers,"
        over = f"mean over {items} items" if items > 1 else "one item"
        text = f"{what} {claim} at ε = {budget:.4g} ({over})"
        if target != RATIO and has_target(dataset, RATIO):
            whole = value_at(dataset["budget"].values, best_curve(dataset, RATIO), budget)
            every = "Right or wrong" if target == ACCURACY else "Whichever prediction it is"
            text += f". {every}: {percent(whole)}"
        if len(results) > 1:  # one budget alone may be where one method ends, and another has long been ahead
            radius = average_certifiable_radius(dataset["budget"].values, best_curve(dataset, target))
            text += f". Average certifiable radius: {acr_text(radius, 3)}"
        made.append(Tile(method, percent(share), text.replace(" %", "\u00a0%")))
    return made
