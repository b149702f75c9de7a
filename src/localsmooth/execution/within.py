"""How far unfinished chunks are: heard of by the threads that draw them, told one at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock

from localsmooth.execution.progress import SamplingProgress, tell_within
from localsmooth.runs import Chunk

__all__ = ["Within"]


class Within:
    """Adds what unfinished chunks have done to the work of the finished ones.

    Parameters
    ----------
    told
        Told of it.
    share
        Passes that a sample of a chunk is worth.
    """

    def __init__(self, told: SamplingProgress, share: Callable[[Chunk], float]) -> None:
        self._told = told
        self._share = share
        self._lock = Lock()
        self._open: dict[Chunk, float] = {}
        self._done = self._total = 0.0
        self._failed: Exception | None = None

    def hear(self, chunk: Chunk, drawn: int) -> None:
        """So many samples of a chunk are drawn; from any thread, which does not wait where something else is told."""
        if self._failed is not None or not self._lock.acquire(blocking=False):
            return
        try:
            self._open[chunk] = drawn * self._share(chunk)
            if self._total > 0:
                tell_within(self._told, min(self._total, self._done + sum(self._open.values())), self._total)
        except Exception as error:  # it is no fault of the chunk's, which would be drawn again, and put aside
            self._failed = error
        finally:
            self._lock.release()

    def finished(self, done: float, total: float) -> None:
        """So much of so much is done by finished chunks; within `alone`."""
        self._done, self._total = done, total

    @contextmanager
    def alone(self, chunk: Chunk | None = None) -> Generator[None]:
        """Let no thread tell anything within the block; a chunk that came back is no longer being drawn.

        Raises
        ------
        Exception
            What a progress raised when it was told something in the meantime.
        """
        with self._lock:
            if self._failed is not None:
                raise self._failed
            if chunk is not None:
                self._open.pop(chunk, None)
            yield
