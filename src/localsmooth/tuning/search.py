"""Find the noise that certifies most for a budget of work, at a quality that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from localsmooth.errors import InvalidInputError, require_several
from localsmooth.execution import Executor, ExecutorName
from localsmooth.layout import item_digest
from localsmooth.noise import Gaussian, Noise
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Predicted, Smoothing, as_targets
from localsmooth.tasks.arrays import ArrayTask, Settings
from localsmooth.tuning.candidates import Candidate, Remembering, isotropic_candidates
from localsmooth.tuning.forecast import MEAN_IOU, Aim, foretell
from localsmooth.tuning.halving import Tried, halved
from localsmooth.tuning.pilot import Entry, Pilots, require_plain_seed

__all__ = ["Tuning", "tune"]

_STEPS = 41  # budgets of a curve where none are named


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
        The family of distributions.
    origins
        `item_digest` of the items that were looked at: the smoothing that is returned does not certify them.
    """

    best: Tried
    isotropic: Tried
    tried: tuple[Tried, ...]
    left_out: dict[str, str]
    aim: Aim
    work: float
    noise: Noise
    origins: frozenset[str]

    @property
    def plan(self) -> SamplingPlan:
        """N₁, N₂ and the seed of the run, whose streams no pilot used."""
        return self.best.entry.plan

    @property
    def smoothing(self) -> Smoothing:
        """What `certify` takes for other items than those of the calibration."""
        return Smoothing(Remembering(self.best.entry.candidate.layout, self.origins), self.plan, self.noise)


def tune(
    task: object,
    settings: Settings,
    candidates: Sequence[Candidate],
    *,
    work: float | int | None = None,
    seconds: float | int | None = None,
    aim: Aim | None = None,
    noise: Noise | None = None,
    split: float = 1 / 9,
    share: float = 0.1,
    draws: int = 3,
    seed: int = 0,
    chunk_size: int = 128,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
    tell: Callable[[str], None] | None = None,
) -> Tuning:
    """Choose groups and levels of the noise by small pilots on items that are not certified.

    Every candidate gets as many samples as the budget of work affords it. What it would certify with all of them is
    foretold from a pilot; the better half of the candidates gets a larger one, and so on. Isotropic noise is always
    among the candidates, and is what is returned where it is best.

    Parameters
    ----------
    task
        An `ArrayTask`: the model, and the items to look at, others than those that are certified later.
    settings
        What will be proven. Budgets "auto" are spread up to where the candidate that gets farthest can reach.
    candidates
        What to choose from, such as `grid_candidates(levels)`. Where none is isotropic, isotropic noise of their
        smallest levels is added.
    work
        Passes an item, of both stages and all output groups together; a pass over a window counts by the share of the
        input that the window is.
    seconds
        Time an item in place of `work`: as many passes as it allows here, by a few that are timed.
    aim
        What is wanted; by default the certified ratio's average certifiable radius.
    noise
        Family of distributions; Gaussian by default.
    split
        Share of the samples that choose candidate classes (N₁).
    share
        Of a whole run, that the last pilots are.
    draws
        Whole runs that are foretold for each item and pilot.
    seed
        Of the run that follows. Pilots draw from streams of other seeds.
    chunk_size, options, executor
        Of the pilots, and of the run that follows.
    tell
        Told what happens.

    Raises
    ------
    InvalidInputError
        Naming what cannot be used, or that no candidate reaches the floor, or certifies anything.
    """
    if not isinstance(task, ArrayTask):
        kind = getattr(task, "name", type(task).__name__)
        raise InvalidInputError("task", f"it is about {kind}", "Pass an ArrayTask: noise is tuned for arrays only")
    _require(settings, work, seconds, split, share, draws)
    require_plain_seed(seed)
    aim, noise = Aim() if aim is None else aim, Gaussian() if noise is None else noise
    _require_labels(task, aim)
    say = tell or (lambda _: None)
    pilots = Pilots(
        task, settings, noise, seed, chunk_size, split, SamplingOptions() if options is None else options, executor
    )
    contest = _with_isotropic(candidates, pilots)
    if seconds is not None:
        work = pilots.work_within(seconds, next(one for one in contest if one.isotropic))
        say(f"{seconds:g} s an item are about {work:,.0f} passes here")
    assert work is not None
    entries, left_out = list[Entry](), dict[str, str]()
    for one in contest:
        try:
            entries.append(pilots.enter(one, work))
        except InvalidInputError as error:
            if one.isotropic:  # which has the most samples: what is wrong with it is wrong with all
                raise
            left_out[one.name] = str(error)
    settings = _with_grid(settings, entries, aim)

    def attempt(entry: Entry, part: float, number: int) -> Tried:
        samples = entry.pilot(part)
        drawn = pilots.draw(entry, samples, number)
        foreseen = foretell(drawn, noise, settings, entry.plan, aim, draws, number)
        found = f"radius {foreseen.radius:.3f} ± {foreseen.radius_error:.3f}" + "".join(
            f", {name} {value:.3f}" for name, value in foreseen.quality.items()
        )
        say(f"Round {number}: {entry.candidate.name}, {samples} samples of each group: {found}")
        return Tried(entry, foreseen, number, samples)

    tried = halved(entries, attempt, aim, share)
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
        frozenset(item_digest(item.image) for item in task.items) | tried[0].entry.candidate.origins,
    )


def _require(
    settings: Settings, work: float | int | None, seconds: float | int | None, split: float, share: float, draws: int
) -> None:
    given = work if seconds is None else seconds
    if (work is None) == (seconds is None) or not 0 < (given or 0) < float("inf"):
        raise InvalidInputError("work, seconds", f"got {work} and {seconds}", "Pass one of them, a positive number")
    for name, value in (("split", split), ("share", share)):
        if not 0 < value < 1:
            raise InvalidInputError(name, f"got {value}", "Pass a share strictly between 0 and 1")
    if draws < 1:
        raise InvalidInputError("draws", f"got {draws}", "Pass at least 1")
    if settings.method is not None:
        raise InvalidInputError("method", "a baseline has no levels to choose", "Leave the baseline out")
    if settings.needs_scores:
        raise InvalidInputError("certificates", "scores cannot be foretold", "Tune with certificates from votes")


def _require_labels(task: ArrayTask, aim: Aim) -> None:
    """Refuse what cannot be told of the items, before anything is drawn."""
    for item in task.items:
        nothing = np.zeros(1, np.int64)
        flat = Predicted(nothing, None if item.label is None else nothing, nothing, None, ())
        for field, name in (("target", aim.target), *(("floor", name) for name in aim.floor)):
            told = item.label if name == MEAN_IOU else as_targets([name])[0].reference(flat)
            if told is None:
                raise InvalidInputError(
                    field, f'"{item.name}" has no labels for {name}', "Add labels, or ask for agreement"
                )


def _with_isotropic(candidates: Sequence[Candidate], pilots: Pilots) -> list[Candidate]:
    """All candidates, isotropic ones among them."""
    require_several("candidates", candidates, "candidates")
    if not len(candidates):
        raise InvalidInputError("candidates", "there is none", "Pass grid_candidates(levels), say")
    names = [one.name for one in candidates]
    if len(set(names)) < len(names):
        raise InvalidInputError("candidates", "two have the same name", "Name each once")
    made = list(candidates)
    if not any(one.isotropic for one in made):
        layouts = [pilots.layouts(one)[0] for one in made]
        if any(layout.levels.ndim > 2 for layout in layouts):
            raise InvalidInputError(
                "candidates", "levels of several parameters have no one isotropic counterpart", "Add isotropic ones"
            )
        smallest = np.unique([round(float(layout.levels.min()), 6) for layout in layouts])
        made = isotropic_candidates(smallest.tolist(), layouts[0].inputs.labels.ndim) + made
    return sorted(made, key=lambda one: not one.isotropic)


def _with_grid(settings: Settings, entries: Sequence[Entry], aim: Aim) -> Settings:
    """The same budgets for all candidates, the one that is asked about among them."""
    budgets = settings.budgets
    if not budgets:
        proposed = [entry.assignment.proven for entry in entries]
        farthest = max(each.largest_budget for each in proposed)
        whole = all(float(budget).is_integer() for each in proposed for budget in each.budgets)
        budgets = np.unique(np.linspace(0, farthest, _STEPS).round(0 if whole else 12))
    asked = () if aim.at is None else (aim.at,)
    return replace(settings, budgets=sorted({*map(float, budgets), *asked}))
