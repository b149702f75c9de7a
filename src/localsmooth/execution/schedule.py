"""Which chunks of a plan are missing, and which of them can be drawn now."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import count

import numpy as np
from jaxtyping import Float

from localsmooth.execution.group_progress import GroupProgress
from localsmooth.execution.part import Part
from localsmooth.execution.rounds import Rounds
from localsmooth.layout import Layout
from localsmooth.runs import Chunk, ChunkRecord, SamplingPlan, Stage, Store, StoreError
from localsmooth.sampling import Job, Subject, choose, groups_of, require_choice, settled

__all__ = ["Schedule"]


class Schedule:
    """Which chunks are missing, and which of them can be drawn now: a bound chunk waits for its candidates.

    Parameters
    ----------
    subject
        What is drawn.
    plan
        How much of it.
    store
        Where finished chunks are kept.
    part
        Which output groups are drawn; all by default.
    forget_counts
        Whether a store in memory may forget how often each class was predicted, once the candidates are chosen.
    rounds
        Told of every chunk that is kept; an item's output groups then get ahead together, one chunk each after the
        other, rather than one group after the other.

    Raises
    ------
    StoreError
        If the store holds chunks that do not belong to the plan.
    """

    def __init__(
        self,
        subject: Subject,
        plan: SamplingPlan,
        store: Store,
        part: Part | None = None,
        forget_counts: bool = False,
        rounds: Rounds | None = None,
    ) -> None:
        self._subject = subject
        self._plan = plan
        self.store = store
        self._forget_counts = forget_counts
        self._finished = store.finished()
        groups = groups_of(subject)
        present = {
            chunk.key: chunk.size
            for item, group in groups
            for stage in Stage
            for chunk in plan.chunks(item, group, stage)
        }
        if store.configuration is not None and store.configuration.first is not None:
            # The last chunk of fewer samples is drawn again in full, from its own stream: its samples are the same.
            self._finished = {
                key: kept
                for key, kept in self._finished.items()
                if key[2] != Stage.BOUND.value or not kept.n == kept.size < present.get(key, 0)
            }
        for key, kept in self._finished.items():
            if kept.n != kept.size or present.get(key) != kept.size:
                raise StoreError(f"the stored chunk {key} with {kept.n} samples does not belong to the plan")
        self._rounds = rounds
        if rounds is not None:
            rounds.begin(self._finished)
        self._drawn: Counter[tuple[int, int]] = Counter()
        self._voted: dict[tuple[int, int], set[str]] = {}
        for key, kept in self._finished.items():
            self._drawn[key[:2]] += kept.n
            if key[2] == Stage.BOUND.value:
                self._voted.setdefault(key[:2], set()).add(kept.chosen)
        own = [place for number, place in enumerate(groups) if part is None or part.holds(number)]
        self.total = len(own) * (plan.n_candidate + plan.n_bound)
        self.missing = sum(self._missing(*place) for place in own)
        self._shown = _shown(subject.layouts)
        each = plan.n_candidate + plan.n_bound
        self.passes = sum(float(self._shown[item][group]) * each for item, group in own)
        self.passes_missing = sum(float(self._shown[item][group]) * self._missing(item, group) for item, group in own)
        self.elsewhere = sum(self._missing(*place) for place in groups) - self.missing
        self.not_needed: list[Chunk] = []  # chunks that were given up, and that nothing depends on any more
        self.committed = 0  # samples stored since the start
        self._stuck: set[tuple[int, int]] = set()
        self._groups = deque(own)
        self._candidates: deque[Chunk] = deque()
        self._ready: list[tuple[tuple[int, ...], int, Job]] = []  # a heap
        self._entries = count()
        self._waiting: dict[tuple[int, int], int] = {}
        self._open: dict[tuple[int, int], tuple[GroupProgress, Mapping[str, np.ndarray]]] = {}

    def next(self) -> Job | None:
        """A job that can start now; None if there is none before something in flight is done, or none at all."""
        while not self._any_ready() and not self._candidates and self._groups:
            item = self._groups[0][0]
            self._enter(*self._groups.popleft())
            while self._rounds is not None and self._groups and self._groups[0][0] == item:
                self._enter(*self._groups.popleft())
        if self._candidates and (self._rounds is not None or not self._ready):
            return Job(self._candidates.popleft())
        if self._ready:
            return heapq.heappop(self._ready)[2]
        # Nothing else is left to do: draw ahead where it is open whether the samples will count.
        ahead = [
            (progress, chosen)
            for (item, _), (progress, chosen) in self._open.items()
            if progress.to_draw and not self._ended(item)
        ]
        if not ahead:
            return None
        progress, chosen = min(ahead, key=lambda entry: entry[0].in_flight)
        return Job(progress.draw(), chosen)

    def passes_of(self, chunk: Chunk) -> float:
        """Passes over a whole item that one sample of a chunk is worth."""
        return float(self._shown[chunk.item][chunk.group])

    def _ended(self, item: int) -> bool:
        return self._rounds is not None and self._rounds.ended(item)

    def _any_ready(self) -> bool:
        """Whether a job can start now; those of items that have enough samples are left out."""
        while self._ready and self._ended(self._ready[0][2].chunk.item):
            heapq.heappop(self._ready)
        return bool(self._ready)

    def done(self, record: ChunkRecord) -> int:
        """Keep a drawn chunk if it counts; returns how many samples fewer are missing now."""
        fewer = self._done(record)
        self.passes_missing -= fewer * self.passes_of(record.chunk)
        return fewer

    def _done(self, record: ChunkRecord) -> int:
        if self._plan.stop is not None and record.chunk.stage == Stage.BOUND.value:
            return self._done_with_rule(record)
        self._commit(record)
        chunk = record.chunk
        if chunk.stage == Stage.CANDIDATE.value:
            place = chunk.item, chunk.group
            self._waiting[place] -= 1
            if not self._waiting[place]:
                self._release(*place)
        return record.n

    def _commit(self, record: ChunkRecord) -> None:
        if self.store.commit(record):
            self.committed += record.n
            if self._rounds is not None:
                self._rounds.take(record)

    def _start(self, job: Job) -> None:
        """Let a job of the bound stage be drawn: in its turn, or in its round."""
        item, group, _, index = job.chunk.key
        order = () if self._rounds is None else (item, index, group)
        heapq.heappush(self._ready, (order, next(self._entries), job))

    def give_up(self, chunk: Chunk) -> None:
        """Go on without a chunk that cannot be drawn: what depends on it stays missing."""
        place = chunk.item, chunk.group
        if self._plan.stop is None or chunk.stage == Stage.CANDIDATE.value:
            return
        if place not in self._open:
            if place not in self._stuck:
                self.not_needed.append(chunk)  # drawn ahead, in vain
            return
        progress, _ = self._open[place]
        progress.lose(chunk)
        if progress.stuck:
            self._close(place)

    def _close(self, place: tuple[int, int]) -> None:
        progress, _ = self._open.pop(place)
        if progress.over:
            self.not_needed.extend(progress.lost)
        else:
            self._stuck.add(place)

    def _done_with_rule(self, record: ChunkRecord) -> int:
        place = record.chunk.item, record.chunk.group
        if place not in self._open:
            return 0  # drawn ahead, in vain
        progress, chosen = self._open[place]
        kept = progress.take(record)
        for taken in kept:
            self._commit(taken)
        if progress.over or progress.stuck:
            self._close(place)
        elif not progress.in_flight and progress.to_draw:
            self._start(Job(progress.draw(), chosen))
        return sum(taken.n for taken in kept) + progress.skipped

    def _missing(self, item: int, group: int) -> int:
        """Samples of an output group that are neither there nor known to be superfluous."""
        missing = self._plan.n_candidate + self._plan.n_bound - self._drawn[item, group]
        if self._plan.stop is None or (item, group) not in self._voted:
            return missing
        return missing - self._progress(item, group).skipped

    def _progress(self, item: int, group: int) -> GroupProgress:
        chunks = list(self._plan.chunks(item, group, Stage.BOUND))
        finished = frozenset(chunk.index for chunk in chunks if chunk.key in self._finished)
        return GroupProgress(self._plan, chunks, finished, self.store.merged(item, group, Stage.BOUND))

    def _absent(self, item: int, group: int, stage: Stage) -> list[Chunk]:
        return [c for c in self._plan.chunks(item, group, stage) if c.key not in self._finished]

    def _enter(self, item: int, group: int) -> None:
        if self._rounds is not None:
            self._rounds.enter(item)
        absent = self._absent(item, group, Stage.CANDIDATE)
        self._waiting[item, group] = len(absent)
        self._candidates.extend(absent)
        if not absent:
            self._release(item, group)

    def _release(self, item: int, group: int) -> None:
        """The candidate stage of a group is complete: let its bound stage go on from what it chose."""
        del self._waiting[item, group]
        merged = self.store.merged(item, group, Stage.CANDIDATE)
        chosen = choose(self._subject.counters, merged)
        for voted in self._voted.get((item, group), ()):
            require_choice(item, group, chosen, voted)
        if self._forget_counts:
            self.store.settle(item, group, Stage.CANDIDATE, settled(merged, chosen))
        if self._plan.stop is None:
            for chunk in self._absent(item, group, Stage.BOUND):
                self._start(Job(chunk, chosen))
        elif not (progress := self._progress(item, group)).over:
            self._open[item, group] = progress, chosen
            self._start(Job(progress.draw(), chosen))


def _shown(layouts: Sequence[Layout]) -> list[Float[np.ndarray, " output_groups"]]:
    """Share of a pass that a sample of each output group takes, by item."""
    known = {id(layout): layout.shown for layout in {id(layout): layout for layout in layouts}.values()}
    return [known[id(layout)] for layout in layouts]
