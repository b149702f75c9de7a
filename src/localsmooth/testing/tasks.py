"""What every kind of input must do, from a task to a certificate and back: one suite over the whole pipeline."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import xarray as xr

from localsmooth.bounds import Bonferroni, JointCount
from localsmooth.errors import InvalidInputError, LocalsmoothError
from localsmooth.execution import (
    JsonProgress,
    NoProgress,
    OtherPartsMissingError,
    Part,
    ProcessExecutor,
    ThreadExecutor,
    Until,
)
from localsmooth.layout import isotropic_layout
from localsmooth.pipeline import Run, certified_overlap, certify, recertify, settings_of
from localsmooth.report import write_report
from localsmooth.results import NO_LABEL, budget_kinds, load_overlaps, load_result, run_info, save_overlaps
from localsmooth.runs import DirectoryStore, SamplingPlan, join
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import (
    TASKS,
    RunRecordError,
    Smoothing,
    StopWhenDecided,
    Task,
    load_record,
    save_record,
    task_of,
)

__all__ = ["TaskCase", "TaskContract"]


@dataclass(frozen=True, eq=False)
class TaskCase:
    """A task that takes no time, and what is proven of it.

    Parameters
    ----------
    task
        The task; it can be pickled.
    smoothing
        A layout of several output groups, and a plan of several chunks for each.
    settings
        Made of α, budgets and collective bounds, which a record keeps; something is certified at some budget.
    other
        Another α and other budgets.
    """

    task: Task[Any, Any]
    smoothing: Smoothing
    settings: Any
    other: Any


class TaskContract:
    """Tests of a kind of input."""

    def make(self) -> TaskCase:
        """Make the task anew.

        Raises
        ------
        NotImplementedError
            Where a suite does not say how.
        """
        raise NotImplementedError

    def _certify(self, out: Path | None = None, case: TaskCase | None = None, **run: Any) -> xr.Dataset:
        case = self.make() if case is None else case
        usual = {"progress": NoProgress(), "options": SamplingOptions(batch_size=16), "executor": "serial"}
        arguments: dict[str, Any] = usual | run
        unusable = arguments.pop("unusable", None)
        made = Run(out, **arguments)
        if unusable is not None:
            object.__setattr__(made, "executor", unusable)  # past whatever checks types as it is made
        return certify(case.task, case.smoothing, case.settings, run=made)

    def test_a_result_says_its_kind_of_input(self) -> None:
        """In memory, in the file and in the record; the registry finds the class by that name."""
        case = self.make()
        with _folder() as folder:
            result = self._certify(folder)
            assert run_info(result).task == case.task.name == load_record(folder).task
            loaded = load_result(folder / "result.nc")
        assert run_info(loaded).task == case.task.name
        assert task_of(case.task.name) is type(case.task)
        assert case.task.name in TASKS
        _same(loaded, result)
        assert result["certified"].values.max() > 0, "nothing is certified: the case shows nothing"
        groups = [layout.outputs.count for layout in self._subject(case).layouts]
        assert max(groups) > 1, "the case has one output group only"
        plan = _plan(case)
        assert plan.n_bound > plan.chunk_size, "the case has one chunk only"

    def _subject(self, case: TaskCase) -> Any:
        return case.task.assign(case.smoothing, case.settings, SamplingOptions(), None).subject

    def test_an_interrupted_run_goes_on(self) -> None:
        """Wherever it was interrupted: with the result of one that was not, and without drawing anything twice."""
        told = _Counting()
        whole = self._certify(progress=told)
        for chunks in (1, told.chunks // 2, told.chunks - 1):
            with _folder() as folder:
                stopped, resumed = _Counting(chunks), _Counting()
                _raises(KeyboardInterrupt, lambda at=folder, by=stopped: self._certify(at, progress=by))
                error = _raises(RunRecordError, lambda at=folder: recertify(at))
                assert "goes on where it stopped" in str(error)
                _same(self._certify(folder, progress=resumed), whole)
                assert stopped.drawn + resumed.drawn == told.drawn

    def test_certifying_twice_loses_nothing(self) -> None:
        """The same again changes nothing; something else keeps the earlier result beside the new one."""
        case = self.make()
        with _folder() as folder:
            first = self._certify(folder)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                again = _Counting()
                _same(self._certify(folder, progress=again), first)
            assert again.drawn == 0
            assert not (folder / "result-1.nc").exists()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                second = self._certify(folder, replace(case, settings=case.other))
            assert any("result-1.nc" in str(one.message) for one in caught)
            _same(load_result(folder / "result-1.nc"), first)
            _same(load_result(folder / "result.nc"), second)

    def test_what_cannot_be_used_is_refused_before_anything_is_drawn_and_written(self) -> None:
        """By the name of the field."""
        case = self.make()
        plan = _plan(case)
        few = SamplingPlan(plan.n_candidate, 1, plan.seed, plan.chunk_size)
        elsewhere = isotropic_layout(0.2, (1,), (1, 1, 1))
        cases: dict[str, tuple[TaskCase, dict[str, Any]]] = {
            "configuration": (case, {"configuration": {"path": Path("x")}}),
            "executor": (case, {"unusable": "nowhere"}),
            "n_bound": (replace(case, smoothing=replace(case.smoothing, plan=few)), {}),
            "layout levels": (replace(case, smoothing=replace(case.smoothing, layout=elsewhere)), {}),
            "noise levels": (replace(case, smoothing=replace(case.smoothing, noise=_foreign_noise(case))), {}),
            "prove": (replace(case, settings=_Foreign()), {}),
        }
        for fields, (asked, run) in cases.items():
            with _folder() as folder:
                told = _Counting()
                error = _raises(
                    InvalidInputError,
                    lambda at=folder / "run", one=asked, by=told, more=run: self._certify(
                        at, one, **({"progress": by} | more)
                    ),
                )
                assert error.field in fields.split(), f"{fields}: {error}"
                assert told.drawn == 0
                assert not (folder / "run").exists(), f"{fields}: something was written"

    def test_executors_draw_the_same(self) -> None:
        """One chunk after the other, in threads and in processes."""
        here = self._certify()
        for executor in (None, ThreadExecutor(2), ProcessExecutor(2)):
            _same(self._certify(executor=executor), here)

    def test_other_programs_can_follow(self) -> None:
        """By a line of JSON for each event, from the first sample to the last item."""
        stream, drawn = io.StringIO(), _Counting()
        self._certify(progress=JsonProgress(stream, every=0.0))
        self._certify(progress=drawn)
        events = [json.loads(line) for line in stream.getvalue().splitlines()]
        kinds = [event["event"] for event in events]
        assert kinds.index("start") < kinds.index("progress") < kinds.index("summary") < kinds.index("certifying")
        start, certifying = (next(e for e in events if e["event"] == kind) for kind in ("start", "certifying"))
        assert (start["done"], start["total"]) == (0, drawn.drawn)
        assert [e["done"] for e in events if e["event"] == "progress"][-1] == drawn.drawn
        assert certifying["done"] == 0
        assert events[-1] == events[-1] | {"event": "certifying", "done": certifying["total"]}

    def test_parts_that_are_joined_are_the_run(self) -> None:
        """Whichever machine draws which; nothing is certified before all are there."""
        whole, count = self._certify(), 2
        with _folder() as folder:
            for number in range(1, count + 1):
                part = Part(number, count)
                _raises(OtherPartsMissingError, lambda at=folder / str(number), one=part: self._certify(at, part=one))
                assert not (folder / str(number) / "result.nc").exists()
            with DirectoryStore(folder / "1") as into:
                others = [DirectoryStore(folder / str(number), read_only=True) for number in range(2, count + 1)]
                joined = join(into, others)
            assert joined.added > 0
            told = _Counting()
            _same(self._certify(folder / "1", progress=told), whole)
            assert told.drawn == 0

    def test_certifying_again_is_certifying(self) -> None:
        """From the tallies alone, with another α and other budgets."""
        case = self.make()
        directly = self._certify(None, replace(case, settings=case.other))
        with _folder() as folder:
            first = self._certify(folder)
            _same(recertify(folder, case.other), directly)
            _same(recertify(folder), first)
            assert recertify(folder, name="another").attrs["method"] == "another"
            error = _raises(InvalidInputError, lambda: recertify(folder, _Foreign()))
        assert (error.field, type(case.settings).__name__ in str(error)) == ("prove", True), error

    def test_a_run_knows_what_was_proven(self) -> None:
        """Settings come back from the record, and make the same certificate in a new run."""
        case = self.make()
        with _folder() as folder:
            first = self._certify(folder)
            kept = settings_of(folder)
        assert type(kept) is type(case.settings)
        assert kept.alpha == case.settings.alpha
        assert kept.largest_budget == case.settings.largest_budget
        _same(self._certify(None, replace(case, settings=kept)), first)

    def test_groups_may_stop_early_or_it_is_refused(self) -> None:
        """With the same tallies again when it is resumed; a kind that cannot says so before anything is written."""
        case = self.make()
        plan = replace(_plan(case), stop=StopWhenDecided())
        case = replace(case, smoothing=replace(case.smoothing, plan=plan))
        with _folder() as folder:
            stopped, refusal = None, None
            try:
                stopped = self._certify(folder / "run", case)
            except InvalidInputError as error:
                refusal = error
            if stopped is None:
                assert refusal is not None
                assert refusal.field == "stop", refusal
                assert not (folder / "run").exists()
                return
            _same(recertify(folder / "run"), stopped)
        saving = run_info(stopped).saving
        assert saving is not None
        assert saving.total >= 0
        _same(self._certify(None, case, executor=ThreadExecutor(2)), stopped)

    def test_sampling_may_be_ended_and_go_on(self) -> None:
        """By a rule that holds at every number of samples; whoever goes on ends with the run made at once."""
        case = self.make()
        joint, plan = replace(case.settings, simultaneous=JointCount()), _plan(case)
        case = replace(case, settings=joint)
        groups = self._subject(case).layouts[0].outputs.count
        drawn, told = _Counting(), _Counting()
        whole = self._certify(None, case, progress=drawn)
        with _folder() as folder:
            fixed = replace(case, settings=replace(joint, simultaneous=Bonferroni()))
            error = _raises(InvalidInputError, lambda: self._certify(folder / "run", fixed, until=Until(60.0)))
            assert error.field == "simultaneous", error
            assert not (folder / "run").exists()
            until = Until()
            ending = _Counting(2 * groups + 1, until)  # the candidates, a round, and a chunk of the next
            ended = self._certify(folder / "run", case, progress=ending, until=until)
            info, record = run_info(ended), load_record(folder / "run")
            assert info.saving is not None
            assert info.saving.counted == (groups * plan.chunk_size,)
            assert any("ended before its plan" in one and "joint_count holds" in one for one in info.assumptions)
            assert record.begun == [0]
            assert list(info.left_out) == record.item_names[1:]
            _same(load_result(folder / "run" / "result.nc"), ended)
            _same(recertify(folder / "run"), ended)
            assert _raises(InvalidInputError, lambda: recertify(folder / "run", fixed.settings)).field == "simultaneous"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the earlier result, which is kept
                _same(self._certify(folder / "run", case, progress=told), whole)
                assert ending.drawn + told.drawn == drawn.drawn
                longer = replace(plan, n_bound=2 * plan.n_bound)
                grown = replace(case, smoothing=replace(case.smoothing, plan=longer))
                extended = self._certify(folder / "run", grown)
                _raises(
                    InvalidInputError, lambda: self._certify(folder / "run", replace(grown, settings=fixed.settings))
                )
            xr.testing.assert_equal(extended, self._certify(None, grown))
            assert any(f"began with N₂ = {plan.n_bound}" in one for one in run_info(extended).assumptions)

    def test_a_report_can_be_written(self) -> None:
        """Of one result, and of two methods side by side."""
        with _folder() as folder:
            one, two = self._certify(name="first"), self._certify(name="second <b>")
            write_report({"first": one, "second <b>": two}, folder / "report.html")
            page = (folder / "report.html").read_text("utf-8")
        assert "second &lt;b&gt;" in page
        assert "second <b>" not in page

    def test_overlaps_are_certified_kept_and_shown(self) -> None:
        """Where there are labels; else they are refused by name."""
        with _folder() as folder:
            result = self._certify(folder / "run", name="first")
            if bool((result["label"] == NO_LABEL).all()):
                error = _raises(InvalidInputError, lambda: certified_overlap(folder / "run"))
                assert error.field in ("run", "labels"), error
                return
            made = certified_overlap(folder / "run")
            save_overlaps(made, folder / "overlap.nc")
            kept = load_overlaps(folder / "overlap.nc")
            xr.testing.assert_equal(kept, made)
            write_report({"first": result}, folder / "report.html", overlaps={"first": kept})
        # What is proven holds without a perturbation, too: for the predictions that are most likely right.
        for name in ("iou", "iou_upper"):
            assert not (made[name].isel(dict.fromkeys(budget_kinds(made), 0)) > made["candidate_iou"] + 1e-9).any()
        assert not any((made["iou"].diff(kind) > 2e-3).any() for kind in budget_kinds(made))

    def test_a_run_on_something_unknown_is_refused_in_one_sentence(self) -> None:
        """As a run from another program or a later version is."""
        with _folder() as folder:
            self._certify(folder)
            save_record(replace(load_record(folder), task="dreams"), folder)
            for read in (recertify, settings_of):
                error = _raises(LocalsmoothError, lambda one=read: one(folder))
                assert '"dreams"' in str(error)
                assert all(name in str(error) for name in TASKS)


class _Foreign:
    """Settings of no kind."""

    alpha = 0.1
    needs_scores = False
    largest_budget = 1.0


class _Counting(NoProgress):
    """Adds up what is drawn, and interrupts after so many chunks, or ends sampling then."""

    def __init__(self, stop_after: int | None = None, until: Until | None = None) -> None:
        self.stop_after, self.until, self.chunks, self.drawn = stop_after, until, 0, 0

    def advance(self, samples: int) -> None:
        self.chunks += 1
        self.drawn += samples
        if self.chunks == self.stop_after:
            if self.until is None:
                raise KeyboardInterrupt
            self.until.end()


def _foreign_noise(case: TaskCase) -> Any:
    """A noise for bits where the case has numbers, and the other way round."""
    from localsmooth.noise import BinaryNoise, Gaussian, SparseFlips

    own = case.smoothing.noise
    return SparseFlips() if own is None or not isinstance(own, BinaryNoise) else Gaussian()


@contextmanager
def _folder() -> Generator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


def _raises(kind: type[BaseException], call: Any) -> Any:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def _same(result: xr.Dataset, other: xr.Dataset) -> None:
    """The same numbers, and the same words about what they mean."""
    xr.testing.assert_equal(result, other)
    said, wanted = (run_info(one) for one in (result, other))
    for field in ("task", "norm", "units", "alpha", "n_candidate", "n_bound", "threat", "assumptions", "promise"):
        assert getattr(said, field) == getattr(wanted, field), field
    assert all(np.isfinite(result[kind].values).all() for kind in budget_kinds(result))


def _plan(case: TaskCase) -> SamplingPlan:
    assert isinstance(case.smoothing.plan, SamplingPlan), "the case says how many samples"
    return case.smoothing.plan
