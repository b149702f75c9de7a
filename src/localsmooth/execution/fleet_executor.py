"""Chunks side by side in workers that receive the model once: what processes and clusters have in common."""

from __future__ import annotations

import math
import pickle
import time
from abc import abstractmethod
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution.executor import Executor, Session, one_thread
from localsmooth.execution.fleet import Crew, FleetSession
from localsmooth.sampling import ChunkWorker

__all__ = ["FleetExecutor", "pickled"]


class FleetExecutor(Executor):
    """Several chunks at once, in workers that a subclass hires; `ProcessExecutor` tells the parameters.

    Raises
    ------
    InvalidInputError
        If there is no worker, the number of GPUs is negative or not finite, or the limit is not positive.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        gpus_per_worker: float | int | None = None,
        chunk_time_limit: float | int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if workers is not None and workers < 1:
            raise InvalidInputError("workers", f"got {workers}", "Pass at least 1")
        if gpus_per_worker is not None and not 0 <= gpus_per_worker < math.inf:
            raise InvalidInputError(
                "gpus_per_worker", f"got {gpus_per_worker}", "Pass 0, a fraction or a number of GPUs"
            )
        if chunk_time_limit is not None and not 0 < chunk_time_limit < math.inf:
            raise InvalidInputError("chunk_time_limit", f"got {chunk_time_limit}", "Pass a positive number of seconds")
        self.workers = workers
        self.gpus_per_worker = gpus_per_worker
        self.chunk_time_limit = chunk_time_limit
        self._clock = clock

    @abstractmethod
    def hire(self, worker: ChunkWorker, gpus: float, threads: int) -> AbstractContextManager[tuple[Crew, int]]:
        """A crew for workers with so many GPUs and threads each, and how many to start; leaving ends them at once."""

    def conditions(self) -> AbstractContextManager[None]:
        """One core for each forward pass, as the workers have it."""
        return nullcontext() if self.gpus_per_worker else one_thread()

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        """Start the workers; leaving ends them at once."""
        gpus = self.gpus_per_worker
        if gpus is None:
            gpus = 1 if worker.subject.device.type == "cuda" else 0
        with self.hire(worker, float(gpus), torch.get_num_threads() if gpus else 1) as (crew, count):
            yield FleetSession(crew, count, self._clock, self.chunk_time_limit)


def pickled(worker: ChunkWorker, dumps: Callable[[ChunkWorker], bytes] = pickle.dumps) -> bytes:
    """Bytes of a worker, to be sent to another process.

    Raises
    ------
    InvalidInputError
        If the model, or something else of the problem, cannot be pickled.
    """
    try:
        return dumps(worker)
    except Exception as error:
        raise InvalidInputError(
            "model",
            f"it cannot be sent to another process ({type(error).__name__}: {error})",
            "Define its classes and functions at the top of a module, without lambdas, or use threads",
        ) from error
