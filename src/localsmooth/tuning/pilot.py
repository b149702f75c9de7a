"""Small draws of a candidate, from streams that no run that is certified has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from localsmooth.errors import InvalidInputError
from localsmooth.execution import Executor, ExecutorName, NoProgress, SamplingSummary, default_executor, sample_subject
from localsmooth.noise import Noise
from localsmooth.runs import MemoryStore, PassPlan, SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Assignment, Smoothing, Task, Tunable, work_of
from localsmooth.tuning.candidates import Candidate

__all__ = ["Entry", "Pilots", "pilot_seed", "require_plain_seed"]

_SEED_BITS = 64  # of seeds of runs; those of pilots are longer, so that none can be equal
_FEWEST = 12
_TIMED = 48
_ENOUGH = 100_000  # passes that certify something, where only some are timed


def require_plain_seed(seed: int) -> None:
    """Refuse seeds of runs among which a pilot's could be.

    Raises
    ------
    InvalidInputError
        For a seed that is negative or not below 2⁶⁴.
    """
    if not 0 <= seed < 1 << _SEED_BITS:
        raise InvalidInputError("seed", f"got {seed}", f"Pass one of 0 … 2^{_SEED_BITS} − 1: pilots have larger ones")


def pilot_seed(seed: int, number: int) -> int:
    """Seed of the pilots of a round: of another length than any seed of a run that `require_plain_seed` lets through.

    All candidates share it, so that they see the same noise where they draw for the same groups.

    Parameters
    ----------
    seed
        Of the run that follows.
    number
        Of the round.
    """
    require_plain_seed(seed)
    digest = hashlib.sha256(f"localsmooth pilot {seed} {number}".encode()).digest()
    return 1 << 2 * _SEED_BITS | int.from_bytes(digest[: 2 * _SEED_BITS // 8])


@dataclass(frozen=True, eq=False)
class Entry:
    """A candidate with the run that the budget of work affords it.

    Parameters
    ----------
    candidate
        The candidate.
    plan
        The whole run.
    assignment
        What is drawn for it.
    work
        Passes an item that the run takes, weighted by the share of the input that they are over: mean over items.
    task
        Whose classifier is smoothed: that of all candidates, or one that was trained for this one.
    others
        The same candidate with its samples split otherwise between the stages: one pilot serves all of them.
    """

    candidate: Candidate
    plan: SamplingPlan
    assignment: Assignment[Any]
    work: float
    task: Tunable
    others: tuple[Entry, ...] = ()

    def pilot(self, share: float) -> int:
        """Samples of each output group in a pilot of so large a share of the run."""
        total = self.plan.n_candidate + self.plan.n_bound
        return min(max(round(share * total), _FEWEST), total)

    @property
    def splits(self) -> list[Entry]:
        """The same with each split; each of them knows the others."""
        every = [replace(one, others=()) for one in (self, *self.others)]
        return [replace(one, others=tuple(other for other in every if other is not one)) for one in every]


class _Timed(NoProgress):
    summary: SamplingSummary | None = None

    def finish(self, summary: SamplingSummary) -> None:
        self.summary = summary


@dataclass(eq=False)
class Pilots:
    """Draws pilots of candidates on the same items.

    Parameters
    ----------
    task
        The model and the items of the calibration.
    settings, noise
        What will be proven, and sampled.
    seed, chunk_size, splits
        Of the run that follows: its seed, samples in a chunk, and shares of its samples that may choose candidates.
    options, executor
        How, and where.
    trained
        Makes the task with the classifier that was trained for a candidate; the task's own by default.
    """

    task: Tunable
    settings: Any
    noise: Noise | None
    seed: int
    chunk_size: int
    splits: Sequence[float]
    options: SamplingOptions = field(default_factory=SamplingOptions)
    executor: Executor | ExecutorName | None = None
    trained: Callable[[Candidate], Tunable] | None = None

    def work_within(self, seconds: float | int, isotropic: Candidate) -> float:
        """Passes an item that take so long, from a few that are timed.

        Parameters
        ----------
        seconds
            The time.
        isotropic
            A candidate whose passes are over whole items.
        """
        told = _Timed()
        entry = self.enter(isotropic, _ENOUGH)
        self.draw(entry, _TIMED, 0, told)
        assert told.summary is not None
        return seconds * told.summary.rate

    def enter(self, candidate: Candidate, work: float | int) -> Entry:
        """Check a candidate with as many samples as the budget affords, everything that certifying it would check.

        Splits that certify nothing are left out, unless all do.

        Raises
        ------
        InvalidInputError
            Naming what does not fit: that so few samples certify nothing, say.
        """
        task = self.task if self.trained is None else self.trained(candidate)
        layouts = task.laid_out(candidate.layout)
        each = work_of(layouts)
        made, refused = list[Entry](), list[InvalidInputError]()
        for split in self.splits:
            try:
                plan = PassPlan(work, split, self.seed, self.chunk_size).plan(each)
                assert isinstance(task, Task)
                assignment = task.assign(Smoothing(layouts, plan, self.noise), self.settings, self.options, None)
            except InvalidInputError as error:
                refused.append(error)
                continue
            if not any(plan == one.plan for one in made):
                made.append(Entry(candidate, plan, assignment, each * (plan.n_candidate + plan.n_bound), task))
        if not made:
            raise refused[0]
        return replace(made[0], others=tuple(made[1:]))

    def draw(self, entry: Entry, samples: int, number: int, progress: NoProgress | None = None) -> Any:
        """Draw a pilot; its votes are those of the candidate stage.

        Parameters
        ----------
        entry
            Of which candidate.
        samples
            Of each output group.
        number
            Of the round.
        progress
            Told how far it is.
        """
        subject = entry.assignment.subject.reseeded(pilot_seed(self.seed, number))
        # A stage of one sample, since there is none of nothing, which nobody looks at.
        plan = SamplingPlan(samples, 1, subject.seed, self.chunk_size)
        if self.options.check_model:  # once is enough, and so is one calibration
            place = default_executor(subject)
            ready = subject.get_ready(plan, MemoryStore(), self.options, place.conditions())
            order = getattr(getattr(ready.subject, "model", None), "channels_last", self.options.channels_last)
            self.options = replace(
                self.options, batch_size=ready.batch_size.samples, channels_last=order, check_model=False
            )
        tallies = sample_subject(subject, plan, options=self.options, executor=self.executor, progress=progress)
        return entry.assignment.collect(tallies)
