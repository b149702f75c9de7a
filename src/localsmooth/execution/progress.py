"""Tell how far sampling has come."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from localsmooth.execution.pace import Pace, WorkPace
from localsmooth.execution.usage import SamplingSummary
from localsmooth.terminal import terminal

__all__ = [
    "CertifiedSoFar",
    "CertifyingProgress",
    "LiveProgress",
    "NoProgress",
    "RichProgress",
    "SamplingProgress",
    "WithinProgress",
    "WorkProgress",
    "tell_certifying",
    "tell_within",
    "tell_work",
]


@runtime_checkable
class SamplingProgress(Protocol):
    """Told about a run as it goes; a context that is entered when the run starts. A subclass may leave methods out."""

    def __enter__(self) -> SamplingProgress:
        """Get ready."""
        return self

    def __exit__(self, *error: object) -> None:
        """Clean up, whatever happened."""

    def start(self, total: int, done: int) -> None:
        """So many samples will be needed, and so many are stored from an earlier run."""

    def advance(self, samples: int) -> None:
        """A chunk of so many samples was stored."""

    def message(self, text: str) -> None:
        """Something a user should know, such as what the calibration chose."""

    def finish(self, summary: SamplingSummary) -> None:
        """All that could be drawn was drawn, and this is what it took."""


@runtime_checkable
class CertifyingProgress(Protocol):
    """A `SamplingProgress` that is also told about what follows sampling; its context has been left by then."""

    def certifying(self, done: int, total: int) -> None:
        """So many items of a total are certified."""
        ...


@dataclass(frozen=True)
class CertifiedSoFar:
    """What is certified of an item while its sampling goes on.

    It holds, with all others of the run, with probability 1 − α: sampling may be ended because of it.

    Parameters
    ----------
    item
        Name of the item.
    target
        What is counted.
    rule
        What makes it hold at every number of samples at once.
    alpha
        Probability with which what is certified of the item may fail.
    n, planned
        Samples of the bound stage for each output group (the one with the most of them), and how many there will be.
    budgets
        Symbol and size of some budgets, such as ("ε", 0.5).
    certified
        The certified count (or worth) at each of them.
    total
        What there is to be certified.
    """

    item: str
    target: str
    rule: str
    alpha: float
    n: int
    planned: int
    budgets: tuple[tuple[str, float], ...]
    certified: tuple[float, ...]
    total: float

    def __str__(self) -> str:
        shares = (math.floor(100 * each / self.total) if self.total > 0 else 0 for each in self.certified)
        shown = ", ".join(
            f"{symbol} {size:g}: ≥ {share} %" for (symbol, size), share in zip(self.budgets, shares, strict=True)
        )
        return (
            f"{self.item}: certified at {self.n:,} of {self.planned:,} samples per output group, by {self.rule} "
            f"({self.target}): {shown}"
        )


@runtime_checkable
class LiveProgress(Protocol):
    """A `SamplingProgress` that is also told what is certified while sampling goes on, where that holds."""

    def certified_so_far(self, found: CertifiedSoFar) -> None:
        """So much is certified of an item by now."""
        ...

    def message(self, text: str) -> None:
        """Something a user should know."""
        ...


@runtime_checkable
class WorkProgress(Protocol):
    """A `SamplingProgress` that is also told of the work, which is not the same as samples where windows differ."""

    def work(self, done: float, total: float) -> None:
        """So many passes of the model over a whole item are done, or not needed, of so many.

        Told after `start`, and before every `advance`.
        """
        ...


@runtime_checkable
class WithinProgress(Protocol):
    """A `SamplingProgress` that is also told of work while chunks are being drawn, in this process at least."""

    def within(self, done: float, total: float) -> None:
        """So many passes of so many are done, those of chunks that are not finished included.

        Told from the threads that draw, never while another method of the progress is running.
        """
        ...


def tell_within(progress: SamplingProgress, done: float, total: float) -> None:
    """Tell how much work is done, unfinished chunks included, if that is asked for."""
    if isinstance(progress, WithinProgress):
        progress.within(done, total)


def tell_work(progress: SamplingProgress, done: float, total: float) -> None:
    """Tell how much work is done, if that is asked for."""
    if isinstance(progress, WorkProgress):
        progress.work(done, total)


def tell_certifying(progress: SamplingProgress | None, done: int, total: int) -> None:
    """Tell how many items are certified, if that is asked for."""
    if isinstance(progress, CertifyingProgress):
        progress.certifying(done, total)


class NoProgress(SamplingProgress):
    """Says nothing."""


class _Rate(ProgressColumn):
    """Samples per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f} samples/s", style="progress.data.speed")


class _Left(TimeRemainingColumn):
    """Time that is left at the rate of the work, where that is known."""

    def render(self, task: Task) -> Text:
        seconds = task.fields.get("left")
        if seconds is None or task.finished:
            return super().render(task)
        return Text(str(timedelta(seconds=round(seconds))), style="progress.remaining")


class RichProgress:
    """A bar with samples per second and the time left. Where the console can draw none: a line now and then.

    Terminals can draw one, and notebooks where ipywidgets is installed.

    Parameters
    ----------
    console
        Where to draw; standard error by default.
    every
        Seconds between two lines, at least, where there is no bar.
    clock
        Seconds, monotonic.
    """

    def __init__(
        self, console: Console | None = None, *, every: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = terminal() if console is None else console
        self._lines = None if _draws_bars(self._console) else Pace(every, clock)
        self._items = Pace(every, clock)
        self._total = self._done = 0
        self._work = WorkPace(clock)
        self._bar = Progress(
            TextColumn("sampling"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            _Left(),
            console=self._console,
            disable=self._lines is not None,
        )
        self._task = self._bar.add_task("sampling", total=None, start=False)

    def __enter__(self) -> RichProgress:
        """Draw the bar."""
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the bar as it is."""
        if self._console.is_jupyter:
            self._bar.refresh()  # which rich leaves out there
        self._bar.stop()

    def start(self, total: int, done: int) -> None:
        """Set the length of the bar."""
        self._total, self._done = total, done
        self._bar.update(self._task, total=total, completed=done)
        self._bar.start_task(self._task)
        if self._lines is not None:
            self._lines.start(total, done)
            self.message(f"Sampling: {total:,} samples, {done:,} of them stored earlier")

    def work(self, done: float, total: float) -> None:
        """Estimate the time that is left from it."""
        self._work.work(done, total)
        self._bar.update(self._task, left=self._work.left)

    def within(self, done: float, total: float) -> None:
        """Move the bar by what unfinished chunks have done, too."""
        self.work(done, total)
        if total > 0:
            self._bar.update(self._task, completed=max(self._done, int(self._total * done / total)))
        self._tell_line(0)

    def advance(self, samples: int) -> None:
        """Move the bar."""
        self._done += samples
        self._bar.update(self._task, completed=self._done)
        self._tell_line(samples)

    def _tell_line(self, samples: int) -> None:
        if self._lines is not None and self._lines.advance(samples):
            now, seconds = self._lines, self._work.left
            seconds = now.left if seconds is None else seconds
            left = "" if seconds is None else f", about {timedelta(seconds=round(seconds))} left"
            passes = "" if self._work.total in (0, now.total) else f" ({self._work.words})"
            self.message(f"Sampling: {now.done:,} of {now.total:,} samples{passes}, {now.rate:,.1f} samples/s{left}")

    def message(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def finish(self, summary: SamplingSummary) -> None:
        """Print what it took."""
        self.message(str(summary))

    def certified_so_far(self, found: CertifiedSoFar) -> None:
        """Print a line."""
        self.message(str(found))

    def certifying(self, done: int, total: int) -> None:
        """Say that sampling is over, and from time to time how many items are certified."""
        if done == 0:
            self._items.start(total, 0)
            self.message(f"Certifying {total} item{'s' * (total != 1)}")
        elif self._items.advance(done - self._items.done) and done < total:
            self.message(f"Certified {done} of {total} items")


def _draws_bars(console: Console) -> bool:
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
