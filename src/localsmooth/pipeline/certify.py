"""The main job: sample a smoothed model on some items and certify them."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from localsmooth.bounds import (
    Bonferroni,
    CandidateRule,
    CandidateVotes,
    EmpiricalBernstein,
    ScoreBound,
    Simultaneous,
    VoteConfidenceSequence,
    require_certifiable,
)
from localsmooth.certificates import ScoreCertificate, VoteCertificate
from localsmooth.certificates.combined import OutputScores, OutputVotes
from localsmooth.collective import AnyBounds, as_bounds
from localsmooth.datasets import ItemSet
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError
from localsmooth.execution import Executor, ExecutorName, Part, SamplingProgress, default_progress, sample
from localsmooth.layout import Layout, LayoutRecipe
from localsmooth.models import Model
from localsmooth.noise import Gaussian, Noise
from localsmooth.pipeline.assemble import assemble
from localsmooth.pipeline.inputs import class_names_of, item_set, layouts_of, require_model
from localsmooth.pipeline.item import SampledItem
from localsmooth.pipeline.keeping import naming_keys, plain_configuration, run_stores, save_result
from localsmooth.pipeline.method import Drawn, ItemMethod
from localsmooth.pipeline.record import RunRecord, ignored_outputs, number_layouts, save_items, save_record
from localsmooth.pipeline.registry import DEFAULT_BOUNDS, default_certificate
from localsmooth.pipeline.scores import ScoreCounting
from localsmooth.pipeline.settings import CertificationSettings
from localsmooth.pipeline.smoothing import sampled_at
from localsmooth.pipeline.stopping import StopWhenDecided, with_goals
from localsmooth.pipeline.threat import ItemThreat, NormBall
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import ItemTally, SamplingOptions

__all__ = ["certify", "run_certification"]


def certify(
    model: Model,
    images: ItemSet | Sequence[np.ndarray] | np.ndarray,
    labels: Sequence[np.ndarray] | np.ndarray | None = None,
    *,
    layout: Layout | LayoutRecipe,
    plan: SamplingPlan,
    alpha: float,
    budgets: Sequence[float] | np.ndarray,
    noise: Noise | None = None,
    bounds: AnyBounds | None = None,
    certificates: Sequence[VoteCertificate | ScoreCertificate] | None = None,
    simultaneous: Simultaneous | CandidateRule | None = None,
    score_bound: ScoreBound | None = None,
    threat: ItemThreat | None = None,
    method: ItemMethod | None = None,
    class_names: Sequence[str] | None = None,
    ignore_label: int | None = None,
    out: Path | str | None = None,
    name: str = "localized",
    units: str | None = None,
    configuration: Mapping[str, Any] | None = None,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
    progress: SamplingProgress | None = None,
    store: str | None = None,
    part: Part | None = None,
) -> xr.Dataset:
    """Certify how many predictions of a model one perturbed input can change, for every item and budget.

    Parameters
    ----------
    model
        The base classifier, in evaluation mode, with its declared input bounds.
    images
        Items to certify: arrays of shape channels × spatial axes in the model's input space, or an `ItemSet`.
    labels
        Known classes of every output, for certified accuracy; not with an `ItemSet`, which has its own.
    layout
        A layout, or a recipe such as `GridLayout` that makes one for each item's size.
    plan
        Numbers of samples and the seed; with `stop=StopWhenDecided()`, output groups stop when they are decided.
    alpha
        Probability with which the certificate of one item may fail.
    budgets
        Perturbation sizes ε, in the units of the input.
    noise
        Smoothing distribution; Gaussian by default.
    bounds
        Collective bounds, weakest first: names such as ``["lp", "exact"]``, bounds, or a mapping from the names that
        they get in the result; naive, lp and envelope by default.
    certificates
        Base certificates; by default the one from votes that goes with the noise. Where both votes and scores are
        named they share α, and each output relies on one of the two (the variable `relies_on` says on which): its
        promise is about the class with the most votes, or about the one with the largest mean score.
    simultaneous
        How α is shared among the outputs; Bonferroni by default. `CandidateWeights` looks at the candidate stage.
    score_bound
        Bound on scores, for certificates that need them; empirical Bernstein by default.
    threat
        What the adversary may do with a budget; by default perturbations in the norm of the noise.
    method
        A baseline of `localsmooth.baselines`, in place of the collective problem over base certificates.
    class_names, ignore_label
        As in `ItemSet`.
    out
        Run directory: finished chunks are kept there, a run that was interrupted goes on, and the result is written
        to `result.nc`; an earlier result with other contents is kept as `result-1.nc` and so on. Without a directory,
        nothing is written.
    name
        What the result calls the method.
    units
        Units of inputs and budgets, for the record.
    configuration
        What to store as the configuration of the run.
    options
        How to run the model; by default found by a short calibration.
    executor
        Where samples are drawn: `SerialExecutor`, `ThreadExecutor`, `ProcessExecutor` or `RayExecutor`, or "serial",
        "threads", "processes" or "ray" for one with its defaults; by default in this process, on every core where
        the model allows that.
    progress
        Told how far sampling, and then the exact bound, has come; by default a bar where standard error is a terminal.
    store
        Address of another place for finished chunks, such as ``s3://bucket/run``; by default they are kept in `out`.
    part
        Draw this share of the output groups only, for machines without a disk in common; see
        `localsmooth.runs.join`. Nothing is certified before all parts are there.

    Returns
    -------
    xr.Dataset
        See `localsmooth.results`. With probability 1 − alpha over the samples, at least `certified` of the target
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
    require_model(model)
    items = item_set(images, labels, class_names, ignore_label)
    noise = Gaussian() if noise is None else noise
    settings = CertificationSettings(
        _number("alpha", alpha),
        tuple(_number("budgets", budget) for budget in np.atleast_1d(np.asarray(budgets, dtype=object))),
        (default_certificate(noise),) if certificates is None else certificates,
        DEFAULT_BOUNDS if bounds is None else as_bounds(bounds),
        Bonferroni() if simultaneous is None else simultaneous,
        EmpiricalBernstein() if score_bound is None else score_bound,
        NormBall() if threat is None else threat,
    )
    _require("layout", layout, Layout, LayoutRecipe)
    _require("plan", plan, SamplingPlan)
    return run_certification(
        model,
        items,
        layout=layout,
        noise=noise,
        plan=plan,
        settings=settings,
        method=method,
        out=out,
        name=name,
        units=units,
        configuration=configuration,
        options=options,
        executor=executor,
        progress=progress,
        store=store,
        part=part,
    )


def _require(field: str, value: object, *kinds: type) -> None:
    """Name an argument of another kind; whoever calls may not check types."""
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidInputError(field, f"got a {type(value).__name__}", f"Pass a {names}")


def run_certification(
    model: Model,
    items: ItemSet,
    *,
    layout: Layout | LayoutRecipe,
    noise: Noise,
    plan: SamplingPlan,
    settings: CertificationSettings,
    scores: ScoreCounting | None = None,
    method: ItemMethod | None = None,
    out: Path | str | None = None,
    name: str = "localized",
    units: str | None = None,
    configuration: Mapping[str, Any] | None = None,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
    progress: SamplingProgress | None = None,
    store: str | None = None,
    part: Part | None = None,
) -> xr.Dataset:
    """Do what `certify` does, with settings made elsewhere.

    Parameters
    ----------
    model, items, layout, noise, plan, out, name, units, configuration, options, executor, progress, store, part
        As in `certify`.
    settings
        What to prove.
    scores
        How scores are counted; by default only where the settings need them, and as little as they need.
    method
        How to prove it, if not by the collective problem over base certificates.
    """
    out = None if out is None else expanded(out)
    if method is not None:
        settings = method.adjust(settings)
    options = SamplingOptions() if options is None else options
    kept_configuration = plain_configuration(configuration)
    if scores is None and settings.needs_scores:
        scores = ScoreCounting.for_bound(settings.score_bound)
    if scores is not None:
        options = replace(options, counters=scores.counters())
    if part is not None and method is not None:
        raise InvalidInputError("part", "a method of its own draws its samples as a whole", "Certify with one of them")
    layouts = layouts_of(model, items, layout)
    items.require_labels_within(model.classes, [made.outputs.shape for made in layouts])
    names = class_names_of(items, model.classes)
    for made in layouts:
        noise.validate(made.levels)
        if method is not None:
            method.require(made, noise)
        if not settings.needs_scores and plan.stop is None:
            require_certifiable(plan.n_bound, settings.alpha, made.outputs.labels.size, strategy=settings.simultaneous)
    plan = with_goals(plan, layouts, noise, settings)
    sequence = plan.stop.sequence if isinstance(plan.stop, StopWhenDecided) else None
    with run_stores(out, store) as stores:
        kept, tallied = stores
        told = default_progress() if progress is None else progress
        images = [item.image for item in items]
        drawn = method and method.draw(model, images, layouts, noise, plan, tallied, settings, options, told)
        if drawn is None:
            with naming_keys(tallied, kept_configuration):
                tallies = sample(
                    model,
                    images,
                    layouts,
                    noise,
                    plan,
                    tallied,
                    options=options,
                    executor=executor,
                    progress=told,
                    part=part,
                )
            drawn = [Drawn(_output_votes(tally, scores, sequence)) for tally in tallies]
        chunks = list(tallied.finished().values())
        stores.join()
        sampled = [
            SampledItem(
                item.name,
                item.image,
                item.label,
                ignored_outputs(item.label, items.ignore_label),
                made,
                of_item.votes,
                of_item.further,
            )
            for item, made, of_item in zip(items, layouts, drawn, strict=True)
        ]
        numbers = number_layouts(layouts)
        configured = tallied.configuration
        if out is None:
            del kept, tallied, stores  # what is in memory is of no further use
        else:
            save_items(sampled, numbers, kept)
        record = RunRecord(
            method=name,
            item_names=[item.name for item in items],
            item_layouts=numbers,
            class_names=names,
            labelled=items.labelled,
            ignore_label=items.ignore_label,
            noise=dict(noise.configuration()),
            scores=scores,
            n_candidate=plan.n_candidate,
            n_bound=plan.n_bound,
            units=_units(model) if units is None else units,
            input_bounds=model.bounds,
            seconds=sum(chunk.seconds for chunk in chunks),
            batch_size=max(1, *(chunk.batch_size for chunk in chunks)),
            device=str(model.device),
            precision=model.evaluated_in,
            versions=_versions(),
            alpha=settings.alpha,
            budgets=list(settings.budgets),
            bound_names=list(settings.bounds),
            configuration=kept_configuration,
            sequence=sequence,
            further=tuple(drawn[0].further),
            sampled=sampled_at(out),
        )
        if out is not None:
            save_record(record, out)
        result = assemble(sampled, noise, record, settings, method, told, configured)
        if out is not None:
            save_result(result, out)
    return result


def _number(field: str, value: object) -> float:
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(field, f"got {value!r}", "Pass numbers") from None


def _output_votes(
    tally: ItemTally, scores: ScoreCounting | None, sequence: VoteConfidenceSequence | None
) -> OutputVotes:
    counted = None
    if scores is not None:
        counted = OutputScores(scores.tally(tally.further[scores.array_name], tally.n), tally.further["reference"])
    n = tally.n if tally.n_per_output is None else tally.n_per_output
    first = None if tally.candidate_votes is None else CandidateVotes(tally.candidate_votes, tally.n_candidate)
    return OutputVotes(tally.candidate, tally.votes, n, counted, sequence, first, tally.n)


def _units(model: Model) -> str:
    return "input values" if model.bounds is None else f"input values in [{model.bounds[0]:g}, {model.bounds[1]:g}]"


def _versions() -> dict[str, str]:
    packages = ("localsmooth", "torch", "numpy", "scipy", "highspy")
    return {"python": platform.python_version()} | {package: metadata.version(package) for package in packages}
