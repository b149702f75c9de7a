"""Sampling that ends when somebody says so, and what is certified while it goes on."""

from __future__ import annotations

import inspect
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from typer.testing import CliRunner

from localsmooth.bounds import Bonferroni, JointCount, KFamilywise
from localsmooth.certificates import GaussianScores, OutputVotes
from localsmooth.cli.app import app
from localsmooth.cli.summary import print_summary
from localsmooth.errors import InvalidInputError
from localsmooth.execution import CertifiedSoFar, JsonProgress, NoProgress, Part, RichProgress, ThreadExecutor, Until
from localsmooth.layout import GridLayout
from localsmooth.pipeline import NothingDrawnError, Run, certify, live, recertify
from localsmooth.report import reach_of_result
from localsmooth.report.promise import promise
from localsmooth.results import load, run_info
from localsmooth.runs import SamplingPlan, join
from localsmooth.runs.directory import DirectoryStore
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import RunRecordError, Smoothing, StopWhenDecided, load_record
from localsmooth.tasks.arrays import ArrayTask, Settings
from localsmooth.testing.chance import assert_level_kept
from tests.pipeline.models import threshold_model
from tests.tiny_runs import FUNCTIONS, SECTIONS, configuration, write_inputs

SHAPE = (4, 6)
GROUPS = 6
CHUNK = 50
JOINT = Settings(0.1, [0.0, 0.2, 0.4], simultaneous=JointCount())


class Told(NoProgress):
    """Keeps what it is told of certificates; ends sampling after so many chunks, or when a certificate pleases it."""

    def __init__(self, until: Until | None = None, after: int | None = None, pleased: Any = None) -> None:
        self.until, self.after, self.pleased = until, after, pleased
        self.chunks, self.found, self.said = 0, list[CertifiedSoFar](), list[str]()

    def advance(self, samples: int) -> None:
        self.chunks += 1
        if self.chunks == self.after and self.until is not None:
            self.until.end()

    def message(self, text: str) -> None:
        self.said.append(text)

    def certified_so_far(self, found: CertifiedSoFar) -> None:
        self.found.append(found)
        if self.until is not None and self.pleased is not None and self.pleased(found):
            self.until.end()


def run(
    out: Path | None = None,
    n_bound: int = 400,
    settings: Settings = JOINT,
    images: int = 2,
    thresholds: Any = -0.5,
    stop: Any = None,
    **how: Any,
) -> xr.Dataset:
    task = ArrayTask(threshold_model(np.full(SHAPE, thresholds)), np.zeros((images, 1, *SHAPE), np.float32))
    plan = SamplingPlan(n_candidate=20, n_bound=n_bound, seed=1, chunk_size=CHUNK, stop=stop)
    usual = {"options": SamplingOptions(batch_size=50, check_model=False), "executor": "serial"}
    made = Run(out, **(usual | {"progress": NoProgress()} | how))
    return certify(task, Smoothing(GridLayout((2, 3), 0.3, 0.6), plan), settings, run=made)


def ended(out: Path | None = None, after: int = 2 * GROUPS + 1, **how: Any) -> xr.Dataset:
    until = Until()
    return run(out, until=until, progress=Told(until, after), **how)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look after every round, whatever it takes."""
    for name, value in {"_FIRST": 0.0, "_SHARE": 1e9, "_MORE": 0.0}.items():
        monkeypatch.setattr(live, name, value)


@pytest.mark.parametrize("executor", ["serial", ThreadExecutor(2)])
def test_what_is_certified_is_the_run_of_the_complete_rounds(tmp_path: Path, executor: Any) -> None:
    """Not the chunks that lie ahead of their round, in whatever order they were drawn."""
    short = run(n_bound=2 * CHUNK, images=1)
    result = None
    for _ in range(10):  # a thread that sleeps through it all leaves no whole round; the next call goes on
        try:
            result = ended(tmp_path, after=3 * GROUPS + 2, executor=executor)
            break
        except NothingDrawnError:
            assert executor != "serial"
    assert result is not None
    rounds = run_info(result).saving
    assert rounds is not None
    if executor == "serial":
        assert rounds.counted == (2 * GROUPS * CHUNK,)
        for name in ("votes", "certified", "lower_probability", "eta"):
            np.testing.assert_array_equal(result[name], short[name], err_msg=name)
    assert rounds.counted[0] % (GROUPS * CHUNK) == 0
    assert run_info(result).left_out == ("item 1",) or len(rounds.counted) == 2
    with DirectoryStore(tmp_path, read_only=True) as store:  # nothing is lost of what was drawn ahead
        assert sum(kept.n for kept in store.finished().values()) > rounds.counted[0] + GROUPS * 20


def test_items_that_are_complete_keep_all_of_their_samples(tmp_path: Path) -> None:
    whole = run()
    result = ended(tmp_path, after=GROUPS * 9 + GROUPS * 3 + 1)
    saving = run_info(result).saving
    assert saving is not None
    assert saving.counted == (GROUPS * 400, GROUPS * 2 * CHUNK)
    np.testing.assert_array_equal(result["certified"].values[0], whole["certified"].values[0])
    assert run_info(result).left_out == ()
    xr.testing.assert_equal(recertify(tmp_path), result)
    extended = run(tmp_path, 600)
    xr.testing.assert_equal(extended, run(n_bound=600))
    assert load_record(tmp_path).begun is None


def test_a_run_in_another_order_goes_on(tmp_path: Path) -> None:
    """One that was begun group by group has no round yet, and its samples count once the other groups are there."""

    class Stop(NoProgress):
        chunks = 0

        def advance(self, samples: int) -> None:
            self.chunks += 1
            if self.chunks == 12:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, progress=Stop())
    with pytest.raises(NothingDrawnError, match="goes on from the samples"):
        ended(tmp_path, after=1)
    with pytest.raises(RunRecordError, match="no finished run"):
        recertify(tmp_path)
    until = Until()
    result = run(tmp_path, until=until, progress=Told(until, 2 * GROUPS))
    assert run_info(result).left_out == ("item 1",)
    xr.testing.assert_equal(run(tmp_path), run())


def test_a_stopping_rule_may_be_ended_too(tmp_path: Path) -> None:
    """Groups that are decided wait for nobody, and each is bounded at its own number of samples."""
    thresholds = np.full(SHAPE, -0.9)
    thresholds[:2, :2] = -0.3
    for settings in (Settings(0.1, [0.0, 0.2], simultaneous=Bonferroni()), replace(JOINT, budgets=(0.0, 0.2))):
        until, out = Until(), tmp_path / settings.simultaneous.name
        how: dict[str, Any] = {"settings": settings, "stop": StopWhenDecided(target=0.9), "thresholds": thresholds}
        result = run(out, 4000, until=until, progress=Told(until, GROUPS * 8), images=1, **how)
        saving, record = run_info(result).saving, load_record(out)
        assert saving is not None
        assert record.begun == [0]
        counted = DirectoryStore(out, read_only=True).get_array("item0-n")
        assert len(set(np.unique(counted))) > 1
        holds = (
            "joint_count" if isinstance(settings.simultaneous, JointCount) else "confidence sequence of early stopping"
        )
        assert any(f"{holds} holds" in each for each in run_info(result).assumptions)
        xr.testing.assert_equal(recertify(out), result)
        xr.testing.assert_equal(run(out, 4000, images=1, **how), run(n_bound=4000, images=1, **how))


@pytest.mark.parametrize("rule", [Bonferroni(), KFamilywise(2)])
def test_rules_for_a_fixed_number_of_samples_are_refused(tmp_path: Path, rule: Any) -> None:
    fixed = replace(JOINT, simultaneous=rule)
    for until in (Until(60.0), Until(interrupted=True)):
        with pytest.raises(InvalidInputError, match="ends or ended before its plan") as refused:
            run(tmp_path / "run", settings=fixed, until=until)
        assert rule.name in str(refused.value)
        assert "joint_count" in str(refused.value)
    assert not (tmp_path / "run").exists()
    result = ended(tmp_path)
    with pytest.raises(InvalidInputError, match="ends or ended before its plan"):
        recertify(tmp_path, fixed)
    with pytest.raises(InvalidInputError, match="scores need"):
        recertify(tmp_path, Settings(0.1, [0.0], certificates=[GaussianScores()]))
    candidate, voted = (result[name].values[0].ravel() for name in ("candidate", "votes"))
    votes = OutputVotes(candidate, voted, np.full(24, CHUNK), planned=400, ended=True)
    with pytest.raises(InvalidInputError, match="sampling was ended before"):
        votes.bounds(rule, 0.1, None)


def test_parts_are_not_ended() -> None:
    with pytest.raises(InvalidInputError, match="until: a part"):
        run(until=Until(1.0), part=Part(1, 2))


def test_a_crash_while_an_ended_run_goes_on_leaves_nothing_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays of more samples beside the record of fewer would be read as more votes among the fewer."""
    ended(tmp_path)
    with monkeypatch.context() as patched:
        keep = DirectoryStore.put_array

        def failing(self: DirectoryStore, name: str, array: np.ndarray) -> None:
            if name == "item0-n" or name.startswith("item1"):
                raise KeyboardInterrupt
            keep(self, name, array)

        patched.setattr(DirectoryStore, "put_array", failing)
        with pytest.raises(KeyboardInterrupt):
            ended(tmp_path, after=4 * GROUPS)
    with pytest.raises(RunRecordError, match="no finished run"):
        recertify(tmp_path)
    xr.testing.assert_equal(run(tmp_path), run())


def test_ended_runs_may_be_joined(tmp_path: Path) -> None:
    for name, after in (("a", 2 * GROUPS), ("b", 3 * GROUPS)):
        ended(tmp_path / name, after=after)
    with DirectoryStore(tmp_path / "a") as into:
        join(into, [DirectoryStore(tmp_path / "b", read_only=True)])
    xr.testing.assert_equal(run(tmp_path / "a"), run())


def test_ended_runs_are_listed_as_ended(tmp_path: Path) -> None:
    ended(tmp_path / "a", after=2 * GROUPS)
    said = " ".join(CliRunner().invoke(app, ["runs", str(tmp_path / "a")]).output.split())
    assert "not drawn, since sampling was ended" in said
    assert "missing" not in said


def test_times_are_read() -> None:
    for text, seconds in {"90s": 90, "10min": 600, "1h30min": 5400, "1.5 h": 5400, "2d": 172800}.items():
        made = Until.parse(text)
        assert made is not None
        assert made.seconds == seconds
    assert Until.parse(None) is None
    assert Until.parse(None, interrupted=True) is not None
    for wrong in ("", "10", "min", "10 minutes", "-5s", "1h x", "0s", "0min 0s"):
        with pytest.raises(InvalidInputError, match="time: got"):
            Until.parse(wrong)
    with pytest.raises(InvalidInputError, match="seconds"):
        Until(float("nan"))
    made, parse = inspect.unwrap(Until.__init__), inspect.unwrap(Until.parse.__func__)  # no type checker speaks first
    for wrong in ("5", [1], True, 1j, np.array([1, 2])):
        with pytest.raises(InvalidInputError, match="seconds: got"):
            made(object.__new__(Until), wrong)
    with pytest.raises(InvalidInputError, match="interrupted"):
        made(object.__new__(Until), interrupted="no")
    with pytest.raises(InvalidInputError, match="time"):
        parse(Until, 5)


def test_time_ends_sampling() -> None:
    now = [0.0]
    until = Until(10.0, clock=lambda: now[0])

    class Clock(NoProgress):
        def advance(self, samples: int) -> None:
            now[0] += 0.5

    result = run(until=until, progress=Clock())
    saving = run_info(result).saving
    assert saving is not None
    assert saving.counted == (2 * GROUPS * CHUNK,)  # 20 chunks: 6 for candidates, 12 in two rounds, 2 ahead


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("settings", "stop", "rule"),
    [
        (JOINT, None, "joint_count"),
        (Settings(0.1, [0.0, 0.2]), StopWhenDecided(target=0.95), "joint_count"),
        (Settings(0.1, [0.0, 0.2], simultaneous=Bonferroni()), StopWhenDecided(target=0.95), "a confidence sequence"),
    ],
)
def test_what_is_told_while_sampling_is_what_a_run_of_as_many_samples_certifies(
    settings: Settings, stop: Any, rule: str
) -> None:
    told = Told()
    result = run(settings=settings, stop=stop, progress=told)
    xr.testing.assert_identical(
        result.drop_attrs(), run(settings=settings, stop=stop).drop_attrs()
    )  # whoever looked changed nothing
    assert {found.rule for found in told.found} == {rule}
    assert {found.item for found in told.found} == {"item 0", "item 1"}
    assert not any("No certificate" in said for said in told.said)
    if stop is not None:
        return
    for found in told.found[1:12:5]:
        assert (found.target, found.planned, found.total, found.alpha) == ("ratio", 400, 24, 0.1)
        assert [size for _, size in found.budgets] == [0.2, 0.4]
        short = run(n_bound=found.n)["certified"].sel(target="ratio", bound="envelope", item=found.item)
        assert list(found.certified) == short.sel(budget=[0.2, 0.4]).values.tolist()
    assert max(found.certified[0] for found in told.found) > 0


@pytest.mark.usefixtures("eager")
def test_nothing_is_told_where_it_would_hold_for_no_such_number() -> None:
    told = Told()
    run(settings=Settings(0.1, [0.0, 0.2]), progress=told)
    assert told.found == []


@pytest.mark.usefixtures("eager")
def test_people_and_programs_are_told() -> None:
    stream, page = io.StringIO(), io.StringIO()
    run(progress=JsonProgress(stream, every=0.0))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    found = [event for event in events if event["event"] == "certified_so_far"]
    assert found[0] == found[0] | {"item": "item 0", "rule": "joint_count", "n": CHUNK, "planned": 400, "total": 24.0}
    assert found[0]["budgets"] == [{"kind": "ε", "size": 0.2}, {"kind": "ε", "size": 0.4}]
    run(progress=RichProgress(Console(file=page, width=1 << 12), every=1e9))
    lines = [line for line in page.getvalue().splitlines() if ": certified at" in line]
    less, more = (int(100 * each // 24) for each in found[3]["certified"])
    group = "item 0: certified at 200 of 400 samples per output group, by joint_count (ratio): "
    assert lines[3] == f"{group}ε 0.2: ≥ {less} %, ε 0.4: ≥ {more} %"


def test_words_of_a_run_that_was_ended_say_so() -> None:
    """Neither the promise nor the reach claim samples that were not drawn, and nothing is called saved."""
    now = [0.0]

    class Clock(NoProgress):
        def advance(self, samples: int) -> None:
            now[0] += 0.5

    result = run(until=Until(10.0, clock=lambda: now[0]), progress=Clock())
    page = io.StringIO()
    print_summary({"localized": result}, Console(file=page, width=1 << 12))
    said, told = page.getvalue(), promise(run_info(result))
    assert "N₂ ≤ 400" in told
    assert "N₂ ≤ 400" in said
    assert "The certificate holds with probability 0.9 (" in said
    assert "That is with all of N₂ = 400; fewer samples were counted" in said
    assert "Sampling was ended: 600 of 2,400 samples counted, 75% left out" in said
    assert "bounds joined over all outputs by joint_count" in said
    assert not any(word in said for word in ("saved", "Stopped early"))
    whole = run()
    assert "N₂ = 400" in promise(run_info(whole))
    assert "That is with all" not in reach_of_result(whole)


@pytest.mark.usefixtures("eager")
def test_a_look_that_fails_costs_no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(live, "_found", lambda *_: 1 / 0)
    xr.testing.assert_equal(run(progress=told), run())
    assert told.said[2:] == ["No certificate is shown while sampling goes on: ZeroDivisionError: division by zero"]


def test_looking_takes_a_fiftieth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a look takes: the clock here runs through looks of growing cost between rounds of a second."""
    now, spent = [0.0], [0.0]
    monkeypatch.setattr(live, "_found", lambda *_: None)

    def certify_slowly(item: int) -> Any:
        del item
        spent[0] += 0.3 + now[0] * 1e-4
        now[0] += 0.3 + now[0] * 1e-4

    looked = list[int]()
    told: Any = SimpleNamespace(certified_so_far=lambda _: looked.append(round(now[0])), message=print)
    look = live.Live(certify_slowly, told, "joint_count", clock=lambda: now[0])
    for n in range(1, 4000):
        now[0] += 1.0
        look(0, n)
        assert now[0] < 30 or spent[0] <= 0.021 * now[0] + 0.5
    assert len(looked) > 10
    assert looked[0] <= 4
    assert (np.diff(looked)[3:] > 10).all()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("repetitions", [8, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_ending_when_the_count_is_high_keeps_the_level(repetitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No output has a majority: whatever is certified is wrong, and sampling ends as soon as anything is."""
    monkeypatch.setattr(live, "_MORE", 2.0)
    missed = 0
    model = threshold_model(np.zeros((2, 2)))
    for seed in range(repetitions):
        until = Until()
        told = Told(until, pleased=lambda found: found.certified[0] > 0)
        result = certify(
            ArrayTask(model, np.zeros((1, 1, 2, 2), np.float32)),
            Smoothing(GridLayout((1, 2), 0.3, 0.6), SamplingPlan(5, 160, seed, 5)),
            Settings(0.3, [0.0, 1e-6], simultaneous=JointCount(), bounds=["naive"]),
            run=Run(
                progress=told, until=until, executor="serial", options=SamplingOptions(batch_size=50, check_model=False)
            ),
        )
        certified = result["certified"].sel(target="ratio", bound="naive").values.max()
        # After the last round of all nobody looks: the whole run may certify what was not seen before.
        assert certified > 0 or not (told.found and told.found[-1].certified[0] > 0)
        missed += certified > 0
    assert_level_kept(missed, repetitions, 0.3)


SLOW = (
    FUNCTIONS
    + """
import time

def slowly(batch):
    time.sleep(0.01)
    return bright(batch)
"""
)
TWICE = (
    FUNCTIONS
    + """
import signal

calls = 0

def slowly(batch):
    global calls
    calls += 1
    if calls == 500:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
    return bright(batch)
"""
)


def _command(folder: Path) -> list[str]:
    write_inputs(folder, np.random.default_rng(0).random((2, 1, 6, 8), dtype=np.float32))
    (folder / "slow_functions.py").write_text(SLOW)
    many = SECTIONS["certificate"] + 'many_outputs = { rule = "joint_count" }\n'
    sampling = SECTIONS["sampling"].replace("300", "100000").replace("chunk_size = 100", "chunk_size = 50")
    model = SECTIONS["model"].replace("tiny_functions:bright", "slow_functions:slowly")
    (folder / "run.toml").write_text(configuration(model=model, certificate=many, sampling=sampling))
    call = "from localsmooth.cli.app import app; app()"
    return [
        sys.executable,
        "-c",
        call,
        "certify",
        str(folder / "run.toml"),
        "--out",
        str(folder / "run"),
        "--log",
        "json",
    ]


def _interrupted(command: list[str], after: str) -> tuple[int, list[dict[str, Any]]]:
    """Start it, interrupt it some chunks after the first event of a kind, and wait for its end."""
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as child:
        assert child.stderr is not None
        events, waiting = list[dict[str, Any]](), True
        try:
            for line in child.stderr:
                events.append(json.loads(line))
                if events[-1]["event"] == after and waiting:
                    child.send_signal(signal.SIGINT)
                    waiting = False
            return child.wait(timeout=120), events
        finally:
            child.kill()


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_an_interrupt_of_the_command_ends_sampling(tmp_path: Path) -> None:
    command = _command(tmp_path)
    here = ["--until-interrupted", "--executor", "threads", "--workers", "2"]
    status, events = _interrupted([*command, *here], "progress")
    assert status == 0, events[-1]
    assert events[-1]["event"] == "result"
    info = run_info(load(tmp_path / "run" / "result.nc"))
    assert info.saving is not None
    assert 0 < info.saving.total < 1
    assert len(info.left_out) == 1
    xr.testing.assert_equal(recertify(tmp_path / "run"), load(tmp_path / "run" / "result.nc"))
    drawn = info.saving.counted
    status, events = _interrupted([*command, "--time", "2s"], "never")
    assert status == 0, events[-1]
    again = run_info(load(tmp_path / "run" / "result.nc")).saving
    assert again is not None
    assert again.counted > drawn


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_a_second_interrupt_gives_up(tmp_path: Path) -> None:
    command = _command(tmp_path)
    # Signals from outside that come too close to each other are one: the model sends them from within.
    (tmp_path / "slow_functions.py").write_text(TWICE)
    status, events = _interrupted([*command, "--until-interrupted"], "never")
    assert status not in (0, None)
    assert "interrupted" in [event["event"] for event in events]
    assert not (tmp_path / "run" / "result.nc").exists()


def test_votes_of_one_state_never_meet_numbers_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finishes an ended run while its votes are read: 290 votes of 400 are not 290 of 300."""
    ended(tmp_path, after=7 * GROUPS + 1, images=1)
    before, waiting = DirectoryStore.get_array, [True]

    def get_array(store: DirectoryStore, name: str) -> np.ndarray:
        if name == "item0-votes" and waiting:
            waiting.clear()
            run(tmp_path, images=1)
        made = before(store, name)
        return np.minimum(made, 300) if name == "item0-votes" else made

    monkeypatch.setattr(DirectoryStore, "get_array", get_array)
    with pytest.raises(RunRecordError, match="while it was read"):
        recertify(tmp_path)


def test_items_get_no_more_samples_once_their_counts_have_settled(tmp_path: Path) -> None:
    """Item by item: what is left of each is not drawn, and its rounds so far are what is certified."""
    settings, told = replace(JOINT, budgets=(0.0, 0.2)), Told()
    result = run(tmp_path, 500, settings, until=Until(settled=0.02), progress=told)
    looks = [number * CHUNK for number in (1, 2, 3, 4, 5, 7, 9)]
    shorter = {n: run(n_bound=n, settings=settings) for n in looks}
    counted = list[int]()
    for item in range(2):
        means = {n: float(made["certified"].isel(item=item, target=0, bound=-1).mean()) for n, made in shorter.items()}
        before = {n: means[max(m for m in looks if 2 * m <= n)] for n in looks[1:]}
        counted.append(next(n for n in before if means[n] - before[n] < 0.02 * means[n]))
        np.testing.assert_array_equal(result["certified"][item], shorter[counted[-1]]["certified"][item])
        assert f"item {item}: settled at {counted[-1]} samples of each output group" in told.said
    assert counted == [200, 350]
    saving = run_info(result).saving
    assert saving is not None
    assert saving.counted == tuple(GROUPS * n for n in counted)
    with DirectoryStore(tmp_path, read_only=True) as store:
        assert sum(kept.n for kept in store.finished().values()) == GROUPS * (sum(counted) + 2 * 20)
    xr.testing.assert_equal(run(tmp_path, 500, settings), run(n_bound=500, settings=settings))  # it may go on


def test_items_that_certify_nothing_yet_and_counts_that_rise_get_all_samples() -> None:
    hopeless = run(thresholds=0.0, until=Until(settled=0.9))
    assert run_info(hopeless).saving is None
    rising = run(n_bound=150, until=Until(settled=1e-9), settings=replace(JOINT, budgets=(0.0, 0.3, 0.5)))
    assert run_info(rising).saving is None


@pytest.mark.parametrize("executor", ["serial", ThreadExecutor(2)])
def test_counts_settle_where_groups_stop_early(executor: Any) -> None:
    """Chunks are drawn ahead of a decision there; of items that have settled none is."""
    easy = replace(JOINT, budgets=(0.0, 0.2))
    result = run(None, 4000, easy, stop=StopWhenDecided(target=0.999), until=Until(settled=0.05), executor=executor)
    saving = run_info(result).saving
    assert saving is not None
    assert max(saving.counted) < 1500 * GROUPS
    assert (result["certified"].values > 0).all()


def test_shares_are_read(tmp_path: Path) -> None:
    made = Until.parse("10s", settled="2.5 %")
    assert made is not None
    assert (made.seconds, made.settled) == (10, 0.025)
    made = Until.parse(None, settled="2%")
    assert made is not None
    assert made.settled == 0.02
    for wrong in ("", "2", "0%", "100%", "-1%", "two%"):
        with pytest.raises(InvalidInputError, match="until-settled"):
            Until.parse(None, settled=wrong)
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(InvalidInputError, match="settled"):
            Until(settled=wrong)
    with pytest.raises(InvalidInputError, match="number of samples that is fixed"):
        run(tmp_path, settings=replace(JOINT, simultaneous=Bonferroni()), until=Until(settled=0.1))
