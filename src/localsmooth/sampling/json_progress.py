"""Progress for other programs: one JSON object a line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from localsmooth.sampling.usage import SamplingSummary

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
    """Writes events as lines of JSON: `start`, `progress`, `message`, `summary`, and `stopped` after an error.

    Every event has a `time` (ISO 8601, UTC), `start` and `progress` count samples: `done` of `total`.

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
        self._every = every
        self._clock = clock
        self._total = 0
        self._done = 0
        self._begun = self._told = clock()
        self._before = 0

    def __enter__(self) -> JsonProgress:
        """Do nothing."""
        return self

    def __exit__(self, *error: object) -> None:
        """Say what stopped the run, if something did."""
        if error and isinstance(error[0], type):
            self._write("stopped", done=self._done, total=self._total, error=error[0].__name__, text=str(error[1]))

    def start(self, total: int, done: int) -> None:
        """Tell how much is to be done."""
        self._total, self._done, self._before = total, done, done
        self._begun = self._told = self._clock()
        self._write("start", done=done, total=total)

    def advance(self, samples: int) -> None:
        """Tell how far it has come, unless that was told a moment ago."""
        self._done += samples
        now = self._clock()
        if now - self._told >= self._every or self._done >= self._total:
            self._told = now
            seconds = max(now - self._begun, 1e-9)
            rate = (self._done - self._before) / seconds
            self._write("progress", done=self._done, total=self._total, seconds=seconds, samples_per_second=rate)

    def message(self, text: str) -> None:
        """Pass a message on."""
        self._write("message", text=text)

    def finish(self, summary: SamplingSummary) -> None:
        """Tell what it took; figures that are not known are null."""
        self._write("summary", **asdict(summary), images_per_second=summary.rate)

    def _write(self, event: str, **fields: object) -> None:
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._stream.write(json.dumps({"event": event, "time": stamp, **fields}) + "\n")
        self._stream.flush()
