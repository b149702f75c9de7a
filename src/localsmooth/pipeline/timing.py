"""How fast a run draws: a little of it, drawn as the run will be, and timed."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace

import torch

from localsmooth.execution import (
    NoProgress,
    SamplingSummary,
    Until,
    default_executor,
    draw_subject,
    named_executor,
)
from localsmooth.pipeline.run import Run
from localsmooth.runs import DirectoryStore, MemoryStore, SamplingPlan
from localsmooth.sampling import Ready, SamplingOptions, Subject, try_out

__all__ = ["Timing", "timed"]

_MOMENT = 0.3  # seconds


@dataclass(frozen=True)
class Timing:
    """What a little of a run took.

    Parameters
    ----------
    rate
        Passes per second; None if there were too few to tell.
    passes
        Passes that were timed.
    memory
        Largest memory of one process, in bytes; None if not known.
    chunk_bytes
        Mean size of a stored chunk.
    messages
        What the user should know, such as the batch size that was chosen.
    options
        How it was drawn, with what was found out about that.
    """

    rate: float | None
    passes: float
    memory: int | None
    chunk_bytes: float
    messages: tuple[str, ...]
    options: SamplingOptions


def timed(subject: Subject, planned: SamplingPlan, run: Run, options: SamplingOptions, seconds: float) -> Timing:
    """Draw a little as the run will.

    Parameters
    ----------
    subject, planned, run, options
        Of the run.
    seconds
        Time for it, beside calibration and trials.

    Raises
    ------
    InvalidInputError
        If the model cannot be used.
    """
    executor = default_executor(subject) if run.executor is None else named_executor(run.executor)
    if options.check_model:
        try_out(subject)
    ready = subject.get_ready(planned, MemoryStore(), options, executor.conditions())
    order = getattr(getattr(ready.subject, "model", None), "channels_last", options.channels_last)
    size = _chunk_size(ready, planned.chunk_size)
    few = SamplingPlan(min(size, planned.n_candidate), planned.n_bound, planned.seed, size)
    told = _Timer()
    fixed = replace(options, batch_size=ready.batch_size.samples, channels_last=order, check_model=False)
    with tempfile.TemporaryDirectory(prefix="localsmooth-plan-") as folder:
        store = DirectoryStore(folder)
        draw_subject(subject, few, store, options=fixed, executor=executor, progress=told, until=Until(seconds))
        kept = len(store.finished())
        each = sum(path.stat().st_size for path in store.path.rglob("*.tally")) / max(1, kept)
    memory = None if told.summary is None else told.summary.peak_memory
    return Timing(told.rate, told.passes, memory, each, (*subject.notes(), *ready.messages), fixed)


def _chunk_size(ready: Ready, most: int) -> int:
    """Samples of a chunk that takes a moment: chunks that have begun are finished, and each takes some time itself."""
    prepared = ready.subject.prepare(0, 0)
    batch = min(ready.batch_size.of(prepared.elements), most)
    with torch.inference_mode():
        began = time.perf_counter()
        prepared.predict(prepared.draw(batch, ready.subject.stream((0, 0, 0, 0)))).labels  # noqa: B018 (computed here)
        seconds = time.perf_counter() - began
    prepared.release()
    return min(most, batch * max(1, round(_MOMENT / max(seconds, 1e-6))))


class _Timer(NoProgress):
    """Notes how much work was done when; the first chunk, before which everything starts, does not count if it can."""

    def __init__(self) -> None:
        self.summary: SamplingSummary | None = None
        self._events: list[tuple[float, float]] = []

    def work(self, done: float, total: float) -> None:
        del total
        self._events.append((time.perf_counter(), done))

    def finish(self, summary: SamplingSummary) -> None:
        self.summary = summary

    @property
    def passes(self) -> float:
        return self._events[-1][1] if self._events else 0.0

    @property
    def rate(self) -> float | None:
        if len(self._events) < 2:
            return None
        (start, before), (end, done) = self._events[1 if len(self._events) > 3 else 0], self._events[-1]
        return (done - before) / max(end - start, 1e-9)
