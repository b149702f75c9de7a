"""Run the points of a sweep that are missing, several at a time, and let none stop the others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

import torch
import xarray as xr

from localsmooth.config import AnyFile
from localsmooth.disk import expanded, make_folder, write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.execution import end_now
from localsmooth.results import save
from localsmooth.sweep.expansion import Sweep
from localsmooth.sweep.outcome import SweepFolder
from localsmooth.sweep.point import SweepPoint

__all__ = ["Here", "Job", "Processes", "Runner", "SweepExecutor", "missing_jobs", "run_job", "run_sweep"]

Runner = Callable[[AnyFile, Path], xr.Dataset]
"""Certifies one configuration into a run directory; what it does must be resumable."""

Done = Callable[["Job", float], None]
"""Told when a job has ended, well or not, and after how many seconds."""

Job = tuple[SweepPoint, ...]
"""Points that share their samples, and so a run directory: certified one after the other."""


def missing_jobs(sweep: Sweep, folder: SweepFolder) -> list[Job]:
    """What is not finished, in the order of the sweep; a point that occurs twice is run once."""
    jobs: dict[str, dict[str, SweepPoint]] = {}
    for point in sweep.points:
        if not folder.finished(point):
            jobs.setdefault(point.run_key, {}).setdefault(point.key, point)
    return [tuple(points.values()) for points in jobs.values()]


def run_job(job: Job, folder: SweepFolder, runner: Runner) -> None:
    """Certify a job's points one after the other; what fails leaves its message beside the results."""
    for point in job:
        error = folder.error(point)
        error.unlink(missing_ok=True)
        try:
            result = runner(point.configuration, folder.run(point))
            save(result, folder.result(point))
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}\n\n{traceback.format_exc()}"
            write_atomically(error, text.encode("utf-8", errors="replace"))


class SweepExecutor(ABC):
    """Where jobs run."""

    @abstractmethod
    def run(self, jobs: Sequence[Job], folder: SweepFolder, runner: Runner, done: Done) -> None:
        """Run all jobs; a job that fails leaves its message and does not stop the others."""


class Here(SweepExecutor):
    """One job after the other in this process, with all of its threads."""

    def run(self, jobs: Sequence[Job], folder: SweepFolder, runner: Runner, done: Done) -> None:
        """Run all jobs."""
        for job in jobs:
            started = time.perf_counter()
            run_job(job, folder, runner)
            done(job, time.perf_counter() - started)


class Processes(SweepExecutor):
    """Several jobs at once, each in a process of its own with one thread: one that dies takes no other with it.

    Parameters
    ----------
    jobs
        Processes at once.

    Raises
    ------
    InvalidInputError
        If there is none.
    """

    def __init__(self, jobs: int) -> None:
        if jobs < 1:
            raise InvalidInputError("jobs", f"got {jobs}", "Pass at least 1")
        self.jobs = jobs

    def run(self, jobs: Sequence[Job], folder: SweepFolder, runner: Runner, done: Done) -> None:
        """Run all jobs; on an interruption the processes are ended, and what they had finished is kept."""
        context = multiprocessing.get_context("spawn")
        waiting = list(reversed(jobs))
        running: dict[Connection | int, tuple[SpawnProcess, Job, float]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    job = waiting.pop()
                    process = context.Process(target=_child, args=(job, folder, runner, list(sys.path)), daemon=True)
                    process.start()
                    running[process.sentinel] = process, job, time.perf_counter()
                for sentinel in wait(list(running)):
                    process, job, started = running.pop(sentinel)  # pyright: ignore[reportArgumentType]
                    process.join()
                    if process.exitcode:
                        _report_death(job, folder, process.exitcode)
                    done(job, time.perf_counter() - started)
        finally:
            for process, _, _ in running.values():
                process.terminate()
            for process, _, _ in running.values():
                process.join(10)
                if process.is_alive():
                    end_now(process)


def _child(job: Job, folder: SweepFolder, runner: Runner, path: list[str]) -> None:
    # Ctrl-C reaches the whole group of processes; the parent ends its children itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.path[:] = path
    torch.set_num_threads(1)
    run_job(job, folder, runner)


def _end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _report_death(job: Job, folder: SweepFolder, code: int | None) -> None:
    for point in job:
        if not folder.finished(point) and not folder.error(point).exists():
            text = f"the process ended with code {code} (-9 often means that memory ran out)\n"
            write_atomically(folder.error(point), text.encode())


def run_sweep(
    sweep: Sweep,
    out: Path,
    runner: Runner,
    executor: SweepExecutor,
    done: Done | None = None,
) -> None:
    """Run what is missing of a sweep.

    Parameters
    ----------
    sweep
        The sweep.
    out
        Its directory; results that are there already are kept.
    runner
        Certifies one configuration.
    executor
        Where jobs run.
    done
        Told about every job that has ended.
    """
    out = expanded(out)
    folder = SweepFolder(out)
    make_folder(out / "results")
    executor.run(missing_jobs(sweep, folder), folder, runner, (lambda job, seconds: None) if done is None else done)
