"""What a run will take, and what the model still sees under its noise, before anything of it is drawn."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.datasets import ItemSet
from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.execution import (
    NoProgress,
    SamplingSummary,
    Until,
    default_executor,
    draw_subject,
    named_executor,
    sample_subject,
)
from localsmooth.layout import Layout, Partition, item_digest
from localsmooth.metrics import scale_words
from localsmooth.pipeline.run import Run
from localsmooth.runs import DirectoryStore, MemoryStore, SamplingPlan
from localsmooth.sampling import ArraySubject, Counters, Ready, SamplingOptions, Subject, prepare_items
from localsmooth.tasks import Asked, Assignment, Smoothing, Task
from localsmooth.tasks.arrays import ArrayTask, NormBall, Settings, class_names_of, layouts_of

__all__ = ["Estimate", "Sight", "plan"]

_LOOKS = 24  # samples of a calibration item at each level
_LEVELS = 3
_MOMENT = 0.3  # seconds
_MEBI = 1 << 20
_SEED = 1 << 129 | 0x51647  # longer than a seed of a run may be, so that none can be equal


@dataclass(frozen=True)
class Sight:
    """What noise of one level, the same everywhere, leaves of a model's predictions.

    Parameters
    ----------
    level
        Level of the noise, or its parameters.
    agreement
        Share of the outputs of which most samples have the class that the model predicts without noise.
    balanced
        Mean of that share over the classes that the model predicts without noise.
    worst
        Name of the class with the smallest share, and that share.
    """

    level: tuple[float, ...]
    agreement: float
    balanced: float
    worst: tuple[str, float]

    def __str__(self) -> str:
        level = ", ".join(f"{each:g}" for each in self.level)
        name, least = self.worst
        return (
            f"noise of level {level}: {_percent(self.agreement)} of the outputs keep the model's own prediction "
            f"({_percent(self.balanced)} in the mean over classes; least of {name!r}: {_percent(least)})"
        )


@dataclass(frozen=True)
class Estimate:
    """What a run will take. Nothing in it is a certificate, and nothing that was drawn for it is used for one.

    Parameters
    ----------
    items, groups
        Number of items, and of output groups in all of them.
    samples
        Calls of the model, a sample each; at most so many where groups may stop early. None where a method draws its
        samples in its own way.
    passes
        The same in passes over a whole item: a window counts by its share of the item.
    stops_early
        Whether groups may do with fewer.
    rate
        Passes per second that were measured; None if none were.
    timed
        Passes that were timed.
    memory
        Largest memory of one process while they were, in bytes; None if not known.
    disk
        Bytes that finished chunks will take, about; None if not known.
    reach
        How far certificates can reach, in words; empty where that cannot be told.
    scale
        What ε = 1 amounts to, in words; empty where ε needs none.
    notes
        What else the user should know, such as the batch size that was chosen.
    sights
        What the model still sees, by level of the noise.
    unseen
        Why nothing is said about that, where nothing is.
    n_candidate, n_bound
        N₁ and N₂, samples of each output group in both stages.
    """

    items: int
    groups: int
    samples: int | None
    passes: float | None
    stops_early: bool
    rate: float | None
    timed: float
    memory: int | None
    disk: int | None
    reach: str
    scale: str = ""
    notes: tuple[str, ...] = ()
    sights: tuple[Sight, ...] = ()
    unseen: str = ""
    n_candidate: int | None = None
    n_bound: int | None = None

    @property
    def seconds(self) -> float | None:
        """Time that sampling will take at the measured rate; certifying comes on top. None if it is not known."""
        return None if self.passes is None or not self.rate else self.passes / self.rate

    def __str__(self) -> str:
        """What `localsmooth plan` says."""
        lines = [f"{_several(self.items, 'item')}, {_several(self.groups, 'output group')} in all"]
        if self.samples is not None and self.n_candidate is not None:
            lines.append(f"Samples: N₁ = {self.n_candidate:,} and N₂ = {self.n_bound:,} of each output group")
        if self.samples is not None and self.passes is not None:
            most = "at most " if self.stops_early else ""
            passes = "" if round(self.passes) == self.samples else f", as much work as {self.passes:,.0f} whole passes"
            lines.append(f"Model: {most}{self.samples:,} forward passes{passes}")
        if self.seconds is not None and self.rate is not None:
            lines.append(
                f"Time: about {_duration(self.seconds)} of sampling, at the {self.rate:,.1f} passes/s measured over "
                f"{self.timed:,.0f} passes; certifying comes on top"
            )
        if self.memory is not None:
            lines.append(f"Memory: {self.memory / _MEBI:,.0f} MiB a process")
        if self.disk is not None:
            lines.append(f"Disk: {self.disk / _MEBI:,.1f} MiB of tallies")
        lines += [text for text in (self.reach, self.scale) if text]
        lines += self.notes
        lines += [f"On calibration items, {sight}" for sight in self.sights]
        lines += [self.unseen] if self.unseen else []
        return "\n".join(lines)


def plan(
    task: Task[Any, Asked],
    smoothing: Smoothing,
    prove: Asked,
    *,
    run: Run | None = None,
    calibration: ItemSet | None = None,
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
        Items that are not certified: the model is shown them under a few levels of noise, so that levels that blind
        it are found before they cost hours. What the noise leaves of the certified items' own predictions is
        not looked at: levels chosen by it would change with the perturbation, and void the certificate.
    seconds
        Time for the timing of the model, beside its calibration and trials.
    tell
        Told what is being done.

    Raises
    ------
    InvalidInputError
        Naming what cannot be used, as `certify` does; or calibration items that are to be certified.
    """
    require_kind("task", task, Task)
    require_kind("smoothing", smoothing, Smoothing)
    require_kind("calibration", calibration, ItemSet, type(None))
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
    made, options = _timed(made, assignment, run, options, seconds)
    if calibration is None:
        return replace(made, unseen=_unseen(task))
    if not isinstance(task, ArrayTask):
        raise InvalidInputError("calibration", f"{task.name} have none", "Leave it out")
    say("Showing the model calibration items under noise")
    return replace(made, sights=_sights(task, smoothing, subject, calibration, options))


def _timed(
    made: Estimate, assignment: Assignment[Any], run: Run, options: SamplingOptions, seconds: float
) -> tuple[Estimate, SamplingOptions]:
    """Draw a little as the run will, and scale what it took."""
    subject, planned = assignment.subject, assignment.plan
    executor = default_executor(subject) if run.executor is None else named_executor(run.executor)
    if options.check_model:
        subject.try_out()
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
    number = sum(-(-n // planned.chunk_size) for n in (planned.n_candidate, planned.n_bound)) * made.groups
    memory = None if told.summary is None else told.summary.peak_memory
    rate, timed = told.rate, told.passes
    return replace(
        made,
        rate=rate,
        timed=timed,
        memory=memory,
        disk=round(each * number),
        notes=(*subject.notes(), *ready.messages),
    ), fixed


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


def _scale(task: Task[Any, Any], subject: Subject, prove: object) -> str:
    if not (isinstance(task, ArrayTask) and isinstance(subject, ArraySubject) and isinstance(prove, Settings)):
        return ""
    if not isinstance(prove.completed(subject.noise).threat, NormBall):
        return ""
    return scale_words(subject.noise.norm, [item.image for item in task.items], task.model.bounds) or ""


def _unseen(task: Task[Any, Any]) -> str:
    if isinstance(task, ArrayTask):
        return (
            "How much of its predictions the model keeps under noise is not known: there are no calibration items "
            "([calibration] in a file, calibration= in Python). Items that are certified are not used for it: levels "
            "chosen by them would change with the perturbation, and void the certificate"
        )
    return (
        "How much of its predictions the model keeps under noise is not said: all that there is to show it is "
        "certified, and levels chosen by that would change with the perturbation, and void the certificate"
    )


def _nothing(text: str) -> None:
    del text


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _sights(
    task: ArrayTask, smoothing: Smoothing, subject: Subject, calibration: ItemSet, options: SamplingOptions
) -> tuple[Sight, ...]:
    """Show the model items that are not certified under some of the levels, each the same everywhere."""
    assert isinstance(subject, ArraySubject)
    certified = {item_digest(item.image) for item in task.items}
    if any(item_digest(item.image) in certified for item in calibration):
        raise InvalidInputError(
            "calibration",
            "an item is to be certified: levels chosen by what noise leaves of its predictions would change with the "
            "perturbation",
            "Name items that are not certified, or none",
        )
    layout = smoothing.layout[0] if isinstance(smoothing.layout, Sequence) else smoothing.layout
    own = layouts_of(task.model, calibration, layout)
    names = class_names_of(task.items, task.model)
    levels = _few(np.concatenate([_rows(made) for made in subject.layouts]))
    return tuple(_sight(level, subject, calibration, own, names, options) for level in levels)


def _sight(
    level: Float[np.ndarray, " parameters"],
    subject: ArraySubject,
    calibration: ItemSet,
    own: Sequence[Layout],
    names: Sequence[str],
    options: SamplingOptions,
) -> Sight:
    layouts = [_everywhere(made, level, subject.layouts[0].levels.ndim > 2) for made in own]
    images = [item.image for item in calibration]
    items = prepare_items(subject.model, images, layouts, subject.noise, options.item_dtype)
    shown = ArraySubject(subject.model, items, layouts, subject.noise, _SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of the model was said
        tallies = sample_subject(shown, SamplingPlan(_LOOKS, 1, _SEED), options=replace(options, counters=Counters()))
    clean = np.concatenate([shown.clean_labels(index).ravel() for index in range(len(calibration))])
    kept = clean == np.concatenate([tally.candidate.ravel() for tally in tallies])
    shares = {int(label): float(kept[clean == label].mean()) for label in np.unique(clean)}
    worst = min(shares, key=lambda label: shares[label])
    return Sight(
        tuple(level.tolist()), float(kept.mean()), float(np.mean([*shares.values()])), (names[worst], shares[worst])
    )


def _everywhere(layout: Layout, level: Float[np.ndarray, " parameters"], several: bool) -> Layout:
    outputs, inputs = (np.zeros(each.labels.shape, np.int32) for each in (layout.outputs, layout.inputs))
    return Layout(Partition(outputs), Partition(inputs), level.reshape((1, 1, -1) if several else (1, 1)))


def _rows(layout: Layout) -> Float[np.ndarray, "pairs parameters"]:
    """The levels of all pairs of groups, hidden inputs left out."""
    rows = layout.levels.reshape(layout.levels.shape[0] * layout.levels.shape[1], -1)
    return rows[np.isfinite(rows).all(axis=1)]


def _few(levels: Float[np.ndarray, "pairs parameters"]) -> list[Float[np.ndarray, " parameters"]]:
    """Choose the smallest, the largest, and one in the middle of them."""
    distinct = np.unique(levels, axis=0)
    places = np.unique(np.linspace(0, len(distinct) - 1, _LEVELS).round().astype(int))
    return [distinct[place] for place in places]


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))
