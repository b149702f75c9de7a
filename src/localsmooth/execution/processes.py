"""Chunks side by side in processes of this machine, each with a core or with GPUs of its own."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, cast

import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution.executor import Trouble
from localsmooth.execution.fleet import Crew, Done, Event, Lost, Ready
from localsmooth.execution.fleet_executor import FleetExecutor, pickled
from localsmooth.execution.process_worker import HELLO, READY, work
from localsmooth.runs import ChunkRecord
from localsmooth.sampling import ChunkWorker, Job

__all__ = ["ProcessExecutor", "end_now"]

_KILLED = -9  # exit status of a process that SIGKILL ended; Windows has no such signal
_GRACE = 5.0  # seconds for a process that was killed to be gone


class ProcessExecutor(FleetExecutor):
    """Several chunks at once, each in a process of its own.

    For machines with several GPUs, and for models that cannot be run in threads. The model is sent to every worker
    once, so it must be possible to pickle it; a script that uses this needs Python's usual guard,
    `if __name__ == "__main__":`, since each worker imports it.

    Parameters
    ----------
    workers
        Number of processes; by default one for every core or, with GPUs, as many as the GPUs suffice for.
    gpus_per_worker
        GPUs for each worker, which sees no others; a fraction such as 0.5 lets workers share one. By default one if
        the model is on a GPU, none otherwise. The model must be on the first GPU ("cuda" or "cuda:0").
    chunk_time_limit
        Seconds that a chunk may take before its process counts as hung: it is ended and replaced, and the chunk tried
        again. By default a hundred times the usual, and at least ten minutes, once a few chunks are done.
    clock
        Seconds, for telling which chunks are slow or hang.

    Raises
    ------
    InvalidInputError
        If there is no worker, the number of GPUs is negative or not finite, or the limit is not positive.
    """

    @contextmanager
    def hire(self, worker: ChunkWorker, gpus: float, threads: int) -> Generator[tuple[Crew, int]]:
        """Prepare the processes.

        Raises
        ------
        InvalidInputError
            If there are too few GPUs for the workers, or the model is on one that they do not see.
        """
        _require_importable_main()
        device = worker.subject.device
        if gpus and device.type == "cuda" and device.index:
            raise InvalidInputError(
                "model", f"it is on {device}, and each worker sees its own GPUs only", 'Put it on "cuda"'
            )
        places = _visible_gpus(gpus) if gpus else []
        most = _most(places, gpus) if gpus else torch.get_num_threads()
        workers = most if self.workers is None else self.workers
        if gpus and workers > most:
            raise InvalidInputError(
                "workers",
                f"{workers} workers with {gpus:g} GPUs each, and there are {len(places)} GPUs",
                f"Ask for at most {most}",
            )
        environments = [
            {"CUDA_VISIBLE_DEVICES": ",".join(_share(places, gpus, number))} if gpus else {}
            for number in range(workers)
        ]
        with closing(_Processes(pickled(worker), environments, threads)) as crew:
            yield crew, workers


def _require_importable_main() -> None:
    """Refuse a main program that workers would look for in vain.

    Raises
    ------
    InvalidInputError
        If it came from standard input, for example.
    """
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    if path is not None and getattr(main, "__spec__", None) is None and not os.path.exists(path):
        raise InvalidInputError(
            "executor",
            f"worker processes import the main program again, and there is no file {path}",
            "Save the program as a file (one that was read from standard input has none), or use threads",
        )


def _visible_gpus(gpus: float) -> list[str]:
    """The names under which this process sees its GPUs."""
    count = torch.cuda.device_count()
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    found = named[:count] if len(named) >= count else [str(number) for number in range(count)]
    if len(found) < gpus:
        raise InvalidInputError(
            "gpus_per_worker", f"{gpus:g} GPUs for a worker, and there are {len(found)}", "Ask for fewer, or for 0"
        )
    return found


def _most(places: Sequence[str], gpus: float) -> int:
    """How many workers the GPUs suffice for."""
    return len(places) // math.ceil(gpus) if gpus >= 1 else len(places) * math.floor(1 / gpus)


def _share(places: Sequence[str], gpus: float, worker: int) -> Sequence[str]:
    """The GPUs of one worker: a block of its own, or one that it shares."""
    if gpus >= 1:
        size = math.ceil(gpus)
        return places[worker * size : (worker + 1) * size]
    return [places[worker // math.floor(1 / gpus) % len(places)]]


@dataclass(eq=False)
class _Member:
    """One process; compared by identity."""

    process: SpawnProcess
    connection: Connection[Any, Any]
    place: int


class _Processes(Crew):
    """Spawned processes, each at the other end of a pipe."""

    def __init__(self, payload: bytes, environments: Sequence[Mapping[str, str]], threads: int) -> None:
        self._payload = payload
        self._environments = environments
        self._threads = threads
        self._context = multiprocessing.get_context("spawn")
        self._members: dict[Connection[Any, Any], _Member] = {}

    def start(self) -> Hashable:
        taken = {member.place for member in self._members.values()}
        place = next(number for number in range(len(self._environments)) if number not in taken)
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=work,
            args=(theirs, self._environments[place], self._threads),
            name=f"localsmooth-{place}",
            daemon=True,
        )
        with _deaf_children():
            process.start()
        theirs.close()
        member = _Member(process, ours, place)
        self._members[ours] = member
        return member

    def send(self, worker: Hashable, job: Job) -> None:
        assert isinstance(worker, _Member)
        with contextlib.suppress(OSError):  # it is dead, and `wait` will say so
            worker.connection.send(job)

    def end(self, worker: Hashable) -> None:
        assert isinstance(worker, _Member)
        end_now(worker.process)  # its end of the pipe closes

    def wait(self, seconds: float | None) -> Sequence[Event]:
        events: list[Event] = []
        for connection in multiprocessing.connection.wait(list(self._members), seconds):
            # Of another class on Windows.
            event = self._hear(self._members[cast("Connection[Any, Any]", connection)])
            if event is not None:
                events.append(event)
        return events

    def _hear(self, member: _Member) -> Event | None:
        try:
            said = member.connection.recv()
            if said == HELLO:
                member.connection.send_bytes(self._payload)
                return None
        except (EOFError, OSError):
            return self._lose(member)
        if said == READY:
            return Ready(member)
        assert isinstance(said, ChunkRecord | Trouble)
        return Done(member, said)

    def _lose(self, member: _Member) -> Lost:
        del self._members[member.connection]
        member.connection.close()
        member.process.join(_GRACE)
        code = member.process.exitcode
        if code is None:
            end_now(member.process)
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        hint = ", as the system does to processes for lack of memory" if code == _KILLED else ""
        return Lost(member, f"process {member.process.pid} ended with {how}{hint}")

    def close(self) -> None:
        """End all processes; what they are at is lost."""
        members = list(self._members.values())
        self._members.clear()
        for member in members:
            end_now(member.process)
        for member in members:
            member.process.join(_GRACE)
            member.connection.close()


def end_now(process: SpawnProcess) -> None:
    """End a process whatever it is at; where there is no SIGKILL, as on Windows, `terminate` does that."""
    if hasattr(signal, "SIGKILL"):
        process.kill()
    else:
        process.terminate()


@contextmanager
def _deaf_children() -> Generator[None]:
    """Processes started here do not hear an interrupt before they have set themselves up to ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
