"""Where chunks run: in this process here; threads, processes and clusters implement the same few methods."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch

from localsmooth.errors import InvalidInputError, LocalsmoothError
from localsmooth.runs import ChunkRecord
from localsmooth.sampling import ChunkWorker, Job

__all__ = ["Executor", "FailedChunkError", "SerialExecutor", "Session", "Trouble", "attempt", "one_thread", "outcome"]


@dataclass(frozen=True)
class Trouble:
    """What went wrong with a chunk, in words that can travel between processes (an exception may not).

    Parameters
    ----------
    kind
        Name of the exception's class.
    message
        Its text.
    details
        The traceback, where it was raised.
    invalid
        Field, problem and remedy, if it says that an argument cannot be used: then no other chunk will do better.
    died
        Whether the process that drew it came to an end.
    """

    kind: str
    message: str
    details: str = ""
    invalid: tuple[str, str, str] | None = None
    died: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Trouble:
        """Describe an exception."""
        invalid = (error.field, error.problem, error.remedy) if isinstance(error, InvalidInputError) else None
        details = "".join(traceback.format_exception(error))
        return cls(type(error).__name__, str(error), details, invalid)


class FailedChunkError(LocalsmoothError):
    """A chunk could not be drawn.

    Parameters
    ----------
    job
        Which one.
    trouble
        Why.
    """

    def __init__(self, job: Job, trouble: Trouble) -> None:
        self.job = job
        self.trouble = trouble
        super().__init__(f"{trouble.kind}: {trouble.message}")


def attempt(worker: ChunkWorker, job: Job) -> ChunkRecord:
    """Draw a chunk.

    Raises
    ------
    FailedChunkError
        If anything goes wrong with it, from what went wrong.
    """
    try:
        return worker(job)
    except Exception as error:
        raise FailedChunkError(job, Trouble.of(error)) from error


def outcome(worker: ChunkWorker, job: Job) -> ChunkRecord | Trouble:
    """Draw a chunk in a process of its own, which lives on whatever happens, SystemExit in a model included."""
    try:
        return worker(job)
    except BaseException as error:
        return Trouble.of(error)


class Session(ABC):
    """Workers at work: jobs go in, at most `capacity` at a time, and finished chunks come out in any order."""

    capacity: int
    """How many jobs may be in flight (submitted and not collected)."""

    @abstractmethod
    def submit(self, job: Job) -> None:
        """Take on a job; never more than `capacity` at a time, and never one that is in flight."""

    @abstractmethod
    def collect(self) -> ChunkRecord:
        """Wait for one of the jobs in flight and return its chunk.

        Raises
        ------
        FailedChunkError
            If it could not be drawn. The job is not in flight any more, and may be submitted again.
        """


class Executor(ABC):
    """A place to work off chunks."""

    local: bool = True
    """Whether all chunks are drawn on this machine."""

    @abstractmethod
    def open(self, worker: ChunkWorker) -> AbstractContextManager[Session]:
        """Bring the worker to where it will run; leaving the context drops what is in flight."""

    def conditions(self) -> AbstractContextManager[None]:
        """A context in which this process runs the model as the workers will, for a calibration."""
        return nullcontext()


@contextmanager
def one_thread() -> Generator[None]:
    """One core for each forward pass in this process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
        self._tasks: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        self._tasks.append(job)

    def collect(self) -> ChunkRecord:
        return attempt(self._worker, self._tasks.popleft())
