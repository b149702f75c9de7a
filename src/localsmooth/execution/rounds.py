"""Votes in complete rounds: what may be certified of an item before all of its samples are there."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

import numpy as np

from localsmooth.runs import (
    Chunk,
    ChunkKey,
    ChunkRecord,
    FileStore,
    MergedCounts,
    SamplingPlan,
    Stage,
    Store,
    StoreError,
)

__all__ = ["Rounds"]

_VOTES = "votes.votes"


class _Group:
    """The bound stage of one output group: votes of its first chunks, and those that are ahead of their round."""

    def __init__(self, chunks: Sequence[Chunk], stored: Container[ChunkKey]) -> None:
        self.chunks = chunks
        self.stored = {chunk.index for chunk in chunks if chunk.key in stored}
        self.ahead = dict[int, MergedCounts]()
        self.counted, self.taken, self.decided = MergedCounts(), 0, False

    @property
    def over(self) -> bool:
        return self.decided or self.taken == len(self.chunks)

    @property
    def ready(self) -> bool:
        return self.over or self.taken in self.ahead or self.taken in self.stored


class Rounds:
    """Votes of an item up to its last complete round: the r-th chunk of every output group is the r-th round.

    Groups take part in a round until their plan, or a stopping rule that hears their own votes, is at its end. What is
    there after r rounds depends on the streams of samples alone: neither on how long chunks took nor on which were
    drawn ahead. So what holds for all r at once holds for the r that one happens to look at.

    Parameters
    ----------
    plan
        The plan.
    groups
        Number of output groups of each item.
    store
        Where finished chunks are kept. Chunks from before this object are read where they are files.

    Attributes
    ----------
    tell
        Called with an item and the number of samples of its longest group, after a round of it was completed; not
        after its last one.
    """

    tell: Callable[[int, int], None] | None = None

    def __init__(self, plan: SamplingPlan, groups: Sequence[int], store: Store) -> None:
        self._plan, self._groups, self._store = plan, groups, store
        self._stored: Container[ChunkKey] = ()
        self._items: dict[int, list[_Group] | None] = {}  # None where all is there
        self._enough: set[int] = set()

    def begin(self, stored: Container[ChunkKey]) -> None:
        """Take note of which chunks are kept before any is drawn."""
        self._stored = stored if isinstance(self._store, FileStore) else ()

    def enter(self, item: int) -> None:
        """Follow an item from now on: before chunks of it are drawn."""
        if item not in self._items:
            self._items[item] = [
                _Group(list(self._plan.chunks(item, group, Stage.BOUND)), self._stored)
                for group in range(self._groups[item])
            ]
            self._advance(item)

    def end(self, item: int) -> None:
        """Draw nothing more of an item; chunks that have begun are finished."""
        self._enough.add(item)

    def ended(self, item: int) -> bool:
        """Whether nothing more of an item is to be drawn."""
        return item in self._enough

    def take(self, record: ChunkRecord) -> None:
        """Take note of a chunk that was just kept."""
        item, group, stage, index = record.chunk.key
        if stage != Stage.BOUND.value or (groups := self._items.get(item)) is None:
            return
        groups[group].ahead[index] = _votes_of(record)
        if self._advance(item) and self.tell is not None and (counted := self.counted(item)) is not None:
            self.tell(item, max(each.n for each in counted))

    def counted(self, item: int) -> list[MergedCounts] | None:
        """Votes of every output group up to the last complete round; None if there is none, or all is there."""
        self.enter(item)
        groups = self._items[item]
        return [group.counted for group in groups] if groups and all(group.taken for group in groups) else None

    def _advance(self, item: int) -> bool:
        """Complete rounds; whether one was, and others are left."""
        advanced, rule = False, self._plan.stop
        while (groups := self._items[item]) is not None and all(group.ready for group in groups):
            going = [number for number, group in enumerate(groups) if not group.over]
            if not going:
                self._items[item] = None
                return False
            for number in going:
                group = groups[number]
                group.counted = _sum(group.counted, self._next(group))
                group.taken += 1
                votes, n = group.counted.counts[_VOTES], group.counted.n
                group.decided = rule is not None and rule.decided(item, number, votes, n)
            advanced = True
        return advanced

    def _next(self, group: _Group) -> MergedCounts:
        if group.taken in group.ahead:
            return group.ahead.pop(group.taken)
        assert isinstance(self._store, FileStore)
        record = self._store.chunk(group.chunks[group.taken].key)
        if record is None:
            raise StoreError(f"the chunk {group.chunks[group.taken].key} has gone since the run began")
        return _votes_of(record)


def _votes_of(record: ChunkRecord) -> MergedCounts:
    return MergedCounts(record.n, {_VOTES: record.counts[_VOTES]}, record.chosen)


def _sum(before: MergedCounts, more: MergedCounts) -> MergedCounts:
    votes = more.counts[_VOTES].astype(np.int64)
    if before.n and before.chosen != more.chosen:
        raise StoreError("stored votes of one output group are for different candidates. Use another run directory")
    return MergedCounts(before.n + more.n, {_VOTES: before.counts[_VOTES] + votes if before.n else votes}, more.chosen)
