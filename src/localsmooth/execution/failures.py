"""Chunks that cannot be drawn: tried again a few times, then put aside with their input, and reported at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from localsmooth.errors import InvalidInputError, LocalsmoothError
from localsmooth.execution.executor import FailedChunkError, Trouble
from localsmooth.runs import Chunk, ChunkKey, Stage, Store, StoreError, poisoned_name
from localsmooth.sampling import Job, Subject, groups_of

__all__ = ["Failures", "PoisonedChunk", "PoisonedChunksError", "redraw"]

_TRIES = 3
_LARGEST_INPUT = 1 << 26  # bytes of noisy inputs that are kept for one chunk
_MOST_INPUTS = 16
_MOST_SHOWN = 20
_HOPELESS = 16  # poisoned chunks, from several places, before any chunk succeeds


@dataclass(frozen=True)
class PoisonedChunk:
    """A chunk that failed every time it was tried.

    Parameters
    ----------
    chunk
        Which one; with the run's seed it determines the samples.
    seed
        The run's seed.
    trouble
        What went wrong the last time.
    tries
        How often it was tried.
    array
        Name of the array in the store that holds its noisy inputs; empty if they are too large to be kept.
    """

    chunk: Chunk
    seed: int
    trouble: Trouble
    tries: int
    array: str = ""

    def __str__(self) -> str:
        """One line for a user."""
        chunk = self.chunk
        where = (
            f"item {chunk.item}, output group {chunk.group}, chunk {chunk.index} of the "
            f"{Stage(chunk.stage).name.lower()} stage ({chunk.size} samples, seed {self.seed}, {self.tries} tries)"
        )
        inputs = f"its noisy inputs are array {self.array!r} of the store" if self.array else "redraw its inputs"
        return f"{where}: {self.trouble.kind}: {self.trouble.message} [{inputs}]"


class PoisonedChunksError(LocalsmoothError):
    """Some chunks failed every time they were tried.

    Parameters
    ----------
    chunks
        All of them.
    stopped
        Whether the others were not tried, since nothing had succeeded.
    """

    def __init__(self, chunks: Sequence[PoisonedChunk], *, stopped: bool = False) -> None:
        self.chunks = tuple(chunks)
        count = (
            f"{len(chunks)} chunk{'s' if len(chunks) > 1 else ''} could not be drawn, and nothing of them is counted"
        )
        rest = "No chunk could, so the others were not tried" if stopped else "All others are finished and stored"
        shown = "\n".join(f"  {chunk}" for chunk in chunks[:_MOST_SHOWN])
        more = f"\n  and {len(chunks) - _MOST_SHOWN} more" if len(chunks) > _MOST_SHOWN else ""
        super().__init__(
            f"{count}. {rest}; started again, the run tries only what is missing. Look at the model with these inputs "
            f"(`redraw` in localsmooth.execution draws them anew):\n{shown}{more}"
        )


def redraw(subject: Subject, chunk: Chunk) -> Any:
    """Draw the noisy inputs of a chunk as the model saw them, to find out what it makes of them.

    Parameters
    ----------
    subject
        Of the run, with its seed.
    chunk
        Which chunk.

    Returns
    -------
    Any
        What the kind of input calls a batch; for arrays a tensor (samples, *channels, *window) on the model's device.

    Raises
    ------
    InvalidInputError
        If the subject has no such chunk.
    """
    if (chunk.item, chunk.group) not in groups_of(subject):
        raise InvalidInputError("chunk", f"the subject has none like {chunk.key}", "Pass one of the run's chunks")
    with torch.inference_mode():
        prepared = subject.prepare(chunk.item, chunk.group)
        return prepared.draw(chunk.size, subject.stream(chunk.key))


class Failures:
    """What became of the chunks that failed.

    Parameters
    ----------
    subject
        What is drawn.
    store
        Where noisy inputs of poisoned chunks are kept.
    """

    def __init__(self, subject: Subject, store: Store) -> None:
        self._subject = subject
        self._store = store
        self._tries: Counter[ChunkKey] = Counter()
        self._poisoned: dict[ChunkKey, PoisonedChunk] = {}

    def try_again(self, failure: FailedChunkError) -> Job | None:
        """Note a failure; returns the job to try, or None if that was the last time.

        Raises
        ------
        InvalidInputError
            If that is what went wrong: an argument is at fault, and not the chunk.
        """
        trouble, job = failure.trouble, failure.job
        if trouble.invalid is not None:
            raise InvalidInputError(*trouble.invalid) from failure
        self._tries[job.chunk.key] += 1
        if self._tries[job.chunk.key] >= _TRIES:
            return None
        # A process that dies again may have been ended for lack of memory: the last try needs less.
        last = self._tries[job.chunk.key] == _TRIES - 1
        return replace(job, halvings=2 if last and trouble.died else job.halvings)

    def put_aside(self, failure: FailedChunkError) -> PoisonedChunk:
        """Give a chunk up, and keep its noisy inputs."""
        chunk = failure.job.chunk
        poisoned = PoisonedChunk(
            chunk, self._subject.seed, failure.trouble, max(1, self._tries[chunk.key]), self._keep_inputs(chunk)
        )
        self._poisoned[chunk.key] = poisoned
        return poisoned

    def forget(self, chunks: Sequence[Chunk]) -> None:
        """Some chunks turned out not to be needed."""
        for chunk in chunks:
            self._poisoned.pop(chunk.key, None)

    def stop_if_hopeless(self) -> None:
        """Stop where nothing has succeeded yet and chunks of several places fail.

        Raises
        ------
        PoisonedChunksError
            Naming them.
        """
        layouts = self._subject.layouts
        places = {key[:2] for key in self._poisoned}
        widespread = len(places) >= min(4, sum(layout.outputs.count for layout in layouts))
        if len(self._poisoned) >= _HOPELESS and widespread and len({p[0] for p in places}) >= min(2, len(layouts)):
            raise PoisonedChunksError(list(self._poisoned.values()), stopped=True)

    def raise_at_the_end(self) -> None:
        """Report what was put aside, if anything was.

        Raises
        ------
        PoisonedChunksError
            Naming every chunk.
        """
        if self._poisoned:
            raise PoisonedChunksError([self._poisoned[key] for key in sorted(self._poisoned)])

    def _keep_inputs(self, chunk: Chunk) -> str:
        name = poisoned_name(chunk.key)
        try:
            prepared = self._subject.prepare(chunk.item, chunk.group)
            if chunk.size * prepared.bytes_per_sample > _LARGEST_INPUT or len(self._poisoned) >= _MOST_INPUTS:
                return ""
            self._store.put_array(name, prepared.inputs(redraw(self._subject, chunk)))
        except (StoreError, RuntimeError, MemoryError):  # a full disk or a broken device: the report comes first
            return ""
        return name
