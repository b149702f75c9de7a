"""Chunks side by side on the machines of a Ray cluster, or on this one."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution.executor import Trouble, outcome
from localsmooth.execution.fleet import Crew, Done, Event, Lost, Ready
from localsmooth.execution.fleet_executor import FleetExecutor, pickled
from localsmooth.runs import ChunkRecord
from localsmooth.sampling import ChunkWorker, Job

__all__ = ["RayExecutor"]

# For a cluster of our own on this machine: no killing by Ray at a share of the memory, no reports to its makers.
_LOCAL = {
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class RayExecutor(FleetExecutor):
    """Several chunks at once, each in an actor of a Ray cluster that holds the model.

    Needs the extra `distributed`. The tallies are those of a `SerialExecutor` on the same kind of hardware: what is
    drawn is planned, seeded and stored in this process, and an actor does one chunk after the other. Where Ray is
    initialised already, that cluster is used and left as it is.

    Parameters
    ----------
    address
        Of a running cluster, as `ray start` shows it ("auto" to find the one on this machine); by default a new one
        on this machine alone.
    workers
        Number of actors; by default as many as the cluster's cores, or GPUs, suffice for.
    gpus_per_worker, chunk_time_limit, clock
        As in `ProcessExecutor`, whose processes are actors here.

    Raises
    ------
    InvalidInputError
        If there is no worker, the number of GPUs is negative or not finite, the limit is not positive, or Ray is not
        installed.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        gpus_per_worker: float | int | None = None,
        chunk_time_limit: float | int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(workers, gpus_per_worker=gpus_per_worker, chunk_time_limit=chunk_time_limit, clock=clock)
        import_ray()
        self.address = address
        self.local = address is None

    @contextmanager
    def hire(self, worker: ChunkWorker, gpus: float, threads: int) -> Generator[tuple[Crew, int]]:
        """Connect, and prepare the actors.

        Raises
        ------
        InvalidInputError
            If no node of the cluster offers what a worker needs.
        """
        ray = import_ray()
        payload = pickled(worker, ray.cloudpickle.dumps)
        with _connected(ray, self.address, self.workers):
            offered = ray.cluster_resources()
            fitting = int(offered.get("CPU", 0)) if not gpus else int(offered.get("GPU", 0) / gpus)
            if fitting < 1:
                raise InvalidInputError(
                    "gpus_per_worker" if gpus else "address",
                    f"the cluster offers {offered.get('CPU', 0):g} CPUs and {offered.get('GPU', 0):g} GPUs, and a "
                    f"worker needs {gpus:g} GPUs"
                    if gpus
                    else "the cluster offers no CPU",
                    "Start nodes that have them",
                )
            with closing(_Actors(ray, payload, gpus, threads)) as crew:
                yield crew, fitting if self.workers is None else self.workers


def import_ray() -> Any:
    """Ray, imported when it is needed.

    Raises
    ------
    InvalidInputError
        Naming the extra, if it is not installed.
    """
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.cloudpickle")
    except ImportError as error:
        raise InvalidInputError(
            "executor", f"Ray cannot be imported ({error})", 'Install it: pip install "localsmooth[distributed]"'
        ) from error
    return ray


@contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Generator[None]:
    """Connect to a cluster, or start one on this machine; whatever was started here is ended."""
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "include_dashboard": None if address else False,
    }
    try:
        if address is None:
            with _environment(_LOCAL):
                ray.init(num_cpus=workers or torch.get_num_threads(), **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InvalidInputError(
            "address", f"no Ray cluster at {address or 'this machine'} ({error})", "Start one by `ray start`"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Generator[None]:
    """Set variables that are not set already, for a while."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


class _Drawer:
    """The actor: receives the model once and draws chunk after chunk."""

    def __init__(self, payload: bytes, threads: int, path: Sequence[str]) -> None:
        sys.path.extend(entry for entry in path if entry not in sys.path)  # where the model's modules are
        torch.set_num_threads(threads)
        self._worker: ChunkWorker | None = None
        self._trouble: Trouble | None = None
        try:
            # From the driver of this very run, never from a file.
            self._worker = import_ray().cloudpickle.loads(payload)
        except Exception as error:
            self._trouble = Trouble.of(error)

    def ready(self) -> Trouble | None:
        """What kept the model from being loaded; None if it is here."""
        return self._trouble

    def draw(self, job: Job) -> ChunkRecord | Trouble:
        """Draw a chunk."""
        assert self._worker is not None
        return outcome(self._worker, job)


@dataclass(eq=False)
class _Actor:
    """One actor, and what it still has to answer, in order; compared by identity."""

    handle: Any
    expected: deque[Any] = field(default_factory=deque[Any])


class _Actors(Crew):
    """Actors on a cluster; they answer in the order in which they were asked."""

    def __init__(self, ray: Any, payload: bytes, gpus: float, threads: int) -> None:
        self._ray = ray
        self._payload = ray.put(payload)  # one copy on each machine, however many actors
        self._class = ray.remote(_Drawer).options(
            num_cpus=0 if gpus else 1,
            num_gpus=gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        self._threads = threads
        self._actors: list[_Actor] = []

    def start(self) -> Hashable:
        actor = _Actor(self._class.remote(self._payload, self._threads, sys.path))
        actor.expected.append(actor.handle.ready.remote())
        self._actors.append(actor)
        return actor

    def send(self, worker: Hashable, job: Job) -> None:
        assert isinstance(worker, _Actor)
        worker.expected.append(worker.handle.draw.remote(job))

    def end(self, worker: Hashable) -> None:
        assert isinstance(worker, _Actor)
        self._end(worker)  # what it still has to answer is an error from now on

    def wait(self, seconds: float | None) -> Sequence[Event]:
        waiting = {actor.expected[0]: actor for actor in self._actors if actor.expected}
        if not waiting:
            time.sleep(seconds or 0.0)
            return []
        self._ray.wait(list(waiting), num_returns=1, timeout=seconds)
        done, _ = self._ray.wait(list(waiting), num_returns=len(waiting), timeout=0)  # all that there is by now
        return [self._hear(waiting[reference]) for reference in done]

    def _hear(self, actor: _Actor) -> Event:
        try:
            said = self._ray.get(actor.expected.popleft())
        except self._ray.exceptions.RayError as error:
            self._actors.remove(actor)
            self._end(actor)
            return Lost(actor, str(error).strip() or type(error).__name__)
        return Ready(actor) if said is None else Done(actor, said)

    def _end(self, actor: _Actor) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(actor.handle, no_restart=True)

    def close(self) -> None:
        """End all actors; what they are at is lost."""
        for actor in self._actors:
            self._end(actor)
        self._actors.clear()
