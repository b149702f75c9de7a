"""The whole of sampling: plan, resume, draw, choose candidates, draw again, collect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Num

from localsmooth.execution.executor import Executor, FailedChunkError
from localsmooth.execution.failures import Failures
from localsmooth.execution.named_executors import ExecutorName, named_executor
from localsmooth.execution.part import OtherPartsMissingError, Part
from localsmooth.execution.progress import NoProgress, SamplingProgress, tell_work
from localsmooth.execution.rounds import Rounds
from localsmooth.execution.schedule import Schedule
from localsmooth.execution.threads import default_executor
from localsmooth.execution.until import Until
from localsmooth.execution.usage import UsageMeter
from localsmooth.execution.within import Within
from localsmooth.layout import Layout
from localsmooth.models import Model
from localsmooth.noise import Noise
from localsmooth.runs import OUTPUT_GROUPS, MemoryStore, SamplingPlan, Store
from localsmooth.sampling import (
    ArraySubject,
    ChunkWorker,
    ItemTally,
    SamplingOptions,
    Subject,
    collect_tallies,
    compare_predictions,
    prepare_items,
    require_votes_only,
    try_out,
)

__all__ = ["draw_subject", "require_stopping", "sample", "sample_subject"]


def sample(
    model: Model,
    items: Sequence[Num[torch.Tensor, "..."] | Num[np.ndarray, "..."]],
    layouts: Sequence[Layout],
    noise: Noise,
    plan: SamplingPlan,
    store: Store | None = None,
    *,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
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
        Where chunks run, or the name of such a place: "serial", "threads", "processes" or "ray"; by default in this
        process, on every core where the model allows that.
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
    prepared = prepare_items(model, items, layouts, noise, options.item_dtype)
    subject = ArraySubject(model, prepared, layouts, noise, plan.seed, options.counters)
    return sample_subject(subject, plan, store, options=options, executor=executor, progress=progress, part=part)


def require_stopping(subject: Subject, plan: SamplingPlan) -> None:
    """Refuse a plan that stops early where what is counted does not allow it.

    Parameters
    ----------
    subject, plan
        As in `sample_subject`.

    Raises
    ------
    InvalidInputError
        Naming what is counted, or that the rule is for other groups.
    """
    if plan.stop is not None:
        require_votes_only(subject.counters)
        plan.stop.require_fit([layout.outputs.count for layout in subject.layouts])


def sample_subject(
    subject: Subject,
    plan: SamplingPlan,
    store: Store | None = None,
    *,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
    progress: SamplingProgress | None = None,
    part: Part | None = None,
) -> list[ItemTally]:
    """Do what `sample` does, for any kind of input.

    Parameters
    ----------
    subject
        What is drawn.
    plan
        How many samples; the seed is the subject's.
    store, options, executor, progress, part
        As in `sample`. What is counted is the subject's, too.

    Raises
    ------
    InvalidInputError, StoreError, PoisonedChunksError, OtherPartsMissingError
        As in `sample`.
    """
    options = SamplingOptions() if options is None else options
    store = MemoryStore() if store is None else store
    draw_subject(subject, plan, store, options=options, executor=executor, progress=progress, part=part)
    keep = options.keep_candidate_counts
    return collect_tallies(store, subject.layouts, subject.counters, keep_candidate_counts=keep, plan=plan)


def draw_subject(
    subject: Subject,
    plan: SamplingPlan,
    store: Store,
    *,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
    progress: SamplingProgress | None = None,
    part: Part | None = None,
    rounds: Rounds | None = None,
    until: Until | None = None,
) -> None:
    """Draw what is missing of a plan into a store, without reading it.

    Parameters
    ----------
    subject, plan, store, options, executor, progress, part
        As in `sample_subject`.
    rounds
        Told of every chunk; an item's output groups then get ahead together.
    until
        When to end before the plan does: chunks that have begun are finished.

    Raises
    ------
    InvalidInputError, StoreError, PoisonedChunksError, OtherPartsMissingError
        As in `sample`.
    """
    options = SamplingOptions() if options is None else options
    executor = None if executor is None else named_executor(executor)
    layouts = subject.layouts
    require_stopping(subject, plan)
    store.begin(subject.describe(plan))
    if not store.has_array(OUTPUT_GROUPS):
        store.put_array(OUTPUT_GROUPS, np.array([layout.outputs.count for layout in layouts], dtype=np.int64))
    schedule = Schedule(subject, plan, store, part, not options.keep_candidate_counts, rounds)
    until = Until() if until is None else until
    with NoProgress() if progress is None else progress as told, until.watching():
        if schedule.missing:
            for line in subject.notes():
                told.message(line)
            if options.check_model:
                try_out(subject)
        if options.check_model:
            compare_predictions(subject, store, keep=schedule.missing > 0)
        if schedule.missing:
            place = default_executor(subject) if executor is None else executor
            ready = subject.get_ready(plan, store, options, place.conditions())
            for line in ready.messages:
                told.message(line)
            told.start(schedule.total, schedule.total - schedule.missing)
            tell_work(told, schedule.passes - schedule.passes_missing, schedule.passes)
            within = Within(told, schedule.passes_of)
            worker = ChunkWorker(ready.subject, ready.batch_size, within.hear)
            if until.interrupted:
                told.message(
                    "An interrupt (Ctrl-C) ends sampling, and what is complete is certified; a second one gives up"
                )
            until.start()
            within.finished(schedule.passes - schedule.passes_missing, schedule.passes)
            _work_off(schedule, worker, place, Failures(ready.subject, store), told, until, within)
    if schedule.elsewhere:
        raise OtherPartsMissingError(
            f"this part is finished; {schedule.elsewhere} samples at most are missing of the others. Join the parts "
            "with localsmooth merge, then certify without a part"
        )


def _work_off(
    schedule: Schedule,
    worker: ChunkWorker,
    executor: Executor,
    failures: Failures,
    told: SamplingProgress,
    until: Until,
    within: Within,
) -> None:
    in_flight = 0
    succeeded = False
    usage = UsageMeter(local=executor.local)
    with executor.open(worker) as session:
        while True:
            while not until.over and in_flight < session.capacity and (job := schedule.next()) is not None:
                session.submit(job)
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
                with within.alone(failure.job.chunk):
                    told.message(f"put aside: {failures.put_aside(failure)}")
                schedule.give_up(failure.job.chunk)
                if not succeeded:
                    failures.stop_if_hopeless()
                continue
            in_flight -= 1
            succeeded = True
            usage.note(record)
            with within.alone(record.chunk):  # certificates so far are told in `done`
                fewer = schedule.done(record)
                done = schedule.passes - schedule.passes_missing
                within.finished(done, schedule.passes)
                tell_work(told, done, schedule.passes)
                told.advance(fewer)
    if until.over and schedule.missing > schedule.committed:
        told.message("Sampling was ended: the chunks that had begun are finished, and complete rounds are certified")
    told.finish(usage.summary(schedule.committed))
    failures.forget(schedule.not_needed)
    failures.raise_at_the_end()
