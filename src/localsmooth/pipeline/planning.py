"""What a run will take, and what the model still sees under its noise, before anything of it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.metrics import scale_words
from localsmooth.pipeline.estimate import Estimate
from localsmooth.pipeline.looks import LOOKS_SEED, few_levels, looked
from localsmooth.pipeline.run import Run
from localsmooth.pipeline.timing import timed
from localsmooth.sampling import ArraySubject, SamplingOptions, Subject
from localsmooth.tasks import Asked, Smoothing, Task
from localsmooth.tasks.arrays import ArrayTask, NormBall, Settings

__all__ = ["plan"]


def plan(
    task: Task[Any, Asked],
    smoothing: Smoothing,
    prove: Asked,
    *,
    run: Run | None = None,
    calibration: object = None,
    seconds: float = 4.0,
    tell: Callable[[str], None] | None = None,
) -> Estimate:
    """Say what `certify` with the same arguments would take, and how far it could reach, without certifying anything.

    Everything that `certify` refuses before it samples is refused here too.

    Parameters
    ----------
    task, smoothing, prove, run
        As for `certify`. Nothing is written to the run's directory, and nothing is read from it.
    calibration
        Inputs that are not certified, as an `ItemSet` (arrays) or a graph of its own (`graphs.AttributedGraph`): the
        model is shown them under a few levels of noise, so that levels that blind it are found before they cost hours.
        What the noise leaves of the certified inputs' own predictions is not looked at: levels chosen by it would
        change with the perturbation, and void the certificate.
    seconds
        Time for the timing of the model, beside its calibration and trials.
    tell
        Told what is being done.

    Raises
    ------
    InvalidInputError
        Naming what cannot be used, as `certify` does; or calibration inputs of another kind, or that are to be
        certified.
    """
    require_kind("task", task, Task)
    require_kind("smoothing", smoothing, Smoothing)
    if not 0 < seconds < float("inf"):
        raise InvalidInputError("seconds", f"got {seconds}", "Pass a positive time")
    task.require_settings(prove)
    run = Run() if run is None else run
    say = _nothing if tell is None else tell
    options = SamplingOptions() if run.options is None else run.options
    assignment = task.assign(smoothing, prove, options, run.scores)
    subject, each = assignment.subject, assignment.plan.n_candidate + assignment.plan.n_bound
    shown = [share for layout in subject.layouts for share in layout.shown.tolist()]
    made = Estimate(
        len(subject.layouts),
        len(shown),
        each * len(shown),
        each * sum(shown),
        assignment.plan.stop is not None,
        None,
        0.0,
        None,
        None,
        assignment.told,
        _scale(task, subject, prove),
        n_candidate=assignment.plan.n_candidate,
        n_bound=assignment.plan.n_bound,
    )
    if assignment.draw is not None:
        note = "This method draws its samples in its own way: what they take is not estimated"
        return replace(made, samples=None, passes=None, notes=(note,), unseen=note)
    say(f"Timing the model for {seconds:g} s or so")
    took = timed(subject, assignment.plan, run, options, seconds)
    chunks = sum(-(-n // assignment.plan.chunk_size) for n in (assignment.plan.n_candidate, assignment.plan.n_bound))
    made = replace(
        made,
        rate=took.rate,
        timed=took.passes,
        memory=took.memory,
        disk=round(took.chunk_bytes * chunks * made.groups),
        notes=took.messages,
    )
    if calibration is None:
        return replace(made, unseen=task.unseen)
    say("Showing the model calibration inputs under noise")
    levels = few_levels(subject.layouts)
    shown = task.calibrated(subject, smoothing, calibration, levels, LOOKS_SEED, took.options)
    names = assignment.facts.class_names
    sights = [looked(level, each, names, took.options) for level, each in zip(levels, shown, strict=True)]
    return replace(made, sights=tuple(sights))


def _scale(task: Task[Any, Any], subject: Subject, prove: object) -> str:
    if not (isinstance(task, ArrayTask) and isinstance(subject, ArraySubject) and isinstance(prove, Settings)):
        return ""
    if not isinstance(prove.completed(subject.noise).threat, NormBall):
        return ""
    return scale_words(subject.noise.norm, [item.image for item in task.items], task.model.bounds) or ""


def _nothing(text: str) -> None:
    del text
