"""Chunks side by side in threads of this process, each with one core to itself."""

from __future__ import annotations

import os
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from threading import Lock, local

import torch

from localsmooth.errors import require_whole_number
from localsmooth.execution.executor import Executor, SerialExecutor, Session, attempt, one_thread
from localsmooth.runs import ChunkRecord
from localsmooth.sampling import ChunkWorker, Job, Subject

__all__ = ["ThreadExecutor", "default_executor"]


class ThreadExecutor(Executor):
    """Several chunks at once, one core each.

    On a CPU this beats one chunk at a time on all cores: small layers spend much of their time waiting for each
    other's threads, and much more where other programs use the cores too.

    Parameters
    ----------
    workers
        Number of chunks at once; the number of torch's threads by default.

    Raises
    ------
    InvalidInputError
        If there is no worker.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = torch.get_num_threads() if workers is None else workers
        require_whole_number("workers", self.workers, 1, "Pass at least 1")

    def conditions(self) -> AbstractContextManager[None]:
        """One core for each forward pass."""
        return one_thread()

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        """Start the threads; leaving waits for the chunks that are being drawn and drops the others."""
        with self.conditions():
            pool = ThreadPoolExecutor(self.workers, thread_name_prefix="localsmooth")
            try:
                yield _ThreadSession(worker, pool, self.workers)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


class _ThreadSession(Session):
    def __init__(self, worker: ChunkWorker, pool: ThreadPoolExecutor, workers: int) -> None:
        self.capacity = 2 * workers  # one more each than can be worked on, so that no thread waits for the store
        self._worker = worker
        self._pool = pool
        self._own = local()
        self._copying = Lock()
        self._futures: set[Future[ChunkRecord]] = set()

    def submit(self, job: Job) -> None:
        self._futures.add(self._pool.submit(self._work, job))

    def collect(self) -> ChunkRecord:
        done, _ = wait(self._futures, return_when=FIRST_COMPLETED)
        future = done.pop()
        self._futures.discard(future)
        return future.result()

    def _work(self, job: Job) -> ChunkRecord:
        # A worker keeps buffers between chunks, and a module may keep things within a call: one for each thread.
        if not hasattr(self._own, "worker"):
            with self._copying:
                self._own.worker = self._worker.replica()
        return attempt(self._own.worker, job)


def default_executor(subject: Subject) -> Executor:
    """Threads where the model allows them and runs on the CPU, one chunk at a time elsewhere."""
    cores = min(torch.get_num_threads(), os.cpu_count() or 1)
    if subject.concurrent and subject.device.type == "cpu" and cores > 1:
        try:
            subject.replica()
        except Exception:  # a module that cannot be copied runs in one thread
            return SerialExecutor()
        return ThreadExecutor(cores)
    return SerialExecutor()
