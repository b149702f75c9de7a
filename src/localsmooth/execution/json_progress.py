"""Progress for other programs: one JSON object a line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from localsmooth.execution.pace import Pace
from localsmooth.execution.progress import CertifiedSoFar
from localsmooth.execution.usage import SamplingSummary

__all__ = ["JsonProgress"]


@runtime_checkable
class TextStream(Protocol):
    """What text can be written to, such as a file."""

    def write(self, text: str, /) -> object:
        """Write some text."""
        ...

    def flush(self) -> object:
        """Let readers see it."""
        ...


class JsonProgress:
    """Writes events as lines of JSON: `start`, `progress`, `message`, `summary`, `certifying`, or `stopped`.

    While sampling goes on, `certified_so_far` tells what is certified of an item by then, where that holds as it is.

    Every event has a `time` (ISO 8601, UTC); `start` and `progress` count samples, `certifying` counts items: `done` of
    `total`. `stopped` tells which error ended sampling.

    Parameters
    ----------
    stream
        Where to write; standard error by default.
    every
        Seconds between two `progress` events, at least.
    clock
        Seconds, monotonic.
    """

    def __init__(
        self, stream: TextStream | None = None, *, every: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream: TextStream = sys.stderr if stream is None else stream
        self._pace = Pace(every, clock)
        self._work: tuple[float, float] | None = None

    def __enter__(self) -> JsonProgress:
        """Do nothing."""
        return self

    def __exit__(self, *error: object) -> None:
        """Say what stopped the run, if something did."""
        if error and isinstance(error[0], type):
            done, total = self._pace.done, self._pace.total
            self.write("stopped", done=done, total=total, error=error[0].__name__, text=str(error[1]))

    def start(self, total: int, done: int) -> None:
        """Tell how much is to be done."""
        self._pace.start(total, done)
        self.write("start", done=done, total=total)

    def work(self, done: float, total: float) -> None:
        """Keep it for the next event; it is told in passes of the model over an item."""
        self._work = done, total

    def within(self, done: float, total: float) -> None:
        """Tell how much work is done, unfinished chunks included, unless something was told a moment ago."""
        self.work(done, total)
        self.advance(0)

    def advance(self, samples: int) -> None:
        """Tell how far it has come, unless that was told a moment ago."""
        if self._pace.advance(samples):
            now = self._pace
            passes = {} if self._work is None else {"passes": self._work[0], "total_passes": self._work[1]}
            told = {"done": now.done, "total": now.total, "seconds": now.seconds, "samples_per_second": now.rate}
            self.write("progress", **told, **passes)

    def message(self, text: str) -> None:
        """Pass a message on."""
        self.write("message", text=text)

    def finish(self, summary: SamplingSummary) -> None:
        """Tell what it took; figures that are not known are null."""
        self.write("summary", **asdict(summary), images_per_second=summary.rate)

    def certified_so_far(self, found: CertifiedSoFar) -> None:
        """Tell what is certified of an item by now."""
        budgets = [{"kind": kind, "size": size} for kind, size in found.budgets]
        self.write("certified_so_far", **asdict(found) | {"budgets": budgets})

    def certifying(self, done: int, total: int) -> None:
        """Tell how many items are certified."""
        self.write("certifying", done=done, total=total)

    def write(self, event: str, **fields: object) -> None:
        """Write an event of any kind."""
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._stream.write(json.dumps({"event": event, "time": stamp, **fields}) + "\n")
        self._stream.flush()
