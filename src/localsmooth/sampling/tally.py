"""Tallies: what certificates are computed from, per item, over all outputs in flat order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Shaped

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.sampling.configuration import chosen_digest
from localsmooth.sampling.counter import Counters
from localsmooth.sampling.plan import SamplingPlan, Stage
from localsmooth.sampling.store import MergedCounts, Store, StoreError

__all__ = ["ItemTally", "choose", "collect_tallies"]


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
        Samples per output group that were drawn and counted in the candidate and in the bound stage; with a stopping
        rule, `n` is the largest number possible.
    candidate_counts
        How often each class was predicted in the candidate stage; None unless asked for.
    further
        Arrays of further counters by "counter.array", and what else the candidate stage chose by its name.
    n_per_output
        With a stopping rule, samples of the bound stage that were counted for each output; None without.
    candidate_votes
        How many samples of the candidate stage were predicted as the candidate; None if labels were not counted there.
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
    chosen: dict[str, np.ndarray] = {}
    for counter in counters.candidate:
        own = {
            name.removeprefix(f"{counter.name}."): array
            for name, array in merged.counts.items()
            if name.startswith(f"{counter.name}.")
        }
        chosen.update(counter.choose(own, merged.n))
    if "candidate" not in chosen:
        raise InvalidInputError("counters", "none chooses a candidate", "Add LabelCounts to the candidate stage")
    return chosen


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
        _collect_item(store, item, layout, counters, plan, keep_candidate_counts) for item, layout in enumerate(layouts)
    ]


def _collect_item(
    store: Store, item: int, layout: Layout, counters: Counters, plan: SamplingPlan, keep_candidate_counts: bool
) -> ItemTally:
    outputs = int(layout.outputs.labels.size)
    gathered: dict[str, np.ndarray] = {}
    for group in range(layout.outputs.count):
        members = layout.outputs.members(group)
        for name, rows in _group_arrays(store, item, group, counters, plan, keep_candidate_counts):
            if name not in gathered:
                gathered[name] = np.zeros((outputs, *rows.shape[1:]), dtype=rows.dtype)
            gathered[name][members] = rows
    return ItemTally(
        shape=layout.outputs.shape,
        candidate=gathered.pop("candidate"),
        votes=gathered.pop("votes.votes"),
        n_candidate=plan.n_candidate,
        n=plan.n_bound,
        candidate_counts=gathered.pop("labels.counts", None),
        n_per_output=gathered.pop("n", None),
        candidate_votes=gathered.pop("labels.candidate", None),
        further=gathered,
    )


def _group_arrays(
    store: Store, item: int, group: int, counters: Counters, plan: SamplingPlan, keep_candidate_counts: bool
) -> Iterator[tuple[str, np.ndarray]]:
    stages = {stage: store.merged(item, group, stage) for stage in Stage}
    for stage, merged in stages.items():
        if merged.n != plan.samples(stage) and not _stopped(plan, item, group, stage, merged):
            raise StoreError(
                f"the {stage.name.lower()} stage of item {item}, output group {group} holds {merged.n} of "
                f"{plan.samples(stage)} samples; start the run again to draw the others"
            )
    chosen = choose(counters, stages[Stage.CANDIDATE])
    require_choice(item, group, chosen, stages[Stage.BOUND].chosen)
    yield from chosen.items()
    for name, array in stages[Stage.CANDIDATE].counts.items():
        if name == "labels.counts":
            votes = np.take_along_axis(array, chosen["candidate"].astype(np.int64)[:, None], axis=1)
            yield "labels.candidate", votes[:, 0]
        if name != "labels.counts" or keep_candidate_counts:
            yield name, array
    bound = stages[Stage.BOUND]
    yield from bound.counts.items()
    if plan.stop is not None:
        yield "n", np.full(bound.counts["votes.votes"].shape, bound.n, dtype=np.int64)


def _stopped(plan: SamplingPlan, item: int, group: int, stage: Stage, merged: MergedCounts) -> bool:
    """Whether the rule was content with what there is."""
    if plan.stop is None or stage is not Stage.BOUND or not merged.n:
        return False
    return plan.stop.decided(item, group, merged.counts["votes.votes"].astype(np.int64), merged.n)
