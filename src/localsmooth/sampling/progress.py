"""Tell how far sampling has come."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from localsmooth.sampling.usage import SamplingSummary

__all__ = ["NoProgress", "RichProgress", "SamplingProgress", "default_progress"]


@runtime_checkable
class SamplingProgress(Protocol):
    """Told about a run as it goes; a context that is entered when the run starts."""

    def __enter__(self) -> SamplingProgress:
        """Get ready."""
        ...

    def __exit__(self, *error: object) -> None:
        """Clean up, whatever happened."""
        ...

    def start(self, total: int, done: int) -> None:
        """So many samples will be needed, and so many are stored from an earlier run."""
        ...

    def advance(self, samples: int) -> None:
        """A chunk of so many samples was stored."""
        ...

    def message(self, text: str) -> None:
        """Something a user should know, such as what the calibration chose."""
        ...

    def finish(self, summary: SamplingSummary) -> None:
        """All that could be drawn was drawn, and this is what it took."""
        ...


class NoProgress:
    """Says nothing."""

    def __enter__(self) -> NoProgress:
        """Do nothing."""
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing."""

    def start(self, total: int, done: int) -> None:
        """Do nothing."""

    def advance(self, samples: int) -> None:
        """Do nothing."""

    def message(self, text: str) -> None:
        """Do nothing."""

    def finish(self, summary: SamplingSummary) -> None:
        """Do nothing."""


class _Rate(ProgressColumn):
    """Samples per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f} samples/s", style="progress.data.speed")


class RichProgress:
    """A bar with samples per second and the time left; messages only where the console is not a terminal.

    Parameters
    ----------
    console
        Where to draw; standard error by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = Console(stderr=True) if console is None else console
        self._bar = Progress(
            TextColumn("sampling"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("sampling", total=None, start=False)

    def __enter__(self) -> RichProgress:
        """Draw the bar."""
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the bar as it is."""
        self._bar.stop()

    def start(self, total: int, done: int) -> None:
        """Set the length of the bar."""
        self._bar.update(self._task, total=total, completed=done)
        self._bar.start_task(self._task)

    def advance(self, samples: int) -> None:
        """Move the bar."""
        self._bar.advance(self._task, samples)

    def message(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, highlight=False, markup=False)

    def finish(self, summary: SamplingSummary) -> None:
        """Print what it took."""
        self.message(str(summary))


def default_progress() -> SamplingProgress:
    """A bar on the terminal, if standard error is one; otherwise silence."""
    console = Console(stderr=True)
    return RichProgress(console) if console.is_terminal else NoProgress()
