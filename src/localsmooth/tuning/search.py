"""Find the noise that certifies most for a budget of work, at a quality that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from localsmooth.errors import InvalidInputError, require_several
from localsmooth.execution import Executor, ExecutorName, Pace
from localsmooth.layout import Layout, LayoutRecipe
from localsmooth.noise import Noise
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Smoothing, Task, Tunable, as_targets, require_classes
from localsmooth.tuning.candidates import Candidate, number
from localsmooth.tuning.forecast import MEAN_IOU, Aim, foretell
from localsmooth.tuning.halving import Tried, halved, ranked
from localsmooth.tuning.outlook import Outlook
from localsmooth.tuning.pilot import Entry, Pilots, require_plain_seed

__all__ = ["Tuning", "tune"]

_FLIPS = {"θ⁺": "additions", "θ⁻": "deletions"}  # keys of [tune], in the order of levels
_EVERY = 10.0  # seconds between two lines about candidates that are tried


@dataclass(frozen=True, eq=False)
class Tuning:
    """What was chosen, and what is expected of it.

    Parameters
    ----------
    best
        The choice.
    isotropic
        The best isotropic candidate at as much work; it may be the choice.
    tried
        All candidates, the best first, each by its last pilot: larger ones for those that stayed longer.
    left_out
        Why candidates were not tried, by name.
    aim
        What was wanted.
    work
        Budget of passes an item.
    noise
        The family of distributions; None for the task's own default.
    origins
        `item_digest` of the items that were looked at, of graphs that of their attributes: the smoothing that is
        returned does not certify them.
    """

    best: Tried
    isotropic: Tried
    tried: tuple[Tried, ...]
    left_out: dict[str, str]
    aim: Aim
    work: float
    noise: Noise | None
    origins: frozenset[str]

    @property
    def plan(self) -> SamplingPlan:
        """N₁, N₂ and the seed of the run, whose streams no pilot used."""
        return self.best.entry.plan

    @property
    def smoothing(self) -> Smoothing:
        """What `certify` takes for other items than those of the calibration."""
        return Smoothing(self.layout, self.plan, self.noise)

    @property
    def layout(self) -> Layout | LayoutRecipe:
        """The choice's layout, or the rule that makes it of other items, which remembers the calibration's."""
        return self.best.entry.task.remembering(self.best.entry.candidate.layout, self.origins)

    @property
    def at_edge(self) -> tuple[str, ...]:
        """A sentence for each level of the choice that is the smallest or the largest of all that were tried."""
        (near, far), tried = _ends(self.best), [_ends(one) for one in self.tried]
        nearest, farthest = (np.array(each) for each in zip(*tried, strict=True))
        said = list[str]()
        for kind, called in enumerate(_FLIPS if near.size > 1 else ("level",)):
            low, high = nearest[:, kind], farthest[:, kind]
            if np.isclose(np.ptp(low), 0) and np.isclose(np.ptp(high), 0):
                continue  # there was nothing to choose from
            largest = [
                end for end, all_of_them in ((near, low), (far, high)) if np.isclose(end[kind], max(all_of_them))
            ]
            if largest:
                said.append(_edge(called, largest[0][kind], "largest", "above"))
            if near[kind] > 0 and np.isclose(near[kind], min(low)):
                said.append(_edge(called, near[kind], "smallest", "below"))
        return tuple(said)

    def __str__(self) -> str:
        """The choice, what is expected of it and of the best isotropic noise, and whether it is at the edge."""
        best, other = self.best, self.isotropic
        floor = "".join(f", {name} {best.forecast.quality[name]:.3f}" for name in self.aim.floor)
        lines = [f"{best.entry.candidate.name}: {self.aim.words} {best.forecast.expected(self.aim.at)}{floor}."]
        if best is other:
            lines.append("Isotropic noise was best.")
        else:
            expected = other.forecast.expected(self.aim.at)
            lines.append(f"The best isotropic noise, {other.entry.candidate.name}: {expected}.")
        return "\n".join([*lines, *self.at_edge])


def tune(
    task: object,
    settings: Any,
    candidates: Sequence[Candidate],
    *,
    work: float | int | None = None,
    seconds: float | int | None = None,
    aim: Aim | None = None,
    noise: Noise | None = None,
    split: float | Sequence[float] = 1 / 9,
    share: float = 0.1,
    draws: int = 3,
    seed: int = 0,
    chunk_size: int = 128,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
    trained: Callable[[Candidate], Any] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Tuning:
    """Choose groups and levels of the noise by small pilots on items that are not certified.

    Every candidate gets as many samples as the budget of work affords it. What it would certify with all of them is
    foretold from a pilot; the better half of the candidates gets a larger one, and so on. Isotropic noise is always
    among the candidates, and is what is returned where it is best.

    Parameters
    ----------
    task
        The model, and the items to look at, others than those that are certified later: an `ArrayTask`, a `PointTask`,
        a `TokenTask`, or a `GraphTask` of another graph.
    settings
        What will be proven, as for `certify`. Budgets "auto" are spread up to where the candidate that gets farthest
        can reach.
    candidates
        What to choose from, such as `grid_candidates(levels)` and `cluster_candidates(deletions)`. Where none is
        isotropic, isotropic noise of their smallest levels is added.
    work
        Passes an item, of both stages and all output groups together; a pass over a window counts by the share of the
        input that the window is. A pass over a graph is over the whole of it, and a sample takes one for each cluster.
    seconds
        Time an item in place of `work`: as many passes as it allows here, by a few that are timed.
    aim
        What is wanted; by default the certified ratio's average certifiable radius.
    noise
        Family of distributions; the task's own by default, which is Gaussian for arrays.
    split
        Share of the samples that choose candidate classes (N₁). Of several, the best is chosen for each candidate:
        one pilot foretells all of them, and no further samples are drawn.
    share
        Of a whole run, that the last pilots are.
    draws
        Whole runs that are foretold for each item and pilot.
    seed
        Of the run that follows. Pilots draw from streams of other seeds.
    chunk_size, options, executor
        Of the pilots, and of the run that follows.
    trained
        Makes the task with the classifier that was trained under a candidate's noise, about the same items; called once
        for each candidate. By default all are tried on the task's own classifier.
    tell
        Told what happens.

    Raises
    ------
    InvalidInputError
        Naming what cannot be used, or that no candidate reaches the floor, or certifies anything.
    """
    if not isinstance(task, Tunable) or not isinstance(task, Task):
        kind = getattr(task, "name", type(task).__name__)
        raise InvalidInputError(
            "task",
            f"it is about {kind}",
            "Pass an ArrayTask, a PointTask, a TokenTask or a GraphTask: others are not tuned",
        )
    task.require_settings(settings)
    splits = [float(split)] if isinstance(split, float | int) else list(dict.fromkeys(map(float, split)))
    _require(settings, work, seconds, splits, share, draws)
    require_plain_seed(seed)
    aim = Aim() if aim is None else aim
    (target,) = as_targets([aim.target], "target")
    task.asked(settings, noise, target, aim.kind, (), aim.at)  # refuses what cannot be foretold
    _require_labels(task, aim)
    _require_classes(task, aim, settings)
    say = tell or (lambda _: None)
    pilots = Pilots(
        task,
        settings,
        noise,
        seed,
        chunk_size,
        splits,
        SamplingOptions() if options is None else options,
        executor,
        trained,
    )
    contest = _with_isotropic(candidates, task)
    say(f"Trying the model with {len(contest)} candidates")
    if seconds is not None:
        work = pilots.work_within(seconds, next(one for one in contest if one.isotropic))
        say(f"{seconds:g} s an item are about {work:,.0f} passes here")
    assert work is not None
    entries, left_out = list[Entry](), dict[str, str]()
    pace = Pace(_EVERY)
    pace.start(len(contest), 0)
    for one in contest:
        if pace.advance(1) and pace.done < pace.total:
            say(f"Tried: {pace.done - 1} of {pace.total} candidates")
        try:
            entries.append(pilots.enter(one, work))
        except InvalidInputError as error:
            if one.isotropic:  # which has the most samples: what is wrong with it is wrong with all
                raise
            left_out[one.name] = str(error)
    proven = [one.assignment.proven for entry in entries for one in entry.splits]
    asked, budgets = task.asked(settings, noise, target, aim.kind, proven, aim.at)

    outlook = Outlook(entries, share, say)

    def attempt(entry: Entry, part: float, number: int) -> Tried:
        samples, watched = entry.pilot(part), outlook.watch(entry, number)
        trials = entry.task.trials(pilots.draw(entry, samples, number, watched), asked, noise)
        tried = [
            Tried(one, foretell(trials, budgets, one.plan, aim, draws, number), number, samples) for one in entry.splits
        ]
        best = ranked(tried, aim)[0]
        seen, plan = best.forecast, best.entry.plan
        found = f"radius {seen.radius:.3f} ± {seen.radius_error:.3f}" + "".join(
            f", {name} {value:.3f}" for name, value in seen.quality.items()
        )
        stages = f" (N₁ : N₂ = {plan.n_candidate} : {plan.n_bound})" if len(tried) > 1 else ""
        say(f"Round {number}: {entry.candidate.name}, {samples} samples of each group: {found}{stages}")
        outlook.done(watched, entry, samples, number)
        return best

    tried = halved(entries, attempt, aim, share, say)
    if not any(one.forecast.score(aim.at) > 0 for one in tried):
        where = "beyond budget 0" if aim.at is None else f"at budget {aim.at:g}"
        raise InvalidInputError(
            "budgets" if aim.at is None else "at",
            f"no candidate is expected to certify anything {where}, so that none is better than another",
            "Ask for smaller budgets, offer other levels, or allow more work",
        )
    return Tuning(
        tried[0],
        next(one for one in tried if one.entry.candidate.isotropic),
        tuple(tried),
        left_out,
        aim,
        float(work),
        noise,
        task.looked_at().union(*(one.entry.task.looked_at() for one in tried), tried[0].entry.candidate.origins),
    )


def _ends(tried: Tried) -> tuple[Float[np.ndarray, " parameters"], Float[np.ndarray, " parameters"]]:
    """Smallest and largest levels of a candidate, for each kind of them."""
    levels = np.asarray(tried.entry.assignment.subject.layouts[0].levels, dtype=np.float64)
    flat = levels.reshape(levels.shape[0] * levels.shape[1], -1)
    return flat.min(axis=0), np.where(np.isfinite(flat), flat, -np.inf).max(axis=0)


def _edge(called: str, level: float, end: str, beyond: str) -> str:
    key = _FLIPS.get(called, "levels")
    return f"The best {called}, {number(level)}, is the {end} that was tried: [tune] {key} {beyond} it may be better."


def _require(
    settings: Any,
    work: float | int | None,
    seconds: float | int | None,
    splits: Sequence[float],
    share: float,
    draws: int,
) -> None:
    given = work if seconds is None else seconds
    if (work is None) == (seconds is None) or not 0 < (given or 0) < float("inf"):
        raise InvalidInputError("work, seconds", f"got {work} and {seconds}", "Pass one of them, a positive number")
    if not splits:
        raise InvalidInputError("split", "there is none", "Pass a share strictly between 0 and 1, or several")
    for name, value in (*(("split", each) for each in splits), ("share", share)):
        if not 0 < value < 1:
            raise InvalidInputError(name, f"got {value}", "Pass a share strictly between 0 and 1")
    if draws < 1:
        raise InvalidInputError("draws", f"got {draws}", "Pass at least 1")
    if settings.needs_scores:
        raise InvalidInputError("certificates", "scores cannot be foretold", "Tune with certificates from votes")


def _require_labels(task: Tunable, aim: Aim) -> None:
    """Refuse what cannot be told of the items, before anything is drawn."""
    for item, outputs in task.known():
        for field, name in (("target", aim.target), *(("floor", name) for name in aim.floor)):
            told = outputs.label if name == MEAN_IOU else as_targets([name])[0].reference(outputs)
            if told is None:
                raise InvalidInputError(field, f'"{item}" has no labels for {name}', "Add labels, or ask for agreement")


def _require_classes(task: Tunable, aim: Aim, settings: Any) -> None:
    """Refuse classes that there are not, before the model is tried."""
    floors = [name for name in aim.floor if name != MEAN_IOU]
    _, outputs = task.known()[0]
    for field, asked in (("targets", settings.targets), ("target", [aim.target]), ("floor", floors)):
        require_classes(as_targets(asked, field) if len(asked) else (), outputs.class_names, field)


def _with_isotropic(candidates: Sequence[Candidate], task: Tunable) -> list[Candidate]:
    """All candidates, isotropic ones among them."""
    require_several("candidates", candidates, "candidates")
    if not len(candidates):
        raise InvalidInputError("candidates", "there is none", "Pass grid_candidates(levels), say")
    names = [one.name for one in candidates]
    if len(set(names)) < len(names):
        raise InvalidInputError("candidates", "two have the same name", "Name each once")
    made = list(candidates)
    if not any(one.isotropic for one in made):
        flat = task.isotropic([task.laid_out(one.layout)[0] for one in made])
        made = [Candidate(name, layout, isotropic=True) for name, layout in flat.items()] + made
    return sorted(made, key=lambda one: not one.isotropic)
