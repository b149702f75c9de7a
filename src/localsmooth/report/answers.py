"""What a reviewer asks first, answered in plain words from what a result says, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from localsmooth.metrics import Weakest, abstention_rate, clean_agreement, keeps_alone, numbering_words, weakest_part
from localsmooth.report.panel import panel_of
from localsmooth.report.summary import (
    best_curve,
    counted_words,
    has_target,
    headline_budget,
    headline_target,
    value_at,
)
from localsmooth.report.tables import percent
from localsmooth.report.work import budget_scale
from localsmooth.results import NO_LABEL, RunInfo, item_view, run_info

__all__ = ["Answer", "answers"]

_NAMED = 3
_HALF = 0.5
_REAL = ("gaussian", "uniform")


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Parameters
    ----------
    question
        What is asked, in a word or two.
    texts
        The answer: sentences by the methods for which they are so, those for all methods first.
    """

    question: str
    texts: dict[tuple[str, ...], list[str]]


@dataclass(frozen=True, eq=False)
class _Asked:
    """One method's result over one kind of budget, and the budget and the target of the headline."""

    dataset: xr.Dataset
    run: RunInfo
    budget: float
    target: str

    @property
    def epsilon(self) -> str:
        return f"{self.budget:.4g}"

    @property
    def items(self) -> int:
        return int(self.dataset.sizes["item"])

    @property
    def outputs(self) -> str:
        return panel_of(self.run.task).called

    @property
    def counted(self) -> np.ndarray:
        return ~self.dataset["ignored"].values


def answers(results: Mapping[str, xr.Dataset]) -> list[Answer]:
    """Answer what a reviewer asks first, of all methods at the budget of the headline.

    Parameters
    ----------
    results
        Results with the single dimension `budget`, by the name of their method.
    """
    budget, target = headline_budget(*results.values()), headline_target(*results.values())
    asked = {method: _Asked(dataset, run_info(dataset), budget, target) for method, dataset in results.items()}
    made: list[Answer] = []
    for question, answer in _QUESTIONS.items():
        methods: dict[str, list[str]] = {}
        for method, one in asked.items():
            for sentence in answer(one):
                methods.setdefault(sentence.replace(" %", "\u00a0%"), []).append(method)
        texts: dict[tuple[str, ...], list[str]] = {}
        for sentence, names in sorted(methods.items(), key=lambda entry: -len(entry[1])):
            texts.setdefault(tuple(names), []).append(sentence)
        if texts:
            made.append(Answer(question, texts))
    return made


def _promised(asked: _Asked) -> list[str]:
    if not asked.run.proven:
        return ["Nothing: the counts on this page reproduce a publication whose rule is not proven for many outputs."]
    if not has_target(asked.dataset, asked.target):
        return []
    share = value_at(asked.dataset["budget"].values, best_curve(asked.dataset, asked.target), asked.budget)
    if share is None:
        return [f"Nothing was computed at budgets as large as {asked.epsilon}."]
    what, does = counted_words(asked.target)
    where = " wherever the smoothed model answers" if asked.run.promise else ""
    words = f"At least {percent(share)} {what.replace('outputs', asked.outputs)} {does}"
    return [
        f"{words} under every attack of size {asked.epsilon}{where} ({_over_items(asked)}).",
        f"An attack is one perturbed input for all {asked.outputs} at once.",
    ]


def _over_items(asked: _Asked) -> str:
    """Whether a share is a mean, and the smallest of an item."""
    if asked.items == 1:
        return "one input"
    one = asked.dataset.sel(target=asked.target)
    total = one["total"].values
    known = np.flatnonzero(total > 0)
    place = int(np.searchsorted(asked.dataset["budget"].values, asked.budget * (1 - 1e-12), side="left"))
    shares = one["certified"].max("bound").isel(budget=place).values[known] / total[known]
    words = f"mean over {asked.items} inputs"
    if np.unique(shares).size < 2:
        return words
    worst = int(np.argmin(shares))
    return f"{words}; of {asked.dataset['item'].values[known[worst]]}, the weakest, {percent(float(shares[worst]))}"


def _against(asked: _Asked) -> list[str]:
    words = [f"Every {asked.run.threat.replace('ε', asked.epsilon)} ({asked.run.units})."]
    if scale := budget_scale(asked.dataset, asked.budget):
        words.append(scale)
    if not asked.run.promise:
        words.append("Whoever chooses it may know the model, the noise and the samples.")
    return words


def _about(asked: _Asked) -> list[str]:
    smoothing, names = asked.run.smoothing, [str(name) for name in asked.dataset["item"].values]
    model = "The smoothed model was not recorded."
    if smoothing is not None:
        noise = smoothing.noise.get("distribution", "unknown")
        model = f"The model {smoothing.model[:8]} under {noise} noise, {smoothing.level_text()}."
    listed = ", ".join(names[:_NAMED]) + ", …" * (len(names) > _NAMED)
    inputs = f"{asked.items} inputs ({listed})" if asked.items > 1 else f"One input ({listed})"
    # Padding is ignored, too; what is inside an item has a group.
    every = int(np.count_nonzero(asked.dataset["output_partition"].values >= 0))
    counted = int(np.count_nonzero(asked.counted))
    some = f"all {every:,} {asked.outputs} count"
    if counted < every:
        some = f"{counted:,} of {every:,} {asked.outputs} count, the others are ignored"
    return [f"{inputs}: {some}.", model]


def _sure(asked: _Asked) -> list[str]:
    run = asked.run
    if not run.proven:
        return ["Not at all: the rule for many outputs does not hold for all of them at once."]
    words = f"At least {100 * (1 - run.alpha):.6g} % for each input on its own, over the chance of the samples"
    together = 1 - asked.items * run.alpha
    if asked.items > 1 and together > 0 and not run.promise:
        words += f"; at least {100 * together:.6g} % for all {asked.items} inputs together"
    return [f"{words} (α = {run.alpha:g}).", *run.assumptions[:1], *_drawn(run)]


def _drawn(run: RunInfo) -> list[str]:
    """How noise is drawn; nothing where that is not known, or it is on bits."""
    if run.drawing_charge is not None:
        return ["Noise is drawn on a grid, and what that leaves open is paid for."]
    if run.smoothing is not None and run.smoothing.noise.get("distribution") in _REAL:
        return [f"Noise is in floating point, and taken for exactly {run.smoothing.noise['distribution']}."]
    return []


def _unsaid(asked: _Asked) -> list[str]:
    words = ["Nothing about other inputs, other attacks, or the model without noise."]
    if asked.run.described:
        words.append(f"Counts are promised, nothing of any single one of the {asked.outputs}.")
    if asked.counted.any():
        rate = abstention_rate(asked.dataset["prediction"].values, asked.counted)
        some = f"{percent(rate)} of the {asked.outputs} abstain: nothing is certified of these."
        words.append(some if rate > 0 else f"None of the {asked.outputs} abstains.")
    if asked.run.left_out:
        words.append(f"{len(asked.run.left_out)} inputs of the run are left out: they had too few samples.")
    return words


def _undisturbed(asked: _Asked) -> list[str]:
    found = clean_agreement(asked.dataset)
    if found is None:
        return []
    whole = found.overall
    words = f"{percent(whole.candidate_share)} of the {asked.outputs} are predicted as without noise"
    if whole.certified != whole.candidate:
        words += f" ({percent(whole.certified_share)} without those that abstain)"
    return [f"{words}.", "This is measured, not promised.", *filter(None, [numbering_words(asked.dataset)])]


def _weakest_class(asked: _Asked) -> list[str]:
    dataset = asked.dataset
    known, how = dataset["label"].values, "by label"
    if not (known != NO_LABEL).any():
        if "clean" not in dataset:
            return []
        known, how = dataset["clean"].values, "as predicted without noise"
    counted, right = asked.counted & (known >= 0), dataset["prediction"].values == known
    found = _weakest(asked, known, counted, right)
    if found is None:
        return []
    name = asked.run.class_names[found.worst.part]
    return [f"“{name}”: {found.words(f'({how}) are predicted so and keep it')}"]


def _weakest_place(asked: _Asked) -> list[str]:
    panel, shape = panel_of(asked.run.task), asked.counted.shape
    parts = np.full(shape, -1)
    names: dict[str, int] = {}
    for index in range(asked.items):
        view = item_view(asked.dataset, index)
        if (places := panel.places(view)) is not None:
            numbers = np.array([names.setdefault(name, len(names)) for name in places.names])
            inside = (index, *(slice(side) for side in view.prediction.shape))
            parts[inside] = np.where(places.parts >= 0, numbers[places.parts], -1)
    found = _weakest(asked, parts, asked.counted & (parts >= 0), np.ones(shape, np.bool_))
    if found is None:
        return []
    name = next(name for name, number in names.items() if number == found.worst.part)
    return [f"{name[0].upper()}{name[1:]}: {found.words('keep their prediction')}"]


@dataclass(frozen=True)
class _Found:
    """The weakest part at a budget, and the share of all that keep their prediction there."""

    asked: _Asked
    worst: Weakest
    budget: float
    share: float

    def words(self, keep: str) -> str:
        of, run = self.asked.outputs, self.asked.run
        shares = f"{percent(self.worst.share)} of its {self.worst.size:,} {of} {keep}"
        alone = f"under an attack of size {self.budget:.4g} on one of them alone"
        unsure = " (measured, not promised)" if run.described else ""
        return f"{shares} {alone}{unsure}; of all {of}, {percent(self.share)} do."


def _weakest(asked: _Asked, parts: np.ndarray, counted: np.ndarray, right: np.ndarray) -> _Found | None:
    """Find what falls first, at the largest budget up to the headline's at which half of all keep on their own.

    Nothing is found where nothing is said of single outputs, or nothing is proven.
    """
    if asked.run.promise or not asked.run.proven or not counted.any():
        return None
    found = None
    for budget in asked.dataset["budget"].values.tolist():
        if not 0 < budget <= asked.budget:
            continue
        keeps = counted & right & keeps_alone(asked.dataset, budget)
        share = np.count_nonzero(keeps) / np.count_nonzero(counted)
        if found is not None and share < _HALF:
            break
        worst = weakest_part(parts, counted, keeps)
        found = found if worst is None else _Found(asked, worst, budget, float(share))
    return found


_QUESTIONS: dict[str, Callable[[_Asked], list[str]]] = {
    "Promised": _promised,
    "Against": _against,
    "For": _about,
    "How sure": _sure,
    "Not said": _unsaid,
    "Clean model": _undisturbed,
    "Weakest class": _weakest_class,
    "Weakest place": _weakest_place,
}
