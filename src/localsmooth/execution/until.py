"""When sampling ends before its plan: because the user says so."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from numbers import Real
from types import FrameType, NoneType

from localsmooth.errors import InvalidInputError, require_kind

__all__ = ["Until"]

_SECONDS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86400}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(sec|s|min|h|d)\s*")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


class Until:
    """Sample until so much time is over, until Ctrl-C, until counts settle, or until somebody calls `end`.

    What there is by then is certified.

    Chunks that have begun are finished and count, so that none is left out because of how long it took. Only rules
    that hold at every number of samples at once (`JointCount`, early stopping) can be used.

    Parameters
    ----------
    seconds
        Time for sampling, in this call and from its first chunk on; without a limit by default.
    interrupted
        Whether an interrupt (Ctrl-C) ends sampling rather than the program; a second one ends the program. Only where
        the main thread certifies: others hear of no interrupts.
    settled
        An item gets no more samples once doubling their number raised its certified count, of the first target and in
        the mean over the budgets, by less than this share; by default it gets all of its samples.
    clock
        Seconds, monotonic.

    Raises
    ------
    InvalidInputError
        If the time is negative or no number, or the share not between 0 and 1.
    """

    def __init__(
        self,
        seconds: float | int | None = None,
        *,
        interrupted: bool = False,
        settled: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given: object = seconds
        if given is not None and (not isinstance(given, Real) or given is True or given is False or not given >= 0):
            raise InvalidInputError("seconds", f"got {seconds!r}", "Pass a time of at least 0")
        require_kind("interrupted", interrupted, bool)
        require_kind("settled", settled, float, NoneType)
        if settled is not None and not 0 < settled < 1:
            raise InvalidInputError("settled", f"got {settled}", "Pass a share strictly between 0 and 1, such as 0.02")
        self.seconds = seconds
        self.interrupted = interrupted
        self.settled = settled
        self._clock = clock
        self._begun: float | None = None
        self._ended = threading.Event()

    @classmethod
    def parse(cls, text: str | None, *, interrupted: bool = False, settled: str | None = None) -> Until | None:
        """Read a time such as "90s", "10min" or "1h 30min", and a share such as "2%"; None where nothing ends sampling.

        Raises
        ------
        InvalidInputError
            If it is none.
        """
        share = None if settled is None else _share(settled)
        if text is None:
            return cls(interrupted=interrupted, settled=share) if interrupted or share is not None else None
        require_kind("time", text, str)
        parts = list(_PART.finditer(text.strip()))
        if not parts or "".join(part.group() for part in parts) != text.strip():
            raise InvalidInputError("time", f"got {text!r}", "Pass a number and a unit, such as 90s, 10min or 1h30min")
        if not any(float(part[1]) for part in parts):
            raise InvalidInputError("time", f"got {text!r}", "Pass a time above 0, or nothing could be certified")
        seconds = sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
        return cls(seconds, interrupted=interrupted, settled=share)

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


def _share(text: str) -> float:
    require_kind("until-settled", text, str)
    found = _SHARE.fullmatch(text.strip())
    if found is None or not 0 < float(found[1]) < 100:
        raise InvalidInputError(
            "until-settled", f"got {text!r}", "Pass a share strictly between 0% and 100%, such as 2%"
        )
    return float(found[1]) / 100
