"""The whole of sampling: plan, resume, draw, choose candidates, draw again, collect."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Num

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.models import Model, check_item
from localsmooth.noise import Noise
from localsmooth.sampling.configuration import describe_run
from localsmooth.sampling.engine import ChunkWorker, FaultyPredictionError, Problem, Task
from localsmooth.sampling.executor import Executor
from localsmooth.sampling.group_progress import GroupProgress
from localsmooth.sampling.options import SamplingOptions
from localsmooth.sampling.overview import OUTPUT_GROUPS
from localsmooth.sampling.part import OtherPartsMissingError, Part
from localsmooth.sampling.plan import Chunk, SamplingPlan, Stage
from localsmooth.sampling.preparation import (
    calibrate_run,
    compare_predictions,
    keep_calibration,
    recall_calibration,
    try_batch,
    try_model,
)
from localsmooth.sampling.progress import NoProgress, SamplingProgress
from localsmooth.sampling.record import ChunkRecord
from localsmooth.sampling.stopping import require_votes_only
from localsmooth.sampling.store import MemoryStore, Store, StoreError
from localsmooth.sampling.tally import ItemTally, choose, collect_tallies, require_choice
from localsmooth.sampling.threads import default_executor

__all__ = ["prepare_items", "sample"]


def sample(
    model: Model,
    items: Sequence[Num[torch.Tensor, "..."] | Num[np.ndarray, "..."]],
    layouts: Sequence[Layout],
    noise: Noise,
    plan: SamplingPlan,
    store: Store | None = None,
    *,
    options: SamplingOptions | None = None,
    executor: Executor | None = None,
    progress: SamplingProgress | None = None,
    part: Part | None = None,
) -> list[ItemTally]:
    """Draw what is still missing of a plan, and return the tallies of every item.

    Interrupting (SIGINT, SIGTERM, a crash) loses the chunks in flight and nothing else (with a stopping rule also
    those that wait for an earlier chunk of their group): the same call with the same store goes on where it stopped
    and ends with the same tallies, wherever the model's arithmetic is the same.

    Parameters
    ----------
    model
        The base classifier.
    items
        Items to smooth, each (*channels, *spatial) in the model's declared input space; sizes may differ.
    layouts
        One layout per item.
    noise
        The family of smoothing distributions.
    plan
        How many samples, and from which seed.
    store
        Where finished chunks are kept; in memory by default.
    options
        How to execute it; by default batch size and memory order are found by a short calibration.
    executor
        Where chunks run; by default in this process, on every core where the model allows that.
    progress
        Told how far it has come; nobody by default.
    part
        Draw this share of the output groups only; everything by default.

    Returns
    -------
    list[ItemTally]
        One per item.

    Raises
    ------
    InvalidInputError
        Naming what cannot be used.
    StoreError
        If the store belongs to another configuration, or something in it cannot be used.
    FaultyPredictionError
        If the model returns scores that are not finite in a sample that is needed. What was being drawn is finished
        and kept first.
    OtherPartsMissingError
        If a part was asked for, all of it is in the store, and something else is still missing.
    """
    options = SamplingOptions() if options is None else options
    store = MemoryStore() if store is None else store
    prepared = prepare_items(model, items, layouts, noise, options.item_dtype)
    counters = options.counters
    if plan.stop is not None:
        require_votes_only(counters)
        plan.stop.require_fit([layout.outputs.count for layout in layouts])
    store.begin(describe_run(model, prepared, layouts, noise, plan, counters))
    if OUTPUT_GROUPS not in store.array_names():
        store.put_array(OUTPUT_GROUPS, np.array([layout.outputs.count for layout in layouts], dtype=np.int64))
    problem = Problem(model, prepared, layouts, noise, plan.seed, counters)
    schedule = _Schedule(problem, plan, store, part)
    with NoProgress() if progress is None else progress as told:
        if schedule.missing:
            _say_precision(model, told)
            if options.check_model:
                try_model(problem)
        if options.check_model:
            compare_predictions(problem, store, keep=schedule.missing > 0)
        if schedule.missing:
            executor = default_executor(model) if executor is None else executor
            calibration = recall_calibration(problem, store, options)
            if calibration is None:
                with executor.conditions():
                    calibration = calibrate_run(problem, plan, options)
                keep_calibration(store, calibration)
            for line in (calibration.summary(), *calibration.warnings):
                told.message(line)
            problem = Problem(calibration.model, prepared, layouts, noise, plan.seed, counters)
            if options.check_model:
                try_batch(problem, calibration.batch_size, plan)
            told.start(schedule.total, schedule.total - schedule.missing)
            worker = ChunkWorker(problem, calibration.batch_size)
            _work_off(schedule, worker, executor, told)
    if schedule.elsewhere:
        raise OtherPartsMissingError(
            f"this part is finished; {schedule.elsewhere} samples at most are missing of the others. Join the parts "
            "with localsmooth merge, then certify without a part"
        )
    return collect_tallies(store, layouts, counters, keep_candidate_counts=options.keep_candidate_counts, plan=plan)


def prepare_items(
    model: Model,
    items: Sequence[Num[torch.Tensor, "..."] | Num[np.ndarray, "..."]],
    layouts: Sequence[Layout],
    noise: Noise,
    dtype: torch.dtype,
) -> list[torch.Tensor]:
    """Check items and layouts against each other, and bring the items to the precision of the run.

    Raises
    ------
    InvalidInputError
        Naming what does not fit.
    """
    if len(items) != len(layouts) or not items:
        raise InvalidInputError(
            "layouts", f"{len(layouts)} layouts for {len(items)} items", "Pass at least one item, and a layout for each"
        )
    prepared: list[torch.Tensor] = []
    for index, (item, layout) in enumerate(zip(items, layouts, strict=True)):
        tensor = torch.as_tensor(item).detach().to("cpu", dtype).contiguous()
        shape = layout.inputs.shape
        if tuple(tensor.shape[tensor.ndim - len(shape) :]) != shape:
            raise InvalidInputError(
                f"items[{index}]",
                f"shape {tuple(tensor.shape)} does not end in the shape {shape} of the layout's input label map",
                "Make the layout from the item's own size",
            )
        check_item(model, tensor)
        noise.validate(layout.levels)
        prepared.append(tensor)
    return prepared


def _say_precision(model: Model, told: SamplingProgress) -> None:
    if model.evaluated_in not in ("float32", "float64"):
        told.message(
            f"{model.evaluated_in}: the certificate will be about the network as it runs in this precision, rounding "
            "included, and not about the same network in full precision. Deploy it as it was certified"
        )


class _Schedule:
    """Which chunks are missing, and which of them can be drawn now: a bound chunk waits for its candidates."""

    def __init__(self, problem: Problem, plan: SamplingPlan, store: Store, part: Part | None) -> None:
        self._problem = problem
        self._plan = plan
        self.store = store
        self._finished = store.finished()
        groups = [(i, g) for i, layout in enumerate(problem.layouts) for g in range(layout.outputs.count)]
        present = {
            chunk.key: chunk.size
            for item, group in groups
            for stage in Stage
            for chunk in plan.chunks(item, group, stage)
        }
        for key, kept in self._finished.items():
            if kept.n != kept.size or present.get(key) != kept.size:
                raise StoreError(f"the stored chunk {key} with {kept.n} samples does not belong to the plan")
        self._drawn: Counter[tuple[int, int]] = Counter()
        for key, kept in self._finished.items():
            self._drawn[key[:2]] += kept.n
        self._begun = {key[:2] for key in self._finished if key[2] == Stage.BOUND.value}
        own = [place for number, place in enumerate(groups) if part is None or part.holds(number)]
        self.total = len(own) * (plan.n_candidate + plan.n_bound)
        self.missing = sum(self._missing(*place) for place in own)
        self.elsewhere = sum(self._missing(*place) for place in groups) - self.missing
        self._groups = deque(own)
        self._candidates: deque[Chunk] = deque()
        self._ready: deque[Task] = deque()
        self._waiting: dict[tuple[int, int], int] = {}
        self._open: dict[tuple[int, int], tuple[GroupProgress, Mapping[str, np.ndarray]]] = {}

    def next(self) -> Task | None:
        """A task that can start now; None if there is none before something in flight is done, or none at all."""
        while not self._ready and not self._candidates and self._groups:
            self._enter(*self._groups.popleft())
        if self._ready:
            return self._ready.popleft()
        if self._candidates:
            return Task(self._candidates.popleft())
        # Nothing else is left to do: draw ahead where it is open whether the samples will count.
        ahead = [(progress, chosen) for progress, chosen in self._open.values() if progress.to_draw]
        if not ahead:
            return None
        progress, chosen = min(ahead, key=lambda entry: entry[0].in_flight)
        return Task(progress.draw(), chosen)

    def done(self, record: ChunkRecord) -> int:
        """Keep a drawn chunk if it counts; returns how many samples fewer are missing now."""
        if self._plan.stop is not None and record.chunk.stage == Stage.BOUND.value:
            return self._done_with_rule(record)
        self.store.commit(record)
        chunk = record.chunk
        if chunk.stage == Stage.CANDIDATE.value:
            place = chunk.item, chunk.group
            self._waiting[place] -= 1
            if not self._waiting[place]:
                self._release(*place)
        return record.n

    def _done_with_rule(self, record: ChunkRecord) -> int:
        place = record.chunk.item, record.chunk.group
        if place not in self._open:
            return 0  # drawn ahead, in vain
        progress, chosen = self._open[place]
        kept = progress.take(record)
        for taken in kept:
            self.store.commit(taken)
        if progress.over:
            del self._open[place]
        elif not progress.in_flight and progress.to_draw:
            self._ready.append(Task(progress.draw(), chosen))
        return sum(taken.n for taken in kept) + progress.skipped

    def failed(self, error: FaultyPredictionError) -> FaultyPredictionError | None:
        """A chunk cannot be counted; returns the error if the chunk is needed, as far as is known now."""
        chunk = error.chunk
        if self._plan.stop is None or chunk is None or chunk.stage != Stage.BOUND.value:
            return error
        place = chunk.item, chunk.group
        if place not in self._open:
            return None  # drawn ahead, in vain
        progress, _ = self._open[place]
        progress.give_up(chunk, error)
        return progress.fault

    @property
    def fault(self) -> FaultyPredictionError | None:
        """Why the run cannot be finished, if that is so."""
        faults = (progress.fault for progress, _ in self._open.values())
        return next((fault for fault in faults if fault is not None), None)

    def _missing(self, item: int, group: int) -> int:
        """Samples of an output group that are neither there nor known to be superfluous."""
        missing = self._plan.n_candidate + self._plan.n_bound - self._drawn[item, group]
        if self._plan.stop is None or (item, group) not in self._begun:
            return missing
        return missing - self._progress(item, group).skipped

    def _progress(self, item: int, group: int) -> GroupProgress:
        chunks = list(self._plan.chunks(item, group, Stage.BOUND))
        finished = frozenset(chunk.index for chunk in chunks if chunk.key in self._finished)
        return GroupProgress(self._plan, chunks, finished, self.store.merged(item, group, Stage.BOUND))

    def _absent(self, item: int, group: int, stage: Stage) -> list[Chunk]:
        return [c for c in self._plan.chunks(item, group, stage) if c.key not in self._finished]

    def _enter(self, item: int, group: int) -> None:
        absent = self._absent(item, group, Stage.CANDIDATE)
        self._waiting[item, group] = len(absent)
        self._candidates.extend(absent)
        if not absent:
            self._release(item, group)

    def _release(self, item: int, group: int) -> None:
        """The candidate stage of a group is complete: let its bound stage go on from what it chose."""
        del self._waiting[item, group]
        merged = self.store.merged(item, group, Stage.CANDIDATE)
        chosen = choose(self._problem.counters, merged)
        for key, kept in self._finished.items():
            if key[:3] == (item, group, Stage.BOUND.value):
                require_choice(item, group, chosen, kept.chosen)
        if self._plan.stop is None:
            self._ready.extend(Task(c, chosen) for c in self._absent(item, group, Stage.BOUND))
        elif not (progress := self._progress(item, group)).over:
            self._open[item, group] = progress, chosen
            self._ready.append(Task(progress.draw(), chosen))


def _work_off(schedule: _Schedule, worker: ChunkWorker, executor: Executor, told: SamplingProgress) -> None:
    in_flight, fault = 0, None
    with executor.open(worker) as session:
        while True:
            while fault is None and in_flight < session.capacity and (task := schedule.next()) is not None:
                session.submit(task)
                in_flight += 1
            if not in_flight:
                break
            try:
                record = session.collect()
            except FaultyPredictionError as error:
                fault = fault or schedule.failed(error)
            else:
                told.advance(schedule.done(record))
                fault = fault or schedule.fault
            in_flight -= 1
    if fault is not None:
        raise fault
