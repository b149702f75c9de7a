"""From the files of chunks to sums of votes: every planned chunk once, and nothing beside."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from localsmooth.evidence.ledger import Ledger, demand
from localsmooth.runs import ChunkRecord, FileStore, Stage, chosen_digest

__all__ = ["GroupVotes", "StoredPlan", "read_chunks"]

_STEP = "chunks"
_LABELS, _SUMS, _VOTES = "labels.counts", "labels.score_sums", "votes.votes"
_WITH_SCORES = {"name": "labels", "normalised": True}


@dataclass(frozen=True)
class StoredPlan:
    """What the sealed configuration of a run says about its chunks.

    Parameters
    ----------
    samples
        Planned samples of the candidate and of the bound stage.
    chunk_size
        Samples of a chunk.
    groups
        Number of output groups of each item.
    stops
        Whether groups may end before the plan.
    left_out
        Numbers of the items that are not certified, since sampling was ended before: they may lack chunks.
    candidate, bound
        What is counted in each stage: names, or descriptions of counters that have parameters.
    scale
        Steps of the scores in [0, 1] that are added up where candidates are chosen; 0 for none.
    """

    samples: tuple[int, int]
    chunk_size: int
    groups: tuple[int, ...]
    stops: bool
    candidate: tuple[str, ...]
    bound: tuple[str, ...]
    scale: int = 0
    left_out: frozenset[int] = frozenset()

    @classmethod
    def of(cls, content: Mapping[str, Any], groups: Sequence[int], begun: Sequence[int] | None) -> StoredPlan:
        """Read the plan from a sealed configuration; which items were begun, if sampling was ended, from the record."""
        plan = content["plan"]
        counters = cast("Mapping[str, Any]", content.get("counters", {}))
        scale, first = 0, counters.get("candidate", ())
        if len(first) == 1 and "score_scale" in first[0]:
            rest = {key: value for key, value in first[0].items() if key != "score_scale"}
            scale = int(first[0]["score_scale"]) if rest == _WITH_SCORES else 0
            counters = {**counters, "candidate": [{"name": "labels"}]} if scale else counters
        # Other counters with parameters count and choose more than their name says.
        names = [
            tuple(str(each["name"]) if len(each) == 1 else str(each) for each in counters.get(stage, ()))
            for stage in ("candidate", "bound")
        ]
        samples = int(plan["n_candidate"]), int(plan["n_bound"])
        stops = begun is not None or "stop" in plan
        left_out = frozenset[int]() if begun is None else frozenset(range(len(groups))) - {*begun}
        return cls(samples, int(plan["chunk_size"]), tuple(groups), stops, names[0], names[1], scale, left_out)

    def sizes(self, stage: Stage) -> list[int]:
        """Size of each chunk of a stage."""
        total = self.samples[stage.value]
        return [min(self.chunk_size, total - start) for start in range(0, total, self.chunk_size)]


@dataclass(eq=False)
class GroupVotes:
    """Votes of one output group, added up from its chunks.

    Parameters
    ----------
    labels
        How often each class was predicted in the candidate stage, by output.
    sums
        Scores of each class in the candidate stage, added up in steps, by output; None where none are counted.
    votes, n
        After each chunk of the bound stage, in order: votes for the candidate by output, and samples, added up.
    """

    labels: np.ndarray | None = None
    sums: np.ndarray | None = None
    votes: list[np.ndarray] = field(default_factory=list[np.ndarray])
    n: list[int] = field(default_factory=list[int])

    @property
    def candidate(self) -> np.ndarray:
        """The class with most votes, the first of equals."""
        assert self.labels is not None
        return np.argmax(self.labels, axis=1)

    @property
    def candidate_votes(self) -> np.ndarray:
        """How many of the candidate stage's samples were for it."""
        assert self.labels is not None
        return self.labels.max(axis=1)


def read_chunks(store: FileStore, plan: StoredPlan, ledger: Ledger) -> tuple[dict[tuple[int, int], GroupVotes], str]:
    """Read, check and add up every chunk.

    Parameters
    ----------
    store
        Where the chunks are.
    plan
        Which there must be.
    ledger
        Takes down what was checked.

    Returns
    -------
    tuple
        Votes by (item, output group) of the items that are certified, and the SHA-256 of all chunks: of the lines "name
        sha256-of-the-file", sorted.

    Raises
    ------
    DoesNotHoldError
        At the first chunk that is damaged, was not planned, is missing, or contradicts another.
    """
    made: dict[tuple[int, int], GroupVotes] = {}
    digest = hashlib.sha256()
    files = samples = further = 0
    with ledger.step(_STEP):
        by_group: dict[tuple[int, int], list[str]] = defaultdict(list)
        for name in sorted(store.files.names("chunks")):
            digest.update(f"{name} {hashlib.sha256(store.files.read(name)).hexdigest()}\n".encode())
            key = store.read_chunk(name).chunk.key  # refuses what is damaged, foreign or not named by its content
            by_group[key[:2]].append(name)
            files += 1
        wanted = {(item, group) for item, groups in enumerate(plan.groups) for group in range(groups)}
        foreign = sorted(set(by_group) - wanted)
        demand(not foreign, _STEP, f"item and output group {foreign[:1]} have chunks, and the run has no such group")
        for key in sorted(wanted):
            votes = _added(key, map(store.read_chunk, by_group.get(key, ())), plan)
            if key[0] in plan.left_out:
                further += len(by_group.get(key, ()))
                continue
            made[key] = votes
            samples += plan.samples[0] + (votes.n or [0])[-1]
    ledger.holds("chunks have the checksum, name and configuration that belong to them", files, "files")
    if plan.left_out:
        most, out = len(plan.groups), len(plan.left_out)
        ledger.holds(
            f"every planned chunk of {most - out} of {most} items is there once, and whole", samples, "samples"
        )
        what = f"chunks of the {out} items that are left out, as the record says, are whole, and were planned"
        ledger.holds(what, further, "files")
    else:
        ledger.holds("every planned chunk is there once, is whole, and no other is", samples, "samples")
    if plan.candidate == ("labels",):
        ledger.holds("votes are for the candidate that the candidate stage's tallies choose", len(made), "groups")
    else:
        ledger.leave("not checked: that votes are for what the candidate stage chose, since it chose more than a class")
    return made, digest.hexdigest()


def _added(key: tuple[int, int], records: Iterator[ChunkRecord], plan: StoredPlan) -> GroupVotes:
    """Add up the chunks of one output group."""
    made, where = GroupVotes(), f"item {key[0]}, output group {key[1]}"
    found: dict[tuple[int, int], ChunkRecord] = {record.chunk.key[2:]: record for record in records}
    sizes = {stage: plan.sizes(stage) for stage in Stage}
    known = {(stage.value, index) for stage in Stage for index in range(len(sizes[stage]))}
    further = sorted(set(found) - known)
    demand(not further, _STEP, f"{where}: chunk {further[:1]} (stage, number) was not planned")
    # Nothing votes before the candidates are settled, not even where the item is left out.
    unsettled = key[0] in plan.left_out and all(stage == Stage.CANDIDATE.value for stage, _ in found)
    for stage in Stage:
        for index, size in enumerate(sizes[stage]):
            record = found.get((stage.value, index))
            name = f"{where}: chunk {index} of the {stage.name.lower()} stage"
            if record is None and (plan.stops if stage is Stage.BOUND else unsettled):
                continue  # which of them count is another question
            demand(record is not None, _STEP, f"{name} is missing")
            assert record is not None
            whole = record.chunk.size == record.n == size
            demand(whole, _STEP, f"{name} holds {record.n} of {record.chunk.size} samples, and {size} were planned")
            if stage is Stage.CANDIDATE:
                _add_labels(made, record, name)
            elif index == len(made.n):  # the first ones in a row
                _add_votes(made, record, name)
    if plan.candidate == ("labels",) and made.labels is not None:
        classes = made.labels.shape[1]
        chosen = made.candidate.astype(np.int16 if classes <= 2**15 else np.int32)
        digest = chosen_digest({"candidate": chosen} | _reference(made, plan, where))
        for (stage, index), record in found.items():
            expected = digest if stage == Stage.BOUND.value else ""
            demand(record.chosen == expected, _STEP, f"{where}: chunk {index} votes for other candidates than chosen")
    return made


def _reference(made: GroupVotes, plan: StoredPlan, where: str) -> dict[str, np.ndarray]:
    """The mean score of the candidate, which is chosen beside it where scores are counted."""
    if not plan.scale:
        return {}
    whole = made.sums is not None and bool((made.sums >= 0).all())
    demand(whole, _STEP, f"{where}: the candidate stage has no sums of scores")
    assert made.sums is not None
    return {"reference": made.sums[np.arange(len(made.sums)), made.candidate] / (plan.samples[0] * plan.scale)}


def _add_labels(made: GroupVotes, record: ChunkRecord, name: str) -> None:
    if _LABELS not in record.counts:
        return
    counts = record.counts[_LABELS]
    demand(counts.ndim == 2 and counts.dtype.kind in "iu", _STEP, f"{name} holds no counts of classes")
    counts = counts.astype(np.int64)
    whole = bool((counts >= 0).all() and (counts.sum(axis=1) == record.n).all())
    demand(whole, _STEP, f"{name} does not count every output {record.n} times")
    demand(made.labels is None or made.labels.shape == counts.shape, _STEP, f"{name} counts other outputs")
    made.labels = counts if made.labels is None else made.labels + counts
    if _SUMS in record.counts:
        sums = record.counts[_SUMS]
        fits = sums.shape == counts.shape and sums.dtype.kind in "iu"
        demand(fits, _STEP, f"{name} holds no sums of scores of all outputs and classes")
        made.sums = sums.astype(np.int64) if made.sums is None else made.sums + sums


def _add_votes(made: GroupVotes, record: ChunkRecord, name: str) -> None:
    if _VOTES not in record.counts:
        return
    votes = record.counts[_VOTES]
    demand(votes.ndim == 1 and votes.dtype.kind in "iu", _STEP, f"{name} holds no votes")
    votes = votes.astype(np.int64)
    demand(bool(((votes >= 0) & (votes <= record.n)).all()), _STEP, f"{name} has votes outside 0 … {record.n}")
    fits = made.labels is None or made.labels.shape[0] == votes.size
    demand(fits and (not made.votes or made.votes[0].size == votes.size), _STEP, f"{name} counts other outputs")
    made.votes.append(votes + made.votes[-1] if made.votes else votes)
    made.n.append(record.n + (made.n[-1] if made.n else 0))
