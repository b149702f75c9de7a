"""Items with their tallies, and how they are kept in a run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.bounds import CandidateVotes
from localsmooth.certificates.combined import OutputScores, OutputVotes
from localsmooth.layout import Layout, Partition
from localsmooth.runs import Store
from localsmooth.tasks.record import RunRecord
from localsmooth.tasks.scores import ScoreCounting

__all__ = ["SampledItem", "ignored_outputs", "load_items", "number_layouts", "save_items"]


@dataclass(frozen=True, eq=False)
class SampledItem:
    """An item with its layout and its votes.

    Parameters
    ----------
    name
        What reports call it.
    image
        The input.
    label
        Known classes, or None.
    ignored
        Outputs that do not count, or None.
    layout
        The layout that the sampler read.
    votes
        The tallies.
    further
        What a method of its own drew beside them, by name.
    """

    name: str
    image: Float[np.ndarray, "channels *spatial"]
    label: Int[np.ndarray, "..."] | None
    ignored: Bool[np.ndarray, "..."] | None
    layout: Layout
    votes: OutputVotes
    further: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])


def number_layouts(layouts: Sequence[Layout]) -> list[int]:
    """Number the distinct layouts in the order in which they come."""
    numbers: dict[str, int] = {}
    digests = {id(layout): layout.digest() for layout in layouts}
    return [numbers.setdefault(digests[id(layout)], len(numbers)) for layout in layouts]


def save_items(items: Sequence[SampledItem], layouts: Sequence[int], store: Store) -> None:
    """Keep inputs, labels, votes and layouts in a store.

    Parameters
    ----------
    items
        The items.
    layouts
        Number of each item's layout, from `number_layouts`.
    store
        Where to keep them.
    """
    known: set[int] = set()
    for index, (item, number) in enumerate(zip(items, layouts, strict=True)):
        if number not in known:
            known.add(number)
            store.put_array(f"layout{number}-outputs", item.layout.outputs.labels)
            store.put_array(f"layout{number}-inputs", item.layout.inputs.labels)
            store.put_array(f"layout{number}-levels", item.layout.levels)
        store.put_array(f"item{index}-image", item.image)
        if item.label is not None:
            store.put_array(f"item{index}-label", item.label)
        store.put_array(f"item{index}-candidate", item.votes.candidate)
        store.put_array(f"item{index}-votes", item.votes.votes)
        if item.votes.candidate_votes is not None:
            store.put_array(f"item{index}-candidate-votes", item.votes.candidate_votes.votes)
        if not isinstance(item.votes.n, int):
            store.put_array(f"item{index}-n", item.votes.n)
        if item.votes.scores is not None:
            store.put_array(f"item{index}-scores", ScoreCounting.array(item.votes.scores.tally))
            store.put_array(f"item{index}-reference", item.votes.scores.reference)
        for name, array in item.further.items():
            store.put_array(f"item{index}-further-{name}", array)


def load_items(record: RunRecord, store: Store) -> list[SampledItem]:
    """Read back what `save_items` kept; the layouts come without views, which only sampling needs.

    Raises
    ------
    StoreError
        If an array is missing or damaged.
    """
    layouts = {
        number: Layout(
            Partition(store.get_array(f"layout{number}-outputs")),
            Partition(store.get_array(f"layout{number}-inputs")),
            store.get_array(f"layout{number}-levels"),
        )
        for number in set(record.item_layouts)
    }
    made: list[SampledItem] = []
    for index, (name, number) in enumerate(zip(record.item_names, record.item_layouts, strict=True)):
        label = store.get_array(f"item{index}-label") if record.labelled else None
        made.append(
            SampledItem(
                name,
                store.get_array(f"item{index}-image"),
                label,
                ignored_outputs(label, record.ignore_label),
                layouts[number],
                OutputVotes(
                    store.get_array(f"item{index}-candidate"),
                    store.get_array(f"item{index}-votes"),
                    record.n_bound if record.sequence is None else store.get_array(f"item{index}-n"),
                    _load_scores(record, store, index),
                    record.sequence,
                    _load_candidate_votes(record, store, index),
                    record.n_bound,
                ),
                {further: store.get_array(f"item{index}-further-{further}") for further in record.further},
            )
        )
    return made


def _load_candidate_votes(record: RunRecord, store: Store, index: int) -> CandidateVotes | None:
    """Votes of the candidate stage; runs that were sampled before these were kept have none."""
    name = f"item{index}-candidate-votes"
    return CandidateVotes(store.get_array(name), record.n_candidate) if store.has_array(name) else None


def _load_scores(record: RunRecord, store: Store, index: int) -> OutputScores | None:
    if record.scores is None:
        return None
    tally = record.scores.tally(store.get_array(f"item{index}-scores"), record.n_bound)
    return OutputScores(tally, store.get_array(f"item{index}-reference"))


def ignored_outputs(label: np.ndarray | None, ignore_label: int | None) -> np.ndarray | None:
    """Where the label says that an output does not count; None if all count."""
    return None if label is None or ignore_label is None else label == ignore_label
