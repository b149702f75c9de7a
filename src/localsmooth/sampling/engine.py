"""Draw, predict, count: one chunk at a time."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from localsmooth.errors import LocalsmoothError
from localsmooth.memory import is_out_of_memory, peak_device_memory, peak_memory
from localsmooth.runs import Chunk, ChunkRecord, Stage, chosen_digest
from localsmooth.sampling.counter import CountingScope
from localsmooth.sampling.options import BatchSize
from localsmooth.sampling.subject import PreparedGroup, Subject

__all__ = ["ChunkWorker", "FaultyPredictionError", "Job"]


class FaultyPredictionError(LocalsmoothError):
    """The model returned scores that are NaN or infinite, or labels that are no classes."""


@dataclass(frozen=True, eq=False)
class Job:
    """A chunk to be drawn, and what its stage has to know.

    Parameters
    ----------
    chunk
        Which chunk.
    chosen
        What the candidate stage chose, one row per output of the group; empty in the candidate stage.
    halvings
        How often to halve the batch size, where earlier tries may have failed for lack of memory.
    """

    chunk: Chunk
    chosen: Mapping[str, np.ndarray] = field(default_factory=dict)
    halvings: int = 0

    @cached_property
    def chosen_digest(self) -> str:
        """Digest of `chosen`, empty where there is nothing."""
        return chosen_digest(self.chosen)


class ChunkWorker:
    """Works off chunks; can be pickled and sent to another process before its first chunk.

    Parameters
    ----------
    subject
        What to draw.
    batch_size
        Samples per forward pass. Halved for good where the memory does not suffice.
    tell
        Told after every batch but the last how many samples of a chunk are drawn, from the thread that draws them;
        other processes tell nobody.
    """

    def __init__(
        self, subject: Subject, batch_size: BatchSize, tell: Callable[[Chunk, int], None] | None = None
    ) -> None:
        self.subject = subject
        self.batch_size = batch_size
        self._tell = tell
        self._limit: int | None = None
        self._prepared: tuple[tuple[int, int], PreparedGroup] | None = None

    def replica(self) -> ChunkWorker:
        """Return a worker for another thread."""
        return ChunkWorker(self.subject.replica(), self.batch_size, self._tell)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind who is told."""
        return {**self.__dict__, "_tell": None}

    def __call__(self, job: Job) -> ChunkRecord:
        """Draw and count one chunk.

        A chunk that runs out of memory starts again from its own stream with half the batch size, so that no sample
        is counted twice or left out.

        Raises
        ------
        FaultyPredictionError
            If a prediction is not finite or no class.
        InvalidInputError
            If the model's outputs do not have the layout's shape.
        """
        with torch.inference_mode():
            prepared = self._prepare(job.chunk.item, job.chunk.group)
            size = min(self.batch_size.of(prepared.elements), job.chunk.size, self._limit or 2**31)
            size = max(1, size >> job.halvings)
            while True:
                try:
                    return self._count(job, prepared, size)
                except (MemoryError, RuntimeError) as error:
                    if size == 1 or not is_out_of_memory(error):
                        raise
                # Out of the except block, so that the failed call's tensors are free by now.
                prepared.release()
                if self.subject.device.type == "cuda":
                    torch.cuda.empty_cache()
                size = self._limit = size // 2

    def _prepare(self, item: int, group: int) -> PreparedGroup:
        if self._prepared is None or self._prepared[0] != (item, group):
            self._prepared = None  # two groups' buffers at once are one too many
            self._prepared = (item, group), self.subject.prepare(item, group)
        return self._prepared[1]

    def _count(self, job: Job, prepared: PreparedGroup, size: int) -> ChunkRecord:
        started = time.perf_counter()
        chunk, device, counters = job.chunk, self.subject.device, self.subject.counters
        chosen = {name: torch.as_tensor(array, device=device) for name, array in job.chosen.items()}
        scope = CountingScope(prepared.shape, self.subject.classes, device, chunk.size, chosen)
        stage = Stage(chunk.stage)
        running = [(c.name, c.start(scope)) for c in (counters.candidate, counters.bound)[stage.value]]
        stream = self.subject.stream(chunk.key)
        faulty = torch.zeros((), dtype=torch.bool, device=device)
        drawn = 0
        while drawn < chunk.size:
            count = min(size, chunk.size - drawn)
            predictions = prepared.predict(prepared.draw(count, stream))
            faulty |= predictions.faulty
            for _, accumulator in running:
                accumulator.update(predictions)
            drawn += count
            if self._tell is not None and drawn < chunk.size:
                self._tell(chunk, drawn)
        if bool(faulty):
            raise FaultyPredictionError(
                f"item {chunk.item}, output group {chunk.group}, chunk {chunk.index} of the {stage.name.lower()} "
                "stage: the model returned scores that are NaN or infinite, or labels outside its classes. Nothing "
                "was counted for this chunk; check the model on noisy inputs, or use full precision",
            )
        counts = {
            f"{name}.{key}": array.cpu().numpy()
            for name, accumulator in running
            for key, array in accumulator.arrays().items()
        }
        provenance = _provenance(device) | {
            "precision": prepared.precision,
            "batch_size": size,
            "seconds": time.perf_counter() - started,
            "peak_memory": peak_memory(),
            "peak_device_memory": peak_device_memory(device),
        }
        return ChunkRecord(chunk, drawn, counts, job.chosen_digest, provenance)


def _provenance(device: torch.device) -> dict[str, str | int | float | bool | None]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "device": str(device),
        "device_name": name,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
