"""Models that get into trouble in the middle of a run, and what to run them on."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from pathlib import Path

import torch

from localsmooth.execution import Executor, ProcessExecutor, SerialExecutor
from localsmooth.execution import ThreadExecutor as Threads
from localsmooth.layout import windowed
from localsmooth.models import Model
from localsmooth.runs import SamplingPlan, Store
from localsmooth.sampling import ItemTally
from tests.sampling.exact import ExactModel, make_layout, run

PLAN = SamplingPlan(n_candidate=30, n_bound=90, seed=11, chunk_size=10)
CHUNKS = 4 * (3 + 9)
LAYOUT = windowed(make_layout(), 2)


def undisturbed(plan: SamplingPlan = PLAN) -> ItemTally:
    return run(plan=plan, layout=LAYOUT, executor=SerialExecutor())


def disturbed(
    model: Model, *, executor: Executor, store: Store | None = None, plan: SamplingPlan = PLAN, batch_size: int = 4
) -> ItemTally:
    # One memory order: a calibration may choose another one each time, and another one rounds otherwise.
    return run(
        model, plan=plan, layout=LAYOUT, executor=executor, store=store, batch_size=batch_size, channels_last=False
    )


def executor_named(name: str) -> Executor:
    return {"serial": SerialExecutor, "threads": lambda: Threads(2), "processes": lambda: ProcessExecutor(2)}[name]()


class Troubled(ExactModel):
    """Takes its time, notes which process it runs in, and does something once at a chosen call.

    What was done once is known by a file in the folder, so that no other process does it again.
    """

    def __init__(self, folder: Path, call: int = 10**9, seconds: float = 0.0) -> None:
        super().__init__()
        self.folder, self.call, self.seconds = folder, call, seconds
        self.calls = 0

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 1:
            (self.folder / f"pid-{os.getpid()}").touch()
        if self.calls >= self.call and self.first():
            self.strike()
        time.sleep(self.seconds)
        return super().__call__(batch)

    def first(self) -> bool:
        try:
            (self.folder / "struck").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def strike(self) -> None:
        raise NotImplementedError

    def replica(self) -> Troubled:
        return self


class Leaving(Troubled):
    """Its process ends, as by a fault in a library."""

    def strike(self) -> None:
        os._exit(3)


class Suicidal(Troubled):
    """Its process is killed, as by kill -9 or by the system for lack of memory."""

    def strike(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Sleepy(Troubled):
    """One call takes very long."""

    def strike(self) -> None:
        time.sleep(300)


class Greedy(Troubled):
    """Needs a lot of memory for each sample, in a process that may not have much more than it has."""

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + (500 << 20)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        torch.empty((len(batch), 160 << 20), dtype=torch.uint8)
        return super().__call__(batch)


class Poisonous(ExactModel):
    """Fails in other processes than the first."""

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        if multiprocessing.parent_process() is not None and float(batch[0, 0, 0, 0]) > 1.5:
            raise ValueError("too bright")
        return super().__call__(batch)


class Comatose(ExactModel):
    """Never returns in other processes than the first."""

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        if multiprocessing.parent_process() is not None:
            time.sleep(10**6)
        return super().__call__(batch)


class Unloadable(ExactModel):
    """Cannot be brought to another process."""

    def __reduce__(self) -> tuple[object, ...]:
        return _missing, ()


def _missing() -> None:
    raise ModuleNotFoundError("No module named 'network'")
