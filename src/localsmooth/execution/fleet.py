"""Keep workers elsewhere busy: hand out jobs, replace workers that die, give slow chunks to a second worker.

What a worker is (a process, an actor on another machine) and how one talks to it is a `Crew`'s business.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from statistics import median

from localsmooth.errors import LocalsmoothError
from localsmooth.execution.executor import FailedChunkError, Session, Trouble
from localsmooth.runs import Chunk, ChunkKey, ChunkRecord
from localsmooth.sampling import Job

__all__ = ["Crew", "Done", "Event", "FleetSession", "Lost", "Ready", "WorkerError"]

_DEPTH = 2  # jobs that a worker holds: one in work and one at hand, so that it never waits for the store
_MOST_BAD_STARTS = 3  # workers that may fail to start, one after the other
_SLOW = 3.0  # times the median: a chunk that takes longer is given to a second worker, if one has nothing to do
_SHORTEST_DELAY = 2.0  # seconds before a chunk can be called slow
_PATIENCE = 1.0  # seconds between two looks for slow chunks
_FEWEST, _HISTORY = 3, 101  # finished chunks of a stage that make its median
_HUNG, _SHORTEST_LIMIT = 100.0, 600.0  # times the median, and seconds, after which a worker is given up


class WorkerError(LocalsmoothError):
    """Workers cannot be started."""

    @classmethod
    def of(cls, trouble: Trouble) -> WorkerError:
        """Make one from the trouble of a worker that runs and cannot load the model: the next one could not either."""
        return cls(f"a worker cannot load the model: {trouble.kind}: {trouble.message}\n{trouble.details}")


@dataclass(frozen=True)
class Ready:
    """A worker has received the model and waits for jobs."""

    worker: Hashable


@dataclass(frozen=True)
class Done:
    """A worker has finished the first of its jobs, well or not; or it has received the model and cannot load it."""

    worker: Hashable
    outcome: ChunkRecord | Trouble


@dataclass(frozen=True)
class Lost:
    """A worker is no more; nothing else is heard of it."""

    worker: Hashable
    reason: str


Event = Ready | Done | Lost


class Crew(ABC):
    """A number of workers that each do one job after the other, in the order in which they are sent."""

    @abstractmethod
    def start(self) -> Hashable:
        """Start one more worker, without waiting for it."""

    @abstractmethod
    def send(self, worker: Hashable, job: Job) -> None:
        """Give a job to a worker that is ready; if it has died, `wait` says so."""

    @abstractmethod
    def end(self, worker: Hashable) -> None:
        """End a worker at once, whatever it is at; `wait` says that it is lost."""

    @abstractmethod
    def wait(self, seconds: float | None) -> Sequence[Event]:
        """What happened since the last call; waits for something to happen, at most so long."""


@dataclass(eq=False)
class _Worker:
    """What is known of a worker."""

    ready: bool = False
    jobs: deque[Job] = field(default_factory=deque[Job])  # the first is in work
    since: float = 0.0  # when the first was begun
    hung: tuple[ChunkKey, str] | None = None  # the chunk for which it was ended, and why


class FleetSession(Session):
    """Hands jobs to a crew; a chunk that was given to two workers comes out once.

    Parameters
    ----------
    crew
        The workers, none of them started.
    workers
        How many to keep.
    clock
        Seconds. Decides nothing but when a chunk counts as slow, or its worker as hung.
    chunk_time_limit
        Seconds that a chunk may take before its worker is ended and replaced; by default a hundred times the median of
        its stage, and ten minutes at least, once a few chunks are known.
    """

    def __init__(
        self,
        crew: Crew,
        workers: int,
        clock: Callable[[], float] = time.monotonic,
        chunk_time_limit: float | None = None,
    ) -> None:
        self.capacity = _DEPTH * workers
        self._crew = crew
        self._clock = clock
        self._limit = chunk_time_limit
        self._queue: deque[Job] = deque()
        self._out: deque[ChunkRecord | FailedChunkError] = deque()
        self._workers: dict[Hashable, _Worker] = {}
        self._open: set[ChunkKey] = set()  # in flight, in any number of copies
        self._bad_starts = 0
        self._durations: dict[int, deque[float]] = {}
        for _ in range(workers):
            self._workers[crew.start()] = _Worker()

    @property
    def ready(self) -> int:
        """How many workers have the model."""
        return sum(worker.ready for worker in self._workers.values())

    def submit(self, job: Job) -> None:
        """Put a job in the queue; it leaves for a worker while results are waited for."""
        self._open.add(job.chunk.key)
        self._queue.append(job)

    def collect(self) -> ChunkRecord:
        """Wait for a chunk.

        Raises
        ------
        FailedChunkError
            If it could not be drawn, or the worker died while drawing it.
        WorkerError
            If workers die before they are ready, or cannot load the model.
        """
        self._hand_out()
        wait = 0.0  # what has happened comes first: a second copy is made only for a worker that has nothing to do
        while not self._out:
            for event in self._crew.wait(wait):
                self._take(event)
            if not self._out:
                self._hand_out()
                self._double()
            limited = self._end_hung()  # after all that workers have said
            if self._out:
                break
            # Somebody has nothing to do while others work: look again, in case they are slow or hang.
            idle = any(worker.ready and not worker.jobs for worker in self._workers.values())
            wait = _PATIENCE if idle or limited else None
        result = self._out.popleft()
        if isinstance(result, FailedChunkError):
            raise result
        return result

    def _take(self, event: Event) -> None:
        worker = self._workers.get(event.worker)
        if worker is None:
            return
        if isinstance(event, Ready):
            worker.ready = True
            self._bad_starts = 0
        elif isinstance(event, Done):
            if not worker.ready:  # the same would happen to the next one
                assert isinstance(event.outcome, Trouble)
                raise WorkerError.of(event.outcome)
            self._finish(worker, event.outcome)
        else:
            del self._workers[event.worker]
            self._replace(worker, event.reason)

    def _finish(self, worker: _Worker, outcome: ChunkRecord | Trouble) -> None:
        now = self._clock()
        job, elapsed = worker.jobs.popleft(), now - worker.since
        worker.since = now
        if isinstance(outcome, Trouble):
            self._fail(job, outcome)
        elif job.chunk.key in self._open:  # else another copy was faster
            self._durations.setdefault(job.chunk.stage, deque(maxlen=_HISTORY)).append(elapsed / job.chunk.size)
            self._open.discard(job.chunk.key)
            self._out.append(outcome)

    def _fail(self, job: Job, trouble: Trouble) -> None:
        key = job.chunk.key
        if key in self._open and key not in self._held():  # else another copy may still succeed
            self._open.discard(key)
            self._out.append(FailedChunkError(job, trouble))

    def _replace(self, worker: _Worker, reason: str) -> None:
        if not worker.ready:
            self._bad_starts += 1
            if self._bad_starts >= _MOST_BAD_STARTS:
                raise WorkerError(f"{self._bad_starts} workers in a row could not be started. The last one: {reason}")
        self._workers[self._crew.start()] = _Worker()
        trouble, first = Trouble("WorkerDied", reason, died=True), worker.jobs[0].chunk.key if worker.jobs else None
        if worker.hung is not None:
            key, reason = worker.hung
            trouble = Trouble("ChunkHung", reason)
            first = None if first != key else first  # it was done just before the end: none of the others is at fault
        if first is not None:  # the first was in work, the others waited
            self._fail(worker.jobs.popleft(), trouble)
        held = self._held()
        self._queue.extendleft(
            job for job in reversed(worker.jobs) if job.chunk.key in self._open and job.chunk.key not in held
        )

    def _held(self) -> set[ChunkKey]:
        """Chunks that some worker has."""
        return {job.chunk.key for worker in self._workers.values() for job in worker.jobs}

    def _hand_out(self) -> None:
        """Every worker gets one job before any gets two."""
        while self._queue:
            free = [(len(w.jobs), name) for name, w in self._workers.items() if w.ready and len(w.jobs) < _DEPTH]
            if not free:
                return
            fewest = min(count for count, _ in free)
            self._give(next(name for count, name in free if count == fewest), self._queue.popleft())

    def _give(self, name: Hashable, job: Job) -> None:
        worker = self._workers[name]
        if not worker.jobs:
            worker.since = self._clock()
        worker.jobs.append(job)
        self._crew.send(name, job)

    def _double(self) -> None:
        """Give workers that have nothing to do what others do not come to, or are slow with."""
        if self._queue:
            return
        for name, worker in self._workers.items():
            if worker.ready and not worker.jobs and (job := self._worth_doubling()) is not None:
                self._give(name, job)

    def _worth_doubling(self) -> Job | None:
        held = [job.chunk.key for worker in self._workers.values() for job in worker.jobs]
        single = {key for key in held if held.count(key) == 1} & self._open
        for worker in self._workers.values():
            for job in list(worker.jobs)[1:]:
                if job.chunk.key in single:
                    return job
        slow = [worker for worker in self._workers.values() if worker.jobs and self._is_slow(worker)]
        for worker in sorted(slow, key=lambda worker: worker.since):
            if worker.jobs[0].chunk.key in single:
                return worker.jobs[0]
        return None

    def _is_slow(self, worker: _Worker) -> bool:
        usual = self._usual(worker.jobs[0].chunk)
        return usual is not None and self._clock() - worker.since > max(_SLOW * usual, _SHORTEST_DELAY)

    def _usual(self, chunk: Chunk) -> float | None:
        """Seconds that such a chunk takes; None before a few are known."""
        durations = self._durations.get(chunk.stage)
        return median(durations) * chunk.size if durations is not None and len(durations) >= _FEWEST else None

    def _end_hung(self) -> bool:
        """End workers that have been at one chunk for too long; returns whether any chunk in work has a limit."""
        limited = False
        for name, worker in self._workers.items():
            if not worker.jobs or worker.hung is not None:
                continue
            chunk, limit = worker.jobs[0].chunk, self._limit
            if limit is None and (usual := self._usual(chunk)) is not None:
                limit = max(_HUNG * usual, _SHORTEST_LIMIT)
            if limit is None:
                continue
            limited = True
            if self._clock() - worker.since > limit:
                worker.hung = chunk.key, f"it was not done after {limit:.4g} s, and its worker was ended"
                self._crew.end(name)
        return limited
