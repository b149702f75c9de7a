"""What a run keeps to be certified again, against its chunks and its sealed configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from localsmooth.certificates import OutputVotes
from localsmooth.evidence.chunks import GroupVotes
from localsmooth.evidence.ledger import Ledger, demand
from localsmooth.layout import Layout
from localsmooth.runs import DirectoryStore, digest
from localsmooth.tasks import RunRecord
from localsmooth.tasks.arrays import SampledItem

__all__ = ["check_items", "check_votes"]

_STEP = "items"
_TYPES = {"torch.float32": np.float32, "torch.float64": np.float64}


def check_items(
    items: list[SampledItem],
    record: RunRecord,
    store: DirectoryStore,
    groups: Mapping[tuple[int, int], GroupVotes],
    ledger: Ledger,
) -> None:
    """Compare inputs, layouts and votes that are kept with what was sealed and counted.

    Parameters
    ----------
    items
        The items as they are certified.
    record
        The run's record.
    store
        Where they are kept.
    groups
        Votes by (item, output group), from the chunks.
    ledger
        Takes down what was checked.

    Raises
    ------
    DoesNotHoldError
        At the first one that differs.
    """
    content: Mapping[str, Any] = {} if store.configuration is None else store.configuration.content
    sealed = content.get("items", [])
    with ledger.step(_STEP):
        for index, (number, item) in enumerate(zip(record.certified_items, items, strict=True)):
            own = sealed[number]
            kind = _TYPES.get(own["precision"], item.image.dtype.type)
            seen = digest(np.asarray(item.image, kind))
            demand(seen == own["content"], _STEP, f"{item.name}: the input is not the one that was sampled")
            _check_layout(item.layout, record.kept_items[index][1], own["layout"], store)
            check_votes(item.name, item.layout.outputs.labels.ravel(), item.votes, groups, ledger, number)
    ledger.holds("inputs and layouts are those of the sealed configuration", len(items), "items")
    ledger.holds("votes and candidates that are certified are the sums of the chunks", len(items), "items")
    if record.labelled:
        ledger.holds(
            "labels have a checksum of their own (whether they are right is taken on trust)", len(items), "items"
        )


def _check_layout(layout: Layout, number: int, sealed: str, store: DirectoryStore) -> None:
    name = f"layout{number}-views"
    views = store.get_array(name).tobytes() if store.has_array(name) else b""
    demand(
        layout.digest(views) == sealed,
        _STEP,
        f"layout {number} is not the one that was sampled. (Earlier versions did not keep what is needed to compare "
        "windows and masks: certify into the directory again, which draws nothing, and verify then)",
    )


def check_votes(
    name: str,
    labels: Int[np.ndarray, "outputs"],
    votes: OutputVotes,
    counted: Mapping[tuple[int, int], GroupVotes],
    ledger: Ledger,
    number: int = 0,
) -> None:
    """Compare votes and candidates that are kept with the sums of the chunks.

    Parameters
    ----------
    name
        The item's name.
    labels
        Output group of each output.
    votes
        What is kept.
    counted
        Votes by (item, output group), from the chunks.
    ledger
        Takes down what is not kept.
    number
        Number of the item among all that were sampled.

    Raises
    ------
    DoesNotHoldError
        At the first one that differs.
    """
    if votes.candidate_votes is None:
        ledger.leave(
            f"not checked: {name}: whether its rule and priors are those that follow from the candidate "
            "stage, whose votes it does not keep (earlier versions did not)"
        )
    groups = {group: each for (of, group), each in counted.items() if of == number}
    first = [] if votes.candidate_votes is None else [votes.candidate_votes.votes]
    numbers = [votes.votes, votes.candidate, np.asarray(votes.n), *first]
    whole = all(each.dtype.kind in "iu" for each in numbers)
    demand(whole, _STEP, f"{name}: votes or candidates are no whole numbers")
    n = np.broadcast_to(np.asarray(votes.n, np.int64), labels.shape)
    demand(set(np.unique(labels).tolist()) == set(groups), _STEP, f"{name}: groups are not those of the chunks")
    rounds: set[int] = set()
    for group, chunks in groups.items():
        members = np.flatnonzero(labels == group)
        where = f"{name}, output group {group}"
        demand(chunks.labels is not None and bool(chunks.votes), _STEP, f"{where} has no votes")
        assert chunks.labels is not None
        fits = chunks.labels.shape[0] == members.size
        demand(fits, _STEP, f"{where}: the chunks count {chunks.labels.shape[0]} outputs, the layout {members.size}")
        total = int(n[members[0]])
        demand(
            bool((n[members] == total).all()) and total in chunks.n, _STEP, f"{where}: no chunks make {total} samples"
        )
        at = chunks.n.index(total)
        rounds.add(at)
        same = np.array_equal(votes.votes[members].astype(np.int64), chunks.votes[at])
        demand(same, _STEP, f"{where}: votes are not the sum of the chunks")
        same = np.array_equal(votes.candidate[members].astype(np.int64), chunks.candidate)
        demand(same, _STEP, f"{where}: candidates are not those of the candidate stage")
        if votes.candidate_votes is not None:
            same = np.array_equal(votes.candidate_votes.votes[members].astype(np.int64), chunks.candidate_votes)
            demand(same, _STEP, f"{where}: votes of the candidate stage are not the sum of the chunks")
    if votes.ended:
        demand(len(rounds) == 1, _STEP, f"{name}: groups were cut after different numbers of rounds")
