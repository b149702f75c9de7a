"""Tallies: what certificates are computed from, per item, over all outputs in flat order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.runs import MergedCounts, SamplingPlan, Stage, Store, StoreError, chosen_digest
from localsmooth.sampling.counter import Counters

__all__ = ["ItemTally", "choose", "collect_ended", "collect_tallies", "settled", "unfinished_items"]


_HISTOGRAM = "labels.counts"
_CHOSEN, _VOTES = "(chosen)", "votes (candidate)"  # what a settled stage keeps; no counter is called that


@dataclass(frozen=True, eq=False)
class ItemTally:
    """The tallies of one item, one entry per output in the flat order of the layout's output label map.

    Parameters
    ----------
    shape
        Shape of the item's outputs.
    candidate
        Candidate class, chosen on the samples of the candidate stage.
    votes
        How many samples of the bound stage were predicted as the candidate.
    n_candidate, n
        Samples per output group that were drawn and counted in the candidate and in the bound stage; where there is
        a number for each output, `n` is the largest one possible.
    candidate_counts
        How often each class was predicted in the candidate stage; None unless asked for.
    further
        Arrays of further counters by "counter.array", and what else the candidate stage chose by its name.
    n_per_output
        With a stopping rule, or where sampling was ended before its plan, samples of the bound stage that were counted
        for each output; None without.
    candidate_votes
        How many samples of the candidate stage were predicted as the candidate; None if labels were not counted there.

    Raises
    ------
    InvalidInputError
        If votes are negative, or more than the samples.
    """

    shape: tuple[int, ...]
    candidate: Int[np.ndarray, " outputs"]
    votes: Int[np.ndarray, " outputs"]
    n_candidate: int
    n: int
    candidate_counts: Int[np.ndarray, "outputs classes"] | None
    further: Mapping[str, Shaped[np.ndarray, "outputs ..."]]
    n_per_output: Int[np.ndarray, " outputs"] | None = None
    candidate_votes: Int[np.ndarray, " outputs"] | None = None

    def __post_init__(self) -> None:
        n = self.n if self.n_per_output is None else self.n_per_output
        if not ((self.votes >= 0) & (self.votes <= n)).all() or not np.all(np.asarray(n) <= self.n):
            raise InvalidInputError("votes", f"they leave 0 … {self.n}", "Pass tallies as they were sampled")


def choose(counters: Counters, merged: MergedCounts) -> dict[str, np.ndarray]:
    """What the candidate stage of one output group chose.

    Raises
    ------
    InvalidInputError
        If no counter chooses a candidate.
    """
    if f"{_CHOSEN}.candidate" in merged.counts:
        return {name: array for name, array in _named(_CHOSEN, merged.counts).items() if name != _VOTES}
    chosen: dict[str, np.ndarray] = {}
    for counter in counters.candidate:
        chosen.update(counter.choose(_named(counter.name, merged.counts), merged.n))
    if "candidate" not in chosen:
        raise InvalidInputError("counters", "none chooses a candidate", "Add LabelCounts to the candidate stage")
    return chosen


def settled(merged: MergedCounts, chosen: Mapping[str, np.ndarray]) -> MergedCounts:
    """What is left to be known of a candidate stage that has chosen: all but the histogram of labels."""
    kept = {name: array for name, array in merged.counts.items() if name != _HISTOGRAM}
    kept |= {f"{_CHOSEN}.{name}": array for name, array in chosen.items()}
    if (votes := _candidate_votes(merged, chosen)) is not None:
        kept[f"{_CHOSEN}.{_VOTES}"] = votes
    return MergedCounts(merged.n, kept, merged.chosen)


def _named(prefix: str, counts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(f"{prefix}."): array for name, array in counts.items() if name.startswith(f"{prefix}.")}


def _candidate_votes(merged: MergedCounts, chosen: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """How many samples of the candidate stage predicted the candidate; None where labels were not counted."""
    if _HISTOGRAM not in merged.counts:
        return merged.counts.get(f"{_CHOSEN}.{_VOTES}")
    votes = np.take_along_axis(merged.counts[_HISTOGRAM], chosen["candidate"].astype(np.int64)[:, None], axis=1)[:, 0]
    return votes.astype(count_type(merged.n))


def count_type(n: int) -> type[np.signedinteger[Any]]:
    """Smallest type for counts of up to n samples; signed, so that differences of counts are what they look like."""
    return np.int16 if n < 2**15 else np.int32


def require_choice(item: int, group: int, chosen: Mapping[str, np.ndarray], voted: str) -> None:
    """Refuse votes for other candidates than the candidate stage chose.

    Parameters
    ----------
    item, group
        Whose.
    chosen
        What the candidate stage chose.
    voted
        Digest of what the stored votes are for.

    Raises
    ------
    StoreError
        If they differ.
    """
    if chosen_digest(chosen) != voted:
        raise StoreError(
            f"stored votes of item {item}, output group {group} are for other candidates than the stored candidate "
            f"stage chooses. Delete the group's files of the bound stage (item{item:06d}/group{group:05d}-"
            f"stage{Stage.BOUND.value}-*) and start the run again"
        )


def collect_tallies(
    store: Store,
    layouts: Sequence[Layout],
    counters: Counters,
    *,
    plan: SamplingPlan,
    keep_candidate_counts: bool = False,
) -> list[ItemTally]:
    """Read the tallies of a finished run.

    Parameters
    ----------
    store
        Where they are.
    layouts
        The layouts of the run, one per item.
    counters
        The counters of the run.
    plan
        The plan of the run.
    keep_candidate_counts
        See `SamplingOptions`.

    Raises
    ------
    StoreError
        If chunks are missing or cannot be used.
    """
    return [
        _collect_item(layout, partial(_group_arrays, store, item, counters, plan, keep_candidate_counts), plan)
        for item, layout in enumerate(layouts)
    ]


def unfinished_items(store: Store, layouts: Sequence[Layout], plan: SamplingPlan) -> list[int]:
    """Items of which not all samples are there that the plan, or its stopping rule, asks for.

    Parameters
    ----------
    store, layouts, plan
        As in `collect_tallies`.
    """
    return [
        item
        for item, layout in enumerate(layouts)
        if not all(
            _complete(plan, item, group, stage, store.merged(item, group, stage))
            for group in range(layout.outputs.count)
            for stage in Stage
        )
    ]


def collect_ended(
    store: Store,
    item: int,
    layout: Layout,
    counters: Counters,
    counted: Sequence[MergedCounts] | None,
    *,
    plan: SamplingPlan,
    keep_candidate_counts: bool = False,
) -> ItemTally:
    """Read the tallies of one item of a run whose sampling was ended: with a number of samples for each output.

    Parameters
    ----------
    store, layout, counters, plan, keep_candidate_counts
        As in `collect_tallies`.
    item
        Which item.
    counted
        The votes that count for each of its output groups; None for all that there are, if nothing is missing.

    Raises
    ------
    StoreError
        If chunks are missing or cannot be used.
    """
    arrays = partial(_group_arrays, store, item, counters, plan, keep_candidate_counts, counted=counted, ended=True)
    return _collect_item(layout, arrays, plan)


def _collect_item(
    layout: Layout, arrays: Callable[[int], Iterator[tuple[str, np.ndarray]]], plan: SamplingPlan
) -> ItemTally:
    outputs = int(layout.outputs.labels.size)
    gathered: dict[str, np.ndarray] = {}
    for group in range(layout.outputs.count):
        members = layout.outputs.members(group)
        for name, rows in arrays(group):
            if name not in gathered:
                gathered[name] = np.zeros((outputs, *rows.shape[1:]), dtype=rows.dtype)
            gathered[name][members] = rows
    return ItemTally(
        shape=layout.outputs.shape,
        candidate=_compact(gathered.pop("candidate")),
        votes=gathered.pop("votes.votes"),
        n_candidate=plan.n_candidate,
        n=plan.n_bound,
        candidate_counts=gathered.pop("labels.counts", None),
        n_per_output=gathered.pop("n", None),
        candidate_votes=gathered.pop("labels.candidate", None),
        further=gathered,
    )


def _compact(classes: np.ndarray) -> np.ndarray:
    return classes.astype(np.int8) if classes.max(initial=0) < 2**7 else classes


def _group_arrays(
    store: Store,
    item: int,
    counters: Counters,
    plan: SamplingPlan,
    keep_candidate_counts: bool,
    group: int,
    *,
    counted: Sequence[MergedCounts] | None = None,
    ended: bool = False,
) -> Iterator[tuple[str, np.ndarray]]:
    stages = {stage: store.merged(item, group, stage) for stage in Stage}
    for stage, merged in stages.items():
        if stage is Stage.BOUND and counted is not None:
            stages[stage] = counted[group]
        elif not _complete(plan, item, group, stage, merged):
            raise StoreError(
                f"the {stage.name.lower()} stage of item {item}, output group {group} holds {merged.n} of "
                f"{plan.samples(stage)} samples; start the run again to draw the others"
            )
    chosen = choose(counters, stages[Stage.CANDIDATE])
    require_choice(item, group, chosen, stages[Stage.BOUND].chosen)
    yield from chosen.items()
    first, bound = stages[Stage.CANDIDATE], stages[Stage.BOUND]
    if (votes := _candidate_votes(first, chosen)) is not None:
        yield "labels.candidate", votes
    if keep_candidate_counts and _HISTOGRAM not in first.counts and f"{_CHOSEN}.{_VOTES}" in first.counts:
        raise StoreError("the store has not kept how often each class was predicted. Sample anew, asking for it")
    for name, array in first.counts.items():
        if not name.startswith(f"{_CHOSEN}.") and (name != _HISTOGRAM or keep_candidate_counts):
            yield name, array
    for name, array in bound.counts.items():
        yield name, _narrow(array, bound.n, plan.n_bound) if name == "votes.votes" else array
    if plan.stop is not None or ended:
        yield "n", np.full(bound.counts["votes.votes"].shape, bound.n, dtype=count_type(plan.n_bound))


def _narrow(votes: np.ndarray, n: int, most: int) -> np.ndarray:
    if not ((votes >= 0) & (votes <= n)).all():
        raise StoreError(f"there are votes outside 0 … {n}, the number of samples")
    return votes.astype(count_type(most))


def _complete(plan: SamplingPlan, item: int, group: int, stage: Stage, merged: MergedCounts) -> bool:
    """Whether nothing is missing, or the rule was content with what there is."""
    if merged.n == plan.samples(stage):
        return True
    if plan.stop is None or stage is not Stage.BOUND or not merged.n:
        return False
    return plan.stop.decided(item, group, merged.counts["votes.votes"].astype(np.int64), merged.n)
