"""The main job, for every kind of input: sample a smoothed model, and certify its predictions."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import NoneType
from typing import Any

import xarray as xr

from localsmooth.bounds import Automatic, CountRule
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError, LocalsmoothError, require_kind
from localsmooth.execution import (
    Executor,
    LiveProgress,
    Rounds,
    SamplingProgress,
    default_executor,
    draw_subject,
    named_executor,
    replay_samples,
    require_stopping,
    told_by_default,
)
from localsmooth.models import Model
from localsmooth.pipeline.asked import described, same_event
from localsmooth.pipeline.keeping import naming_interruption, naming_keys, plain_configuration, run_stores, save_result
from localsmooth.pipeline.live import Live, quick
from localsmooth.pipeline.run import Run
from localsmooth.pipeline.settling import Settling
from localsmooth.pipeline.transferring import candidates_from, take_candidates
from localsmooth.runs import FileStore, OtherRunError, SamplingPlan, Store
from localsmooth.sampling import ItemTally, SamplingOptions, collect_ended, collect_tallies, unfinished_items
from localsmooth.tasks import (
    FINISHED,
    Asked,
    Assignment,
    RunRecord,
    Smoothing,
    Strategies,
    Task,
    holds_anytime,
    load_record,
    require_anytime,
    sampled_at,
    save_record,
)

__all__ = ["NothingDrawnError", "certify"]


class NothingDrawnError(LocalsmoothError):
    """Sampling was ended before anything could be certified."""


def certify(task: Task[Any, Asked], smoothing: Smoothing, prove: Asked, *, run: Run | None = None) -> xr.Dataset:
    """Certify how many predictions of a model one perturbed input can change, for every item and budget.

    Parameters
    ----------
    task
        A model and what it is certified on: an `ArrayTask`, or another kind of `localsmooth.tasks`.
    smoothing
        Where noise goes, which, and how often it is drawn.
    prove
        What is proven: `Settings`, or those of the kind of input.
    run
        Where the run is kept, and how it is executed; by default in memory, as fast as this machine allows. With a
        larger `n_bound` than the run in its directory has, that run is extended; what is proven must then hold at
        every number of samples at once (`JointCount`, early stopping).

    Returns
    -------
    xr.Dataset
        See `localsmooth.results`. With probability 1 − α over the samples, at least `certified` of the target
        outputs keep their prediction for every input within the budget, for each item on its own.

    Raises
    ------
    InvalidInputError
        Naming what cannot be used, before anything is sampled.
    StoreError
        If the run directory belongs to another configuration, or something in it is damaged.
    OtherPartsMissingError
        If the part that was asked for is finished, and others are not.
    PoisonedChunksError
        If the model fails on some samples every time; after everything else is drawn and stored.
    NothingDrawnError
        If sampling was ended (`Run(until=…)`) before any item had votes in each of its output groups.
    """
    if isinstance(task, Model):
        raise InvalidInputError("task", "got a model", "Pass ArrayTask(model, items, labels)")
    require_kind("task", task, Task)
    require_kind("smoothing", smoothing, Smoothing)
    require_kind("run", run, Run, NoneType)
    task.require_settings(prove)
    run = Run() if run is None else run
    executor = None if run.executor is None else named_executor(run.executor)
    out = None if run.out is None else expanded(run.out)
    earlier = _earlier(out, task.name)
    options = SamplingOptions() if run.options is None else run.options
    configuration = plain_configuration(run.configuration)
    assignment = task.assign(smoothing, prove, options, run.scores)
    plan = assignment.plan
    prove = prove if assignment.proven is None else assignment.proven
    for field, asked in (("part", run.part), ("candidates", run.candidates), ("replay", options.replay or None)):
        if asked is not None and assignment.draw is not None:
            problem = "a method of its own draws its samples as a whole"
            raise InvalidInputError(field, problem, "Certify with one of them")
    if assignment.draw is None:
        require_stopping(assignment.subject, plan)
    if run.until is not None:
        require_anytime(prove, sequence=plan.stop is not None, place="this run" if out is None else out, ended=True)
        if run.part is not None:
            raise InvalidInputError("until", "a part is not certified", "Let it draw all of its samples")
    prove, counted = _going_on(prove, earlier, plan, ends=run.until is not None)
    lasting = out is not None or run.store is not None
    with run_stores(out, run.store) as stores, told_by_default(run.progress, kept=lasting) as told:
        kept, tallied = stores
        begun: list[int] | None = None
        replayed: dict[str, float] | None = None
        _require_may_grow(task, assignment, stores, plan, prove, out)
        if assignment.told:
            told.message(assignment.told)
        if assignment.draw is not None:
            sampled = assignment.draw(tallied, told)
        else:
            rounds = _rounds(task, assignment, prove, run, tallied, told)
            with naming_interruption(out, earlier, tallied), naming_keys(tallied, configuration):
                if run.candidates is not None:
                    take_candidates(run.candidates, assignment.subject, plan, tallied)
                draw_subject(
                    assignment.subject,
                    plan,
                    tallied,
                    options=options,
                    executor=executor,
                    progress=told,
                    part=run.part,
                    rounds=rounds,
                    until=run.until,
                )
            replayed = _replayed(assignment, plan, tallied, options, executor, told)
            tallies, begun = _tallies(assignment, tallied, options, None if run.until is None else rounds)
            sampled = assignment.collect(tallies)
        chunks = list(tallied.finished().values())
        stores.join()
        configured, taken = tallied.configuration, candidates_from(tallied)
        if out is None:
            del kept, tallied, stores  # what is in memory is of no further use
        else:
            if earlier is not None and earlier.begun is not None:
                (out / FINISHED).unlink()  # it belongs to the arrays that are replaced now
            task.save(sampled, kept)
        record = _record(
            assignment,
            run,
            plan,
            seconds=sum(chunk.seconds for chunk in chunks),
            batch_size=max(1, *(chunk.batch_size for chunk in chunks)),
            versions=_versions(),
            configuration=configuration,
            sampled=sampled_at(out, plan.n_bound),
            extended=None if configured is None else configured.first,
            begun=begun,
            candidates=taken,
            replay=replayed,
            settings=described(prove),
            counted=counted,
        )
        if out is not None:
            save_record(record, out)
        result = task.result(sampled, prove, record, configured, told)
        if out is not None:
            anytime = holds_anytime(prove, sequence=plan.stop is not None)
            together = anytime and earlier is not None and same_event(prove, earlier.settings)
            save_result(result, out, together=together)
    return result


def _replayed(
    assignment: Assignment[Any],
    plan: SamplingPlan,
    store: Store,
    options: SamplingOptions,
    executor: Executor | None,
    told: SamplingProgress,
) -> dict[str, float] | None:
    """Draw some samples again, if that is asked for, and tell what came of it."""
    if not options.replay:
        return None
    place = default_executor(assignment.subject) if executor is None else executor
    ready = assignment.subject.get_ready(plan, store, replace(options, check_model=False), place.conditions())
    made = replay_samples(ready.subject, ready.batch_size, store, options.replay, place.conditions)
    told.message(
        f"{made['samples']:.0f} samples were drawn again: {made['differing']:.0f} had other labels, "
        f"{made['differing_labels']:.0f} of {made['labels']:.0f} in all"
    )
    return made


def _going_on(prove: Any, earlier: RunRecord | None, plan: SamplingPlan, *, ends: bool) -> tuple[Any, bool | None]:
    """Settle on the rule of an earlier certificate in the same directory where the run goes on: both are one claim.

    Where the rule is chosen automatically: a run that is ended counts from the start, and goes on counting; what was
    begun by the automatic choice goes on by it. What was named for a certificate of all samples is no concern of the
    next one, which is another claim, unless the run gets more samples.

    Returns
    -------
    tuple
        What is proven, and what the record says of its rule (`RunRecord.counted`).
    """
    if not isinstance(prove, Strategies):
        return prove, False
    asked = prove.counted()
    rule, count = (described(each)["simultaneous"] for each in (prove, asked))
    known = None if earlier is None else earlier.settings.get("simultaneous")
    kept = None if earlier is None else earlier.counted
    if prove is asked:  # its rule was named
        return prove, kept if known == count else False
    if earlier is None or known != count:
        return (asked, True) if ends and known != rule else (prove, False)
    if ends or earlier.begun is not None or earlier.extended is not None or plan.n_bound > earlier.n_bound:
        return asked, True
    # Where it is not known whether somebody named the rule, it may have been a part of what goes on.
    return (prove, False) if kept is False else (asked, kept)


def _require_may_grow(
    task: Task[Any, Any],
    assignment: Assignment[Any],
    stores: tuple[Store, Store],
    plan: SamplingPlan,
    prove: Any,
    place: Path | None,
) -> None:
    """Refuse more samples than a run began with, before any is drawn, where what is proven does not hold then."""
    kept, store = stores
    known = store.configuration
    if known is None or (isinstance(store, FileStore) and store.untouched):
        return
    if known.first is None and plan.n_bound <= (known.samples or plan.n_bound):
        return
    require_anytime(prove, sequence=plan.stop is not None, place=place)
    if place is not None and (place / FINISHED).is_file():
        record = load_record(place)
        first = record.n_bound if known.first is None else known.first
        task.settle(task.load(record, kept), prove, replace(record, extended=first))
    elif isinstance(prove, Strategies) and isinstance(prove.simultaneous, Automatic) and plan.stop is None:
        # Interrupted before anything was certified: the candidate stage alone can tell the rule.
        first = known.samples if known.first is None else known.first
        begun, layouts = replace(plan, n_bound=first), assignment.subject.layouts
        if assignment.draw is not None or unfinished_items(store, layouts, begun):
            raise InvalidInputError(
                "n_bound",
                f"the run began with N₂ = {first} and was interrupted, so that it is not known by which rule its "
                "outputs share α",
                f"Let it end with n_bound = {first} first, or name the rule that allows for more samples: JointCount "
                '(many_outputs = { rule = "joint_count" })',
            )
        tallies = collect_tallies(store, layouts, assignment.subject.counters, plan=begun)
        record = _record(assignment, Run(), plan, extended=first, settings={})
        task.settle(assignment.collect(tallies), prove, record)


def _rounds(
    task: Task[Any, Any], assignment: Assignment[Any], prove: Any, run: Run, store: Store, told: SamplingProgress
) -> Rounds | None:
    """Follow the rounds of every item where what they prove is asked for, and tell it to whoever wants to know."""
    plan = assignment.plan
    live = told if isinstance(told, LiveProgress) and isinstance(prove, Strategies) else None
    anytime = run.part is None and holds_anytime(prove, sequence=plan.stop is not None)
    if not anytime or (run.until is None and live is None):
        return None
    subject = assignment.subject
    rounds = Rounds(plan, [layout.outputs.count for layout in subject.layouts], store)
    share = None if run.until is None else run.until.settled
    if live is None and share is None:
        return rounds

    def certify_rounds(item: int) -> xr.Dataset:
        tallies: list[ItemTally | None] = [None] * len(subject.layouts)
        counted = rounds.counted(item)
        tallies[item] = collect_ended(store, item, subject.layouts[item], subject.counters, counted, plan=plan)
        extended = None if store.configuration is None else store.configuration.first
        record = _record(assignment, run, plan, begun=[item], extended=extended, settings={})
        return task.result(assignment.collect(tallies), quick(prove), record, store.configuration)

    looking: list[Callable[[int, int], None]] = []
    if share is not None:
        looking.append(Settling(certify_rounds, rounds.end, share, told.message))
    if live is not None:
        sharing = prove.counted().sharing
        sequence = plan.stop is not None and not isinstance(sharing, CountRule)
        looking.append(Live(certify_rounds, live, "a confidence sequence" if sequence else sharing.name))

    def tell(item: int, n: int) -> None:
        for look in looking:
            look(item, n)

    rounds.tell = tell
    return rounds


def _tallies(
    assignment: Assignment[Any], store: Store, options: SamplingOptions, rounds: Rounds | None
) -> tuple[Sequence[ItemTally | None], list[int] | None]:
    """Read the tallies; of a run that was ended before its plan those of complete rounds, and which items have some.

    Raises
    ------
    NothingDrawnError
        If none has.
    """
    plan, counters, layouts = assignment.plan, assignment.subject.counters, assignment.subject.layouts
    keep = options.keep_candidate_counts
    unfinished = [] if rounds is None else unfinished_items(store, layouts, plan)
    if rounds is None or not unfinished:
        return collect_tallies(store, layouts, counters, keep_candidate_counts=keep, plan=plan), None
    made: list[ItemTally | None] = []
    for item, layout in enumerate(layouts):
        counted = rounds.counted(item) if item in unfinished else None
        there = counted is not None or item not in unfinished
        made.append(
            collect_ended(store, item, layout, counters, counted, plan=plan, keep_candidate_counts=keep)
            if there
            else None
        )
    begun = [item for item, tally in enumerate(made) if tally is not None]
    if not begun:
        raise NothingDrawnError(
            "sampling was ended before any item had votes in each of its output groups, so that nothing can be "
            "certified. The same call goes on from the samples that are there, where a run directory keeps them"
        )
    return made, begun


def _record(assignment: Assignment[Any], run: Run, plan: SamplingPlan, **known: Any) -> RunRecord:
    made: dict[str, Any] = {"seconds": 0.0, "batch_size": 1, "versions": {}, "configuration": {}, **known}
    made |= {"method": run.name, "n_candidate": plan.n_candidate, "n_bound": plan.n_bound}
    if made.get("begun") is not None:  # then scores are not kept: no bound on them holds
        made["scores"] = None
    return RunRecord(**vars(assignment.facts) | made)


def _earlier(out: Path | None, name: str) -> RunRecord | None:
    """The record of a finished run in a directory; one on another kind of input would be lost, and is refused."""
    try:
        known = None if out is None else load_record(out)
    except LocalsmoothError:
        return None  # nothing is finished there, or the record is to be written anew
    if known is not None and known.task != name:
        raise OtherRunError(f"{out} holds a finished run on {known.task}, not on {name}. Use another run directory")
    return known


def _versions() -> dict[str, str]:
    packages = ("localsmooth", "torch", "numpy", "scipy", "highspy")
    return {"python": platform.python_version()} | {package: metadata.version(package) for package in packages}
