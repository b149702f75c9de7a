"""The whole of sampling: plan, resume, draw, choose candidates, draw again, collect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Num

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, item_digest
from localsmooth.models import Model, check_item
from localsmooth.noise import Noise
from localsmooth.sampling.configuration import describe_run
from localsmooth.sampling.engine import ChunkWorker, Problem
from localsmooth.sampling.executor import Executor, FailedChunkError
from localsmooth.sampling.failures import Failures
from localsmooth.sampling.options import SamplingOptions
from localsmooth.sampling.overview import OUTPUT_GROUPS
from localsmooth.sampling.part import OtherPartsMissingError, Part
from localsmooth.sampling.plan import SamplingPlan
from localsmooth.sampling.preparation import (
    calibrate_run,
    compare_predictions,
    keep_calibration,
    recall_calibration,
    try_batch,
    try_model,
)
from localsmooth.sampling.progress import NoProgress, SamplingProgress
from localsmooth.sampling.schedule import Schedule
from localsmooth.sampling.stopping import require_votes_only
from localsmooth.sampling.store import MemoryStore, Store
from localsmooth.sampling.tally import ItemTally, collect_tallies
from localsmooth.sampling.threads import default_executor
from localsmooth.sampling.usage import UsageMeter

__all__ = ["prepare_items", "sample"]

_FITTED_ELSEWHERE = "Fit levels and groups on other items, or certify others"


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
    PoisonedChunksError
        If chunks fail every time they are tried (an exception in the model, scores that are not finite, a worker that
        dies of them); after everything else is finished and stored.
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
    schedule = Schedule(problem, plan, store, part, forget_counts=not options.keep_candidate_counts)
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
            _work_off(schedule, worker, executor, Failures(problem, store), told)
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
        if layout.origins:
            given = torch.as_tensor(item).detach().to("cpu", torch.float32).numpy()
            layout.require_independent(item_digest(given), f"items[{index}]", _FITTED_ELSEWHERE)
        prepared.append(tensor)
    return prepared


def _say_precision(model: Model, told: SamplingProgress) -> None:
    if model.evaluated_in not in ("float32", "float64"):
        told.message(
            f"{model.evaluated_in}: the certificate will be about the network as it runs in this precision, rounding "
            "included, and not about the same network in full precision. Deploy it as it was certified"
        )


def _work_off(
    schedule: Schedule, worker: ChunkWorker, executor: Executor, failures: Failures, told: SamplingProgress
) -> None:
    in_flight = 0
    succeeded = False
    usage = UsageMeter(local=executor.local)
    with executor.open(worker) as session:
        while True:
            while in_flight < session.capacity and (task := schedule.next()) is not None:
                session.submit(task)
                in_flight += 1
            if not in_flight:
                break
            try:
                record = session.collect()
            except FailedChunkError as failure:
                if (again := failures.try_again(failure)) is not None:
                    session.submit(again)
                    continue
                in_flight -= 1
                told.message(f"put aside: {failures.put_aside(failure)}")
                schedule.give_up(failure.task.chunk)
                if not succeeded:
                    failures.stop_if_hopeless()
                continue
            in_flight -= 1
            succeeded = True
            usage.note(record)
            told.advance(schedule.done(record))
    told.finish(usage.summary(schedule.committed))
    failures.forget(schedule.not_needed)
    failures.raise_at_the_end()
