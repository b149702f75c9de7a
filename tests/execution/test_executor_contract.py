"""The package's executors under the contract suite, and such as are wrong on purpose, which it must catch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest
import torch

from localsmooth.execution import Executor, FailedChunkError, ProcessExecutor, SerialExecutor, Session, ThreadExecutor
from localsmooth.execution.executor import attempt
from localsmooth.runs import Chunk, ChunkRecord
from localsmooth.sampling import ChunkWorker, Job
from localsmooth.testing import ExecutorContract
from tests.execution.test_fleet import MadeUpFleet


class TestSerial(ExecutorContract):
    def make(self) -> Executor:
        return SerialExecutor()


class TestThreads(ExecutorContract):
    def make(self) -> Executor:
        return ThreadExecutor(2)


class TestProcesses(ExecutorContract):
    def make(self) -> Executor:
        return ProcessExecutor(2)


class TestFleetWhoseWorkersDie(ExecutorContract):
    def make(self) -> Executor:
        return MadeUpFleet(0, deaths=0.02)


@pytest.mark.long
class TestRay(ExecutorContract):
    def make(self) -> Executor:
        pytest.importorskip("ray")
        from localsmooth.execution import RayExecutor

        return RayExecutor(workers=2)


class Wrong(Executor):
    """One after the other but for one fault."""

    def __init__(self, how: str) -> None:
        self.how = how

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        if self.how == "keeps a thread":
            torch.set_num_threads(torch.get_num_threads() + 1)
        session = WrongSession(worker, self.how)
        if self.how == "opens once":
            if hasattr(self, "opened"):
                raise RuntimeError("again")
            self.opened = True
        yield session


class WrongSession(Session):
    def __init__(self, worker: ChunkWorker, how: str) -> None:
        self.worker, self.how = worker, how
        self.capacity = 3
        self.jobs: list[Job] = []
        self.last: ChunkRecord | None = None

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def collect(self) -> ChunkRecord:
        job = self.jobs.pop(0)
        if self.how == "draws other noise":
            chunk = job.chunk
            moved = Job(Chunk(chunk.item, chunk.group, chunk.stage, chunk.index + 1, chunk.size), job.chosen)
            record = attempt(self.worker, moved)
            return ChunkRecord(chunk, record.n, record.counts, record.chosen, record.provenance)
        if self.how == "forgets what was chosen":
            job = Job(job.chunk)
        try:
            record = attempt(self.worker, job)
        except FailedChunkError as failure:
            if self.how == "raises what it gets":
                raise failure.__cause__ or failure from None
            if self.how == "swallows failures" and self.last is not None:
                return self.last
            if self.how == "names another job" and self.jobs:
                raise FailedChunkError(self.jobs[0], failure.trouble) from None
            raise
        if self.how == "repeats itself":
            self.last = self.last or record
            return self.last
        if self.how == "stops short":
            return ChunkRecord(job.chunk, record.n - 1, record.counts, record.chosen, record.provenance)
        self.last = record
        return record


def caught(executor: Executor) -> list[str]:
    """Names of the tests of the suite that fail."""
    suite, failed = type("Suite", (ExecutorContract,), {"make": lambda self: executor})(), []
    for name in (name for name in dir(suite) if name.startswith("test_")):
        try:
            getattr(suite, name)()
        except Exception:
            failed.append(name)
    return failed


def test_without_a_fault_nothing_fails() -> None:
    assert caught(Wrong("does nothing else")) == []


@pytest.mark.parametrize(
    "how",
    [
        "draws other noise",
        "forgets what was chosen",
        "raises what it gets",
        "swallows failures",
        "names another job",
        "repeats itself",
        "stops short",
        "opens once",
    ],
)
def test_faults_are_caught(how: str) -> None:
    assert caught(Wrong(how)), f"an executor that {how} passes"


def test_threads_that_stay_changed_are_caught() -> None:
    before = torch.get_num_threads()
    try:
        assert "test_torch_is_left_as_it_was" in caught(Wrong("keeps a thread"))
    finally:
        torch.set_num_threads(before)
