"""The main job, for every kind of input: sample a smoothed model, and certify its predictions."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from types import NoneType
from typing import Any

import xarray as xr

from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError, LocalsmoothError, require_kind
from localsmooth.execution import default_progress, named_executor, require_stopping, sample_subject
from localsmooth.models import Model
from localsmooth.pipeline.asked import described
from localsmooth.pipeline.keeping import naming_keys, plain_configuration, run_stores, save_result
from localsmooth.pipeline.run import Run
from localsmooth.runs import FileStore, OtherRunError, SamplingPlan, Store
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Asked, RunRecord, Smoothing, Task, load_record, require_anytime, sampled_at, save_record

__all__ = ["certify"]


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
    if out is not None:
        _require_same_kind(out, task.name)
    options = SamplingOptions() if run.options is None else run.options
    configuration = plain_configuration(run.configuration)
    assignment = task.assign(smoothing, prove, options, run.scores)
    plan, facts = assignment.plan, assignment.facts
    prove = prove if assignment.proven is None else assignment.proven
    if run.part is not None and assignment.draw is not None:
        raise InvalidInputError("part", "a method of its own draws its samples as a whole", "Certify with one of them")
    if assignment.draw is None:
        require_stopping(assignment.subject, plan)
    with run_stores(out, run.store) as stores:
        kept, tallied = stores
        _require_may_grow(tallied, plan, prove, out)
        told = default_progress() if run.progress is None else run.progress
        if assignment.told:
            told.message(assignment.told)
        if assignment.draw is not None:
            sampled = assignment.draw(tallied, told)
        else:
            with naming_keys(tallied, configuration):
                tallies = sample_subject(
                    assignment.subject,
                    plan,
                    tallied,
                    options=options,
                    executor=executor,
                    progress=told,
                    part=run.part,
                )
            sampled = assignment.collect(tallies)
        chunks = list(tallied.finished().values())
        stores.join()
        configured = tallied.configuration
        if out is None:
            del kept, tallied, stores  # what is in memory is of no further use
        else:
            task.save(sampled, kept)
        record = RunRecord(
            **vars(facts),
            method=run.name,
            n_candidate=plan.n_candidate,
            n_bound=plan.n_bound,
            seconds=sum(chunk.seconds for chunk in chunks),
            batch_size=max(1, *(chunk.batch_size for chunk in chunks)),
            versions=_versions(),
            configuration=configuration,
            sampled=sampled_at(out, plan.n_bound),
            extended=None if configured is None else configured.first,
            settings=described(prove),
        )
        if out is not None:
            save_record(record, out)
        result = task.result(sampled, prove, record, configured, told)
        if out is not None:
            save_result(result, out)
    return result


def _require_may_grow(store: Store, plan: SamplingPlan, prove: Any, place: object) -> None:
    """Refuse more samples than a run began with, before any is drawn, where what is proven does not hold then."""
    known = store.configuration
    if known is None or (isinstance(store, FileStore) and store.untouched):
        return
    if known.first is not None or plan.n_bound > (known.samples or plan.n_bound):
        require_anytime(prove, sequence=plan.stop is not None, place=place)


def _require_same_kind(out: Path, name: str) -> None:
    """Refuse a directory with a finished run on another kind of input, whose record would be lost."""
    try:
        known = load_record(out).task
    except LocalsmoothError:
        return  # nothing is finished there, or the record is to be written anew
    if known != name:
        raise OtherRunError(f"{out} holds a finished run on {known}, not on {name}. Use another run directory")


def _versions() -> dict[str, str]:
    packages = ("localsmooth", "torch", "numpy", "scipy", "highspy")
    return {"python": platform.python_version()} | {package: metadata.version(package) for package in packages}
