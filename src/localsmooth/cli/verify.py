"""`localsmooth verify`: a finished run, checked from its files alone."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import typer

from localsmooth.cli.commands import Log
from localsmooth.cli.telling import telling
from localsmooth.evidence import Checked, DoesNotHoldError, Verification, verify_run
from localsmooth.execution import JsonProgress
from localsmooth.terminal import terminal

__all__ = ["EvidenceTeller", "verify"]

_FAILED, _INCOMPLETE = 1, 3  # exit statuses: something does not hold; all that was checked holds


def verify(run: Path, certificate: Path | None, public_key: Path | None, log: Log) -> None:
    """Check a finished run, and a certificate of it, from its files alone: every step from tallies to counts."""
    told = EvidenceTeller(log)
    with telling(log), told.failing():
        found = verify_run(run, certificate, public_key, tell=told.checked)
        told.summary(found)
        if not found.complete:
            raise typer.Exit(_INCOMPLETE)


class EvidenceTeller:
    """Tells what a verification finds, line by line.

    Parameters
    ----------
    log
        In words on standard output, or as lines of JSON on standard error.
    """

    def __init__(self, log: Log) -> None:
        self._events = JsonProgress() if log is Log.JSON else None

    def _say(self, text: str) -> None:
        terminal(stderr=False).print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def checked(self, line: Checked) -> None:
        """Tell one line that holds."""
        if self._events is not None:
            self._events.write("checked", **asdict(line), holds=True)
        else:
            self._say(f"ok  {line.number:>11,} {line.of:<10} {line.what}")

    def summary(self, found: Verification) -> None:
        """Tell what was not checked, what is weaker than it could be, and what is taken on trust."""
        if self._events is not None:
            self._events.write(
                "verified", complete=found.complete, unchecked=found.unchecked, notes=found.notes, trusted=found.trusted
            )
            return
        for text in (*found.notes, *found.unchecked):
            self._say(text[:1].upper() + text[1:])
        self._say("Taken on trust:")
        for text in found.trusted:
            self._say(f"  {text}")
        self._say("Everything holds." if found.complete else "What was checked holds; some was not checked.")

    @contextmanager
    def failing(self) -> Generator[None]:
        """Tell what does not hold, and end the program."""
        try:
            yield
        except DoesNotHoldError as error:
            if self._events is not None:
                self._events.write("checked", what=error.step, holds=False, problem=error.problem)
            else:
                self._say(f"FAILED  {error}")
            raise typer.Exit(_FAILED) from None
