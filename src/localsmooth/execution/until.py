"""When sampling ends before its plan: because the user says so."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from numbers import Real
from types import FrameType

from localsmooth.errors import InvalidInputError, require_kind

__all__ = ["Until"]

_SECONDS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86400}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(sec|s|min|h|d)\s*")


class Until:
    """Sample until so much time is over, until Ctrl-C, or until somebody calls `end`; then certify what there is.

    Chunks that have begun are finished and count, so that none is left out because of how long it took. Only rules
    that hold at every number of samples at once (`JointCount`, early stopping) can be used.

    Parameters
    ----------
    seconds
        Time for sampling, in this call and from its first chunk on; without a limit by default.
    interrupted
        Whether an interrupt (Ctrl-C) ends sampling rather than the program; a second one ends the program. Only where
        the main thread certifies: others hear of no interrupts.
    clock
        Seconds, monotonic.

    Raises
    ------
    InvalidInputError
        If the time is negative or no number.
    """

    def __init__(
        self,
        seconds: float | int | None = None,
        *,
        interrupted: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given: object = seconds
        if given is not None and (not isinstance(given, Real) or given is True or given is False or not given >= 0):
            raise InvalidInputError("seconds", f"got {seconds!r}", "Pass a time of at least 0")
        require_kind("interrupted", interrupted, bool)
        self.seconds = seconds
        self.interrupted = interrupted
        self._clock = clock
        self._begun: float | None = None
        self._ended = threading.Event()

    @classmethod
    def parse(cls, text: str | None, *, interrupted: bool = False) -> Until | None:
        """Read a time such as "90s", "10min" or "1h 30min"; None where nothing is to end sampling.

        Raises
        ------
        InvalidInputError
            If it is none.
        """
        if text is None:
            return cls(interrupted=True) if interrupted else None
        require_kind("time", text, str)
        parts = list(_PART.finditer(text.strip()))
        if not parts or "".join(part.group() for part in parts) != text.strip():
            raise InvalidInputError("time", f"got {text!r}", "Pass a number and a unit, such as 90s, 10min or 1h30min")
        if not any(float(part[1]) for part in parts):
            raise InvalidInputError("time", f"got {text!r}", "Pass a time above 0, or nothing could be certified")
        return cls(sum(float(part[1]) * _SECONDS[part[2]] for part in parts), interrupted=interrupted)

    def end(self) -> None:
        """End sampling, from anywhere: a progress that looks at what it is told, another thread."""
        self._ended.set()

    @property
    def over(self) -> bool:
        """Whether no further chunk is to begin."""
        if self.seconds is None or self._begun is None:
            return self._ended.is_set()
        return self._ended.is_set() or self._clock() - self._begun >= self.seconds

    def start(self) -> None:
        """Start the clock."""
        self._begun = self._clock()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Begin anew, and listen to interrupts if asked to, as long as the block takes."""
        self._begun = None
        self._ended.clear()
        if not self.interrupted or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        # Nothing is said here: whoever was interrupted may be in the middle of a line.
        if self._ended.is_set():
            signal.default_int_handler(number, frame)
        self._ended.set()
