"""How a command tells what happens: in words, or as lines of JSON."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import typer
import xarray as xr
from rich.console import Console

from localsmooth.cli.commands import Log
from localsmooth.cli.summary import print_summary
from localsmooth.errors import LocalsmoothError
from localsmooth.execution import JsonProgress, RichProgress, SamplingProgress
from localsmooth.metrics import clean_agreement
from localsmooth.terminal import terminal

__all__ = ["JsonTeller", "Teller", "telling"]

_KEPT = "Interrupted. Finished chunks are kept: the same command goes on where this one stopped."


class Teller:
    """Tells people.

    Parameters
    ----------
    console
        Where; standard error by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = terminal() if console is None else console
        self.progress: SamplingProgress = RichProgress(self.console)

    def say(self, text: str) -> None:
        """Say something."""
        self.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def interrupted(self) -> None:
        """Say what an interruption means."""
        self.say(_KEPT)

    def result(self, result: xr.Dataset, out: Path) -> None:
        """Show a result, and say where it is."""
        print_summary({str(result.attrs["method"]): result}, terminal(stderr=False))
        self.say(f"Result: {out / 'result.nc'}. Picture: localsmooth report {out}")


class JsonTeller(Teller):
    """Tells programs: one JSON object a line on standard error, whatever happens."""

    def __init__(self) -> None:
        super().__init__()
        self._events = JsonProgress()
        self.progress = self._events

    def say(self, text: str) -> None:
        """Write an event `message`."""
        self._events.message(text)

    def interrupted(self) -> None:
        """Write an event `interrupted`."""
        self._events.write("interrupted", text=_KEPT)

    def result(self, result: xr.Dataset, out: Path) -> None:
        """Write an event `result` with the file, after a warning for each class that smoothing loses."""
        if (agreement := clean_agreement(result)) is not None:
            for sentence in agreement.warnings:
                self._events.write("warning", kind="Agreement", text=sentence)
        self._events.write("result", file=str(out / "result.nc"))

    @contextmanager
    def in_charge(self) -> Generator[None]:
        """Write warnings and errors as events as well, and end the program with the usual exit status."""
        with warnings.catch_warnings():
            warnings.showwarning = self._warn  # pyright: ignore[reportAttributeAccessIssue]
            try:
                yield
            except LocalsmoothError as error:
                self._error(error)
                raise typer.Exit(2) from None
            except KeyboardInterrupt:
                raise typer.Exit(130) from None
            except Exception as error:
                if isinstance(error, typer.Exit):
                    raise
                self._error(error, traceback=traceback.format_exc())
                raise typer.Exit(1) from None

    def _warn(self, message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        self._events.write("warning", kind=category.__name__, text=str(message))

    def _error(self, error: Exception, **more: str) -> None:
        self._events.write("error", kind=type(error).__name__, text=str(error), **more)


@contextmanager
def telling(log: Log) -> Generator[Teller]:
    """Tell what happens within a block as the user wants it."""
    if log is Log.TEXT:
        yield Teller()
    else:
        told = JsonTeller()
        with told.in_charge():
            yield told
