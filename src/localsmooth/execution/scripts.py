"""Who is told of a run where nobody was named: a terminal, a notebook, or the log of a script."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import RLock, Timer

from rich.console import Console

from localsmooth.execution.progress import CertifiedSoFar, RichProgress, SamplingProgress
from localsmooth.terminal import terminal

__all__ = ["ScriptProgress", "default_progress", "told_by_default"]

_NOTEBOOK_PACE = 10.0  # seconds between lines below a cell
_INTERRUPTED = "Interrupted. Finished chunks are kept: the same call goes on where this one stopped."


class ScriptProgress(RichProgress):
    """Lines of a `RichProgress`, for scripts: what is over within seconds says nothing.

    Lines are held back at first. They are printed, those of before included, once a run has taken some seconds; a run
    that ends earlier drops them.

    Parameters
    ----------
    console
        Where to print; standard error by default.
    after
        Seconds until anything is printed.
    every
        Seconds between two lines, at least.
    clock
        Seconds, monotonic.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        after: float = 4.0,
        every: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(console, every=every, clock=clock)
        self._clock, self._due, self._every = clock, clock() + after, every
        self._next_look = self._due
        self._held: list[str] | None = []
        self._timer: Timer | None = None
        self._lock = RLock()

    def __exit__(self, *error: object) -> None:
        """Hold back what is not printed by now, until something else is told."""
        super().__exit__(*error)
        self.rest()

    def rest(self) -> None:
        """Print nothing until something else is told, as where a run is over."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None

    def certified_so_far(self, found: CertifiedSoFar) -> None:
        """Print a line, unless there was one within the pace."""
        if self._clock() >= self._next_look:
            self._next_look = self._clock() + self._every
            super().certified_so_far(found)

    def message(self, text: str) -> None:
        """Print a line, or hold it back."""
        with self._lock:
            if self._held is None:
                super().message(text)
                return
            self._held.append(text)
            if self._timer is None:
                # The next event may be minutes away, such as the end of an exact bound.
                self._timer = Timer(max(0.0, self._due - self._clock()), self._release)
                self._timer.daemon = True
                self._timer.start()

    def _release(self) -> None:
        with self._lock:
            if self._timer is None:  # the run ended in the meantime
                return
            held, self._held = self._held or [], None
            for text in held:
                super().message(text)


def default_progress() -> SamplingProgress:
    """A bar in a terminal or a notebook (there without ipywidgets: lines); elsewhere lines, of what takes seconds."""
    console = terminal()
    if console.is_jupyter:
        return RichProgress(console, every=_NOTEBOOK_PACE)
    return RichProgress(console) if console.is_terminal else ScriptProgress(console)


@contextmanager
def told_by_default(progress: SamplingProgress | None, *, kept: bool) -> Generator[SamplingProgress]:
    """Tell a run to whom the user named, or else by default, and then also what an interruption means.

    Parameters
    ----------
    progress
        Whom the user named; None for the default.
    kept
        Whether chunks are kept somewhere when the program ends.
    """
    if progress is not None:
        yield progress
        return
    told = default_progress()
    try:
        yield told
    except KeyboardInterrupt:
        if kept:
            terminal().print(_INTERRUPTED)
        raise
    finally:
        if isinstance(told, ScriptProgress):
            told.rest()
