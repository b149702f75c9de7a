"""Draw, predict, count: one chunk at a time."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from localsmooth.errors import LocalsmoothError
from localsmooth.layout import Layout
from localsmooth.models import Model
from localsmooth.noise import Noise, PreparedNoise, Randomness
from localsmooth.sampling.configuration import chosen_digest
from localsmooth.sampling.counter import Counters, CountingScope
from localsmooth.sampling.memory import is_out_of_memory
from localsmooth.sampling.options import BatchSize
from localsmooth.sampling.plan import Chunk, Stage
from localsmooth.sampling.predictions import Predictions
from localsmooth.sampling.record import ChunkRecord
from localsmooth.sampling.region import Region
from localsmooth.sampling.usage import peak_device_memory, peak_memory

__all__ = ["ChunkWorker", "FaultyPredictionError", "Problem", "Task"]


class FaultyPredictionError(LocalsmoothError):
    """The model returned scores that are NaN or infinite, or labels that are no classes."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that the content of a chunk depends on.

    Parameters
    ----------
    model
        The base classifier.
    items
        Items to smooth, each of shape (*channels, *spatial), all in the precision in which noise is drawn.
    layouts
        One layout per item.
    noise
        The family of smoothing distributions.
    seed
        The run's seed.
    counters
        What each stage counts.
    """

    model: Model
    items: Sequence[torch.Tensor]
    layouts: Sequence[Layout]
    noise: Noise
    seed: int
    counters: Counters = field(default_factory=Counters)


@dataclass(frozen=True, eq=False)
class Task:
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


@dataclass(frozen=True, eq=False)
class _Prepared:
    """One output group of one item, ready to draw."""

    region: Region
    noise: PreparedNoise
    shape: tuple[int, ...]


class ChunkWorker:
    """Works off chunks; can be pickled and sent to another process before its first chunk.

    Parameters
    ----------
    problem
        What to draw.
    batch_size
        Samples per forward pass. Halved for good where the memory does not suffice.
    """

    def __init__(self, problem: Problem, batch_size: BatchSize) -> None:
        self.problem = problem
        self.batch_size = batch_size
        self._limit: int | None = None
        self._prepared: tuple[tuple[int, int], _Prepared] | None = None
        self._buffer: torch.Tensor | None = None
        self._item: tuple[int, torch.Tensor] | None = None

    def __call__(self, task: Task) -> ChunkRecord:
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
            prepared = self._prepare(task.chunk.item, task.chunk.group)
            size = min(self.batch_size.of(int(np.prod(prepared.shape))), task.chunk.size, self._limit or 2**31)
            size = max(1, size >> task.halvings)
            while True:
                try:
                    return self._count(task, prepared, size)
                except (MemoryError, RuntimeError) as error:
                    if size == 1 or not is_out_of_memory(error):
                        raise
                # Out of the except block, so that the failed call's tensors are free by now.
                self._buffer = None
                if self.problem.model.device.type == "cuda":
                    torch.cuda.empty_cache()
                size = self._limit = size // 2

    def _prepare(self, item: int, group: int) -> _Prepared:
        if self._prepared is None or self._prepared[0] != (item, group):
            problem = self.problem
            region = Region.of(problem.layouts[item], group, problem.model.device)
            crop = region.of_item(self._on_device(item))
            noise = problem.noise.prepare(crop, region.level_map, problem.model.bounds, problem.model.hidden_value)
            self._prepared = (item, group), _Prepared(region, noise, tuple(crop.shape))
        return self._prepared[1]

    def _on_device(self, item: int) -> torch.Tensor:
        """An item where the model wants it; it travels once for all of its output groups."""
        if self._item is None or self._item[0] != item:
            tensor, device = self.problem.items[item], self.problem.model.device
            if device.type == "cuda":
                tensor = tensor.pin_memory().to(device, non_blocking=True)
            self._item = item, tensor.to(device)
        return self._item[1]

    def _count(self, task: Task, prepared: _Prepared, size: int) -> ChunkRecord:
        started = time.perf_counter()
        chunk, model, counters = task.chunk, self.problem.model, self.problem.counters
        chosen = {name: torch.as_tensor(array, device=model.device) for name, array in task.chosen.items()}
        scope = CountingScope(prepared.region.shape, model.classes, model.device, chunk.size, chosen)
        stage = Stage(chunk.stage)
        running = [(c.name, c.start(scope)) for c in (counters.candidate, counters.bound)[stage.value]]
        randomness = Randomness(self.problem.seed, chunk.key, model.device)
        faulty = torch.zeros((), dtype=torch.bool, device=model.device)
        drawn = 0
        while drawn < chunk.size:
            batch = self._batch(min(size, chunk.size - drawn), prepared.shape)
            prepared.noise.draw(batch, randomness)
            predictions = Predictions(model(batch), prepared.region, model.output, model.classes, batch.shape[0])
            faulty |= predictions.faulty
            for _, accumulator in running:
                accumulator.update(predictions)
            drawn += batch.shape[0]
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
        provenance = _provenance(model.device) | {
            "precision": str(self.problem.items[chunk.item].dtype),
            "batch_size": size,
            "seconds": time.perf_counter() - started,
            "peak_memory": peak_memory(),
            "peak_device_memory": peak_device_memory(model.device),
        }
        return ChunkRecord(chunk, drawn, counts, task.chosen_digest, provenance)

    def _batch(self, samples: int, shape: tuple[int, ...]) -> torch.Tensor:
        """The first `samples` of a buffer that is allocated once."""
        elements = samples * int(np.prod(shape))
        precision, device = self.problem.items[0].dtype, self.problem.model.device
        if self._buffer is None or self._buffer.numel() < elements:
            self._buffer = torch.empty(elements, dtype=precision, device=device)
        return self._buffer[:elements].view(samples, *shape)


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
