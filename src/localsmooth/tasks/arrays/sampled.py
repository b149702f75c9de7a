"""Items with their tallies, and how they are kept in a run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.certificates import OutputVotes
from localsmooth.layout import Layout
from localsmooth.runs import Store, StoreError
from localsmooth.tasks.record import RunRecord
from localsmooth.tasks.votes import DAMAGED, keep_layout, keep_votes, kept_layout, kept_votes

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
    class_names
        Name of each class; none where names play no role.
    """

    name: str
    image: Float[np.ndarray, "channels *spatial"]
    label: Int[np.ndarray, "..."] | None
    ignored: Bool[np.ndarray, "..."] | None
    layout: Layout
    votes: OutputVotes
    further: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    class_names: Sequence[str] = ()


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
            keep_layout(item.layout, number, store)
        store.put_array(f"item{index}-image", item.image)
        if item.label is not None:
            store.put_array(f"item{index}-label", item.label)
        keep_votes(item.votes, index, store)
        for name, array in item.further.items():
            store.put_array(f"item{index}-further-{name}", array)


def load_items(record: RunRecord, store: Store) -> list[SampledItem]:
    """Read back what `save_items` kept; the layouts come without views, which only sampling needs.

    Raises
    ------
    StoreError
        If an array is missing or damaged.
    """
    layouts = {number: kept_layout(number, store) for _, number in record.kept_items}
    made: list[SampledItem] = []
    for index, (name, number) in enumerate(record.kept_items):
        image = store.get_array(f"item{index}-image")
        label = store.get_array(f"item{index}-label") if record.labelled else None
        places, outputs = layouts[number].inputs.shape, layouts[number].outputs
        fits = image.shape[image.ndim - len(places) :] == places
        if not fits or (label is not None and label.size != outputs.labels.size):
            raise StoreError(f"input or labels of {name!r} do not fit its layout. {DAMAGED}")
        made.append(
            SampledItem(
                name,
                image,
                label,
                ignored_outputs(label, record.ignore_label),
                layouts[number],
                kept_votes(record, index, store, outputs.labels.size),
                {further: store.get_array(f"item{index}-further-{further}") for further in record.further},
                record.class_names,
            )
        )
    return made


def ignored_outputs(label: np.ndarray | None, ignore_label: int | None) -> np.ndarray | None:
    """Where the label says that an output does not count; None if all count."""
    return None if label is None or ignore_label is None else label == ignore_label
