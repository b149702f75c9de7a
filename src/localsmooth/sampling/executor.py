"""Where chunks run: in this process here; a pool or a cluster implements the same few methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from localsmooth.sampling.engine import ChunkWorker, Task
from localsmooth.sampling.record import ChunkRecord

__all__ = ["Executor", "SerialExecutor", "Session"]


class Session(ABC):
    """A worker at work: tasks go in, at most `capacity` at a time, and finished chunks come out in any order."""

    capacity: int
    """How many tasks may be in flight (submitted and not collected)."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Take on a task; never more than `capacity` at a time."""

    @abstractmethod
    def collect(self) -> ChunkRecord:
        """Wait for one of the tasks in flight and return its chunk; raise what went wrong with it."""


class Executor(ABC):
    """A place to work off chunks."""

    @abstractmethod
    def open(self, worker: ChunkWorker) -> AbstractContextManager[Session]:
        """Bring the worker to where it will run; leaving the context drops what is in flight."""

    def conditions(self) -> AbstractContextManager[None]:
        """A context in which this process runs the model as the workers will, for a calibration."""
        return nullcontext()


class SerialExecutor(Executor):
    """One chunk after the other, in this process."""

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        """Work in the calling thread."""
        yield _SerialSession(worker)


class _SerialSession(Session):
    capacity = 1

    def __init__(self, worker: ChunkWorker) -> None:
        self._worker = worker
        self._tasks: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def collect(self) -> ChunkRecord:
        return self._worker(self._tasks.popleft())
