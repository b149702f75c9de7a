"""How far the bound stage of one output group has come under a stopping rule."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from localsmooth.runs import Chunk, ChunkRecord, MergedCounts, SamplingPlan

__all__ = ["GroupProgress"]


class GroupProgress:
    """The bound stage of one output group under a stopping rule.

    Chunks may be drawn ahead and out of order. They are taken in the order of their numbers only, and none is taken
    after the rule has decided, so that a store holds exactly the samples that count.

    Parameters
    ----------
    plan
        The plan, with its rule.
    chunks
        All chunks of the stage, in order.
    finished
        Numbers of the chunks that are in the store.
    merged
        What those hold.
    """

    def __init__(
        self, plan: SamplingPlan, chunks: Sequence[Chunk], finished: frozenset[int], merged: MergedCounts
    ) -> None:
        assert plan.stop is not None
        self._rule = plan.stop
        self._place = chunks[0].item, chunks[0].group
        self._taken = len(finished)
        self._missing = deque(chunk for chunk in chunks if chunk.index not in finished)
        self._to_draw = deque(self._missing)
        self._early: dict[int, ChunkRecord] = {}
        self._lost: dict[int, Chunk] = {}
        self._n = merged.n
        self._votes = merged.counts["votes.votes"].astype(np.int64) if merged.n else np.zeros(1, dtype=np.int64)
        self.in_flight = 0
        self.decided = self._decide()

    @property
    def to_draw(self) -> bool:
        """Whether another chunk could be drawn; none is drawn behind one that cannot be had."""
        return bool(self._to_draw) and not self._lost

    @property
    def over(self) -> bool:
        """Whether no chunk is needed any more."""
        return self.decided or not self._missing

    @property
    def stuck(self) -> bool:
        """Whether the next chunk to take cannot be had, so that the group cannot come to an end."""
        return not self.over and self._missing[0].index in self._lost

    @property
    def lost(self) -> list[Chunk]:
        """Chunks that could not be drawn."""
        return list(self._lost.values())

    @property
    def skipped(self) -> int:
        """Samples that are not needed; 0 before the decision."""
        return sum(chunk.size for chunk in self._missing) if self.decided else 0

    def draw(self) -> Chunk:
        """The next chunk to draw."""
        self.in_flight += 1
        return self._to_draw.popleft()

    def lose(self, chunk: Chunk) -> None:
        """A chunk that was to be drawn cannot be had; without it the group may still be decided by those before."""
        self.in_flight -= 1
        self._lost[chunk.index] = chunk

    def take(self, record: ChunkRecord) -> list[ChunkRecord]:
        """Take a drawn chunk; returns those that count and can be kept now, in order."""
        self.in_flight -= 1
        self._early[record.chunk.index] = record
        kept: list[ChunkRecord] = []
        while not self.over and self._missing[0].index in self._early:
            taken = self._early.pop(self._missing.popleft().index)
            kept.append(taken)
            self._taken += 1
            self._n += taken.n
            self._votes = self._votes + taken.counts["votes.votes"]
            self.decided = self._decide()
        return kept

    def _decide(self) -> bool:
        # Where a file was deleted by hand, what the store holds is no prefix: the gap is filled before the rule looks.
        gap = bool(self._missing) and self._missing[0].index < self._taken
        return self._n > 0 and not gap and self._rule.decided(*self._place, self._votes, self._n)
