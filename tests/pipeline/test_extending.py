"""A run that goes on after one looked at it: the same tallies as at once, and only certificates that still hold."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from localsmooth.bounds import Bonferroni, CandidateWeights, JointCount, KFamilywise
from localsmooth.certificates import GaussianScores
from localsmooth.cli.app import app
from localsmooth.config import ConfigurationError
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.pipeline import open_tallies
from localsmooth.results import load, run_info
from localsmooth.runs import DirectoryStore, OtherRunError, RunIdentity, SamplingPlan, Stage, StoreError, join
from localsmooth.runs.files import LocalFiles
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import RunRecordError, StopWhenDecided, load_record
from localsmooth.tasks.arrays import Settings
from localsmooth.testing.chance import assert_level_kept
from tests.flat import certify, recertify
from tests.pipeline.models import threshold_model
from tests.tiny_runs import SECTIONS, configuration, write_inputs

SHAPE = (4, 6)
JOINT: dict[str, Any] = {"alpha": 0.1, "budgets": [0.0, 0.2], "simultaneous": JointCount()}


def run(out: Path, n_bound: int, n_candidate: int = 20, stop: Any = None, thresholds: float = -1.0, **changes: Any):
    settings = Settings(**(JOINT | {k: changes.pop(k) for k in list(changes) if k in (*JOINT, "certificates")}))
    return certify(
        threshold_model(np.full(SHAPE, thresholds)),
        np.zeros((2, 1, *SHAPE), np.float32),
        settings=settings,
        layout=GridLayout((2, 3), 0.3, 0.6),
        plan=SamplingPlan(n_candidate=n_candidate, n_bound=n_bound, seed=1, chunk_size=50, stop=stop),
        options=SamplingOptions(batch_size=50, check_model=False),
        progress=NoProgress(),
        out=out,
        **changes,
    )


def tallies(out: Path) -> list[np.ndarray]:
    with DirectoryStore(out, read_only=True) as store:
        made = [store.merged(item, group, Stage.BOUND) for item in range(2) for group in range(6)]
        return [np.array([each.n for each in made]), *(each.counts[name] for each in made for name in each.counts)]


def assert_same(one: Path, other: Path) -> None:
    for mine, theirs in zip(tallies(one), tallies(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    mine, theirs = load(one / "result.nc"), load(other / "result.nc")
    for name in ("certified", "eta", "lower_probability"):
        np.testing.assert_array_equal(mine[name], theirs[name])


def interrupt(patched: pytest.MonkeyPatch, after: int) -> None:
    """Let the process be ended when it writes a chunk too many."""
    write, written = LocalFiles.write, list[str]()

    def failing(self: LocalFiles, name: str, data: bytes) -> None:
        written.extend([name] if name.startswith("chunks") else [])
        if len(written) > after:
            raise KeyboardInterrupt
        write(self, name, data)

    patched.setattr(LocalFiles, "write", failing)


@pytest.mark.parametrize("steps", [(100, 230), (120, 230), (40, 45, 120, 230)])  # whole and partial chunks
def test_tallies_are_those_of_a_run_made_at_once(tmp_path: Path, steps: tuple[int, ...]) -> None:
    run(tmp_path / "at-once", 230, thresholds=-0.3)
    for number in steps:
        result = run(tmp_path / "extended", number, thresholds=-0.3)
    assert_same(tmp_path / "extended", tmp_path / "at-once")
    record = load_record(tmp_path / "extended")
    assert (record.extended, record.n_bound) == (steps[0], 230)
    assert load_record(tmp_path / "at-once").extended is None
    assert any(
        f"began with N₂ = {steps[0]} and was extended to 230" in line and "joint_count holds" in line
        for line in run_info(result).assumptions
    )
    again = recertify(tmp_path / "extended", settings=Settings(**JOINT))
    np.testing.assert_array_equal(again["certified"], result["certified"])


def test_early_stopping_goes_on(tmp_path: Path) -> None:
    stop = StopWhenDecided(target=0.97)
    for out, steps in (("at-once", (600,)), ("extended", (300, 600))):
        for number in steps:
            result = run(tmp_path / out, number, stop=stop, simultaneous=Bonferroni(), thresholds=-0.5)
    assert_same(tmp_path / "extended", tmp_path / "at-once")
    assert any("confidence sequence of early stopping holds" in line for line in run_info(result).assumptions)
    run(tmp_path / "partial", 320, stop=stop, simultaneous=Bonferroni(), thresholds=-0.5)
    with pytest.raises(OtherRunError, match="n_bound"):  # the rule heard the votes of a partial chunk
        run(tmp_path / "partial", 600, stop=stop, simultaneous=Bonferroni(), thresholds=-0.5)


def test_shares_follow_the_number_that_the_run_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looked may have asked for more samples because of the votes: no level may depend on how many."""
    planned, stop = list[int](), StopWhenDecided(target=0.97)
    made = CandidateWeights.from_candidates
    monkeypatch.setattr(CandidateWeights, "from_candidates", lambda *args: planned.append(args[2]) or made(*args))
    for number in (300, 600):
        run(tmp_path, number, stop=stop, simultaneous=Bonferroni(), thresholds=-0.5)
        recertify(tmp_path, settings=Settings(0.1, [0.0, 0.2], simultaneous=CandidateWeights()))
    assert load_record(tmp_path).n_bound == 600
    assert set(planned) == {300}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"simultaneous": Bonferroni()}, "bonferroni needs a number of samples"),
        ({"simultaneous": KFamilywise(2)}, "k_familywise needs a number of samples"),
    ],
)
def test_rules_that_do_not_hold_are_refused_before_and_after(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    run(tmp_path, 200, simultaneous=Bonferroni())  # looked at by a rule that holds for this number of samples
    before = tallies(tmp_path)
    with pytest.raises(InvalidInputError, match=problem) as refused:
        run(tmp_path, 400, **changes)
    assert "JointCount" in str(refused.value)
    assert "another seed" in str(refused.value)  # the same one would draw the same samples, without a trace
    for mine, theirs in zip(tallies(tmp_path), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    recertify(tmp_path, settings=Settings(**(JOINT | changes)))  # nothing has happened
    run(tmp_path, 400)
    for certified_again in (run, lambda out, _, **made: recertify(out, settings=Settings(**(JOINT | made)))):
        with pytest.raises(InvalidInputError, match=problem):
            certified_again(tmp_path, 400, **changes)


def test_scores_are_refused(tmp_path: Path) -> None:
    run(tmp_path, 200)
    run(tmp_path, 300)
    with pytest.raises(InvalidInputError, match="bounds on scores"):
        recertify(tmp_path, settings=Settings(0.1, [0.0], certificates=[GaussianScores()]))


def test_only_the_number_of_samples_may_grow(tmp_path: Path) -> None:
    run(tmp_path, 100)
    with pytest.raises(OtherRunError, match="n_candidate"):
        run(tmp_path, 200, n_candidate=30)
    run(tmp_path, 200)
    with pytest.raises(OtherRunError, match="n_bound"):
        run(tmp_path, 100)


@pytest.mark.parametrize(
    "moment", ["before the manifest", "after the manifest", "with some chunks", "before the record"]
)
def test_a_crash_between_two_plans_leaves_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    out = tmp_path / "crashed"
    run(tmp_path / "at-once", 230)
    run(out, 120)

    class CrashError(Exception):
        pass

    written = {"count": 0}

    def crash(name: str) -> bool:
        if moment == "before the manifest":
            return name == "manifest.json"
        if moment == "after the manifest":
            return name.startswith("chunks")
        written["count"] += name.startswith("chunks")
        return written["count"] == 5 if moment == "with some chunks" else name.startswith("arrays/item")

    with monkeypatch.context() as patched:
        write = LocalFiles.write

        def failing(self: LocalFiles, name: str, data: bytes) -> None:
            if crash(name):
                raise CrashError
            write(self, name, data)

        patched.setattr(LocalFiles, "write", failing)
        with pytest.raises(CrashError):
            run(out, 230)
    if moment == "before the manifest":
        recertify(out, settings=Settings(**JOINT))
        run(out, 120)
    else:
        goes_on = r"an extension to 230 samples was interrupted.*`localsmooth extend .*crashed --samples 230` goes on"
        with pytest.raises(RunRecordError, match=goes_on):
            recertify(out, settings=Settings(**JOINT))
        for fewer in (120, 150):
            with pytest.raises(OtherRunError, match=goes_on):
                run(out, fewer)
        with pytest.raises(OtherRunError, match=r"differing in plan\.n_bound, plan\.n_candidate"):
            run(out, 150, n_candidate=30)
        with pytest.raises(InvalidInputError, match="bonferroni"):
            run(out, 230, simultaneous=Bonferroni())
    run(out, 230)
    assert_same(out, tmp_path / "at-once")


def test_the_mark_cannot_be_lost(tmp_path: Path) -> None:
    run(tmp_path / "extended", 100)
    run(tmp_path / "extended", 200)
    run(tmp_path / "at-once", 200)
    other = DirectoryStore(tmp_path / "extended", read_only=True)
    with DirectoryStore(tmp_path / "at-once") as into, pytest.raises(StoreError, match="was extended"):
        join(into, [other])
    path = tmp_path / "extended" / "manifest.json"
    manifest = json.loads(path.read_text())
    for wrong in ({"first_n_bound": None}, {"first_n_bound": 300}, {"version": 2}):
        path.write_text(json.dumps(manifest | wrong))
        with pytest.raises(StoreError, match="damaged"):
            DirectoryStore(tmp_path / "extended", read_only=True)
    del manifest["first_n_bound"]
    path.write_text(json.dumps(manifest | {"version": 2}))
    with pytest.raises(StoreError, match="another configuration"):
        run(tmp_path / "extended", 200, simultaneous=Bonferroni())


def test_chunks_kept_elsewhere(tmp_path: Path) -> None:
    for number in (120, 230):
        run(tmp_path / "run", number, store=str(tmp_path / "chunks"))
    run(tmp_path / "at-once", 230)
    np.testing.assert_array_equal(
        load(tmp_path / "run" / "result.nc")["certified"], load(tmp_path / "at-once" / "result.nc")["certified"]
    )


def test_an_extension_of_chunks_kept_elsewhere_that_was_interrupted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run", 120, store=str(tmp_path / "chunks"))
    with monkeypatch.context() as patched:
        interrupt(patched, after=3)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run", 230)
    goes_on = r"an extension to 230 samples was interrupted.*`localsmooth extend .*run --samples 230` goes on"
    with pytest.raises(StoreError, match=goes_on):
        open_tallies(tmp_path / "run", DirectoryStore(tmp_path / "run", read_only=True))
    with pytest.raises(OtherRunError, match=goes_on):
        run(tmp_path / "run", 150)
    run(tmp_path / "run", 230)
    open_tallies(tmp_path / "run", DirectoryStore(tmp_path / "run", read_only=True))


def test_parts_of_which_one_was_extended_are_not_joined_and_told_apart_by_their_steps(tmp_path: Path) -> None:
    for name, steps in (("one", (100, 200)), ("other", (100,)), ("further", (100, 300))):
        for number in steps:
            run(tmp_path / name, number)
    for into, giving in (("one", "other"), ("other", "one"), ("one", "further")):
        with DirectoryStore(tmp_path / into) as store, pytest.raises(StoreError, match="Extend both in the same steps"):
            join(store, [DirectoryStore(tmp_path / giving, read_only=True)])
    run(tmp_path / "alone", 300)
    with DirectoryStore(tmp_path / "alone") as store, pytest.raises(OtherRunError, match="n_bound was 300 and is 100"):
        join(store, [DirectoryStore(tmp_path / "other", read_only=True)])


def test_growing_is_about_one_number() -> None:
    def made(n: Any, **more: Any) -> RunIdentity:
        return RunIdentity({"plan": {"n_bound": n, "chunk_size": 10}, **more})

    grown = made(10).grown_to(made(20))
    assert grown is not None
    assert (grown.first, grown.seal) == (10, made(10).sha256)
    further = grown.grown_to(made(35))
    assert further is not None
    assert (further.first, further.seal) == (10, made(10).sha256)
    for wanted in (made(10), made(5), made(20, noise=1), RunIdentity({})):
        assert made(10).grown_to(wanted) is None
    assert RunIdentity({}).grown_to(made(10)) is None


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_inputs(tmp_path, np.random.default_rng(0).random((2, 1, 6, 8), dtype=np.float32))
    monkeypatch.syspath_prepend(str(tmp_path))
    many = SECTIONS["certificate"] + 'many_outputs = { rule = "joint_count" }'
    (tmp_path / "run.toml").write_text(configuration(certificate=many))

    def invoke(*arguments: object):
        return CliRunner().invoke(app, [str(each) for each in arguments])

    assert invoke("certify", tmp_path / "run.toml", "--out", tmp_path / "run").exit_code == 0
    monkeypatch.chdir("/")
    done = invoke("extend", tmp_path / "run", "--samples", 450)
    assert done.exit_code == 0, done.output
    record = load_record(tmp_path / "run")
    assert (record.extended, record.n_bound, record.configuration["sampling"]["n_bound"]) == (300, 450, 450)
    assert json.loads((tmp_path / "run" / "configuration.json").read_text()) == record.configuration
    fewer = invoke("extend", tmp_path / "run", "--samples", 200)
    assert isinstance(fewer.exception, InvalidInputError)
    run(tmp_path / "python", 100)
    unknown = invoke("extend", tmp_path / "python", "--samples", 200)
    assert "Call certify in Python" in str(unknown.exception)


def test_runs_that_stop_early_are_extended_for_the_budgets_that_were_found_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More samples reach farther: other budgets would end sampling elsewhere, and be another run."""
    write_inputs(tmp_path, np.random.default_rng(0).random((2, 1, 6, 8), dtype=np.float32))
    monkeypatch.syspath_prepend(str(tmp_path))
    sections = {
        "sampling": SECTIONS["sampling"] + "stop_early = true",
        "certificate": 'alpha = 0.05\nbudgets = "auto"\n',
    }
    (tmp_path / "run.toml").write_text(configuration(**sections))
    CliRunner().invoke(app, ["certify", str(tmp_path / "run.toml"), "--out", str(tmp_path / "run")])
    before = load_record(tmp_path / "run")
    done = CliRunner().invoke(app, ["extend", str(tmp_path / "run"), "--samples", "450"])
    assert done.exit_code == 0, done.exception
    after = load_record(tmp_path / "run")
    assert (after.extended, after.n_bound) == (300, 450)
    assert after.settings["budgets"] == before.settings["budgets"]


def test_every_command_says_how_an_interrupted_extension_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_inputs(tmp_path, np.random.default_rng(0).random((1, 1, 6, 8), dtype=np.float32))
    monkeypatch.syspath_prepend(str(tmp_path))
    many = SECTIONS["certificate"] + 'many_outputs = { rule = "joint_count" }'
    (tmp_path / "run.toml").write_text(configuration(certificate=many))
    (tmp_path / "other.toml").write_text(f"[model]\n{SECTIONS['model']}")
    out, asked = tmp_path / "run", tmp_path / "run" / "configuration.json"

    def invoke(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(each) for each in arguments])

    assert invoke("certify", tmp_path / "run.toml", "--out", out).exit_code == 0
    assert "interrupted" not in invoke("runs", tmp_path).output + invoke("report", out).output
    before = asked.read_bytes()
    with monkeypatch.context() as patched:
        interrupt(patched, after=1)
        assert invoke("extend", out, "--samples", 1000).exit_code == 130
    asked.write_bytes(before)  # a process that is killed does not come to write the larger number
    goes_on = f"an extension to 1,000 samples was interrupted, or still runs: `localsmooth extend {out} --samples 1000`"
    for arguments in (
        ("verify", out),
        ("export", out, tmp_path / "certificate.json"),
        ("recertify", out, "--alpha", 0.01),
        ("overlap", out),
        ("transfer", out, "--model", tmp_path / "other.toml", "--samples", 100, "--out", tmp_path / "transferred"),
        ("extend", out, "--samples", 200),
        ("extend", out, "--samples", 300),
        ("extend", out, "--samples", 800),
        ("certify", tmp_path / "run.toml", "--out", out),
    ):
        told = invoke(*arguments)
        assert told.exit_code == 1, arguments
        assert goes_on in f"{told.output} {told.exception}", arguments
        assert "configuration" not in f"{told.output} {told.exception}".split("FAILED")[-1], arguments
    for arguments in (("report", out), ("runs", tmp_path)):
        told = invoke(*arguments)
        assert told.exit_code == 0
        assert goes_on in told.output, arguments
    assert invoke("extend", out, "--samples", 1000).exit_code == 0
    assert json.loads(asked.read_text())["sampling"]["n_bound"] == 1000
    assert invoke("verify", out).exit_code == 0
    assert "interrupted" not in invoke("runs", tmp_path).output


def test_more_samples_before_anything_was_certified_are_named_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of a directory says a smaller number then, and the tallies know better."""

    def asked(number: int) -> None:
        run(tmp_path, number, configuration={"sampling": {"n_bound": number}})

    for number in (120, 230):
        with monkeypatch.context() as patched:
            interrupt(patched, after=3)
            with pytest.raises(KeyboardInterrupt):
                asked(number)
    (tmp_path / "configuration.json").write_text(json.dumps({"sampling": {"n_bound": 120}}))
    for number in (120, 150):
        with pytest.raises(OtherRunError, match=rf"more samples.*n_bound was 230 and is {number}.*set n_bound = 230"):
            asked(number)
    asked(230)


def test_a_run_may_be_extended_further_than_an_interrupted_extension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "at-once", 300)
    run(tmp_path / "extended", 120)
    with monkeypatch.context() as patched:
        interrupt(patched, after=3)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "extended", 230)
    run(tmp_path / "extended", 300)
    assert_same(tmp_path / "extended", tmp_path / "at-once")


def test_modules_beside_the_file_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And data that the file names, wherever the command is run: the file may have been named from its own folder."""
    write_inputs(tmp_path, np.random.default_rng(0).random((1, 1, 6, 8), dtype=np.float32))
    (tmp_path / "tiny_functions.py").rename(tmp_path / "functions_beside.py")
    many = SECTIONS["certificate"] + 'many_outputs = { rule = "joint_count" }'
    (tmp_path / "run.toml").write_text(configuration(certificate=many).replace("tiny_functions", "functions_beside"))

    def invoke(*arguments: object) -> Any:
        with pytest.MonkeyPatch.context() as fresh:  # every command is a program of its own
            fresh.setattr(sys, "path", list(sys.path))
            try:
                return CliRunner().invoke(app, [str(each) for each in arguments])
            finally:
                sys.modules.pop("functions_beside", None)

    monkeypatch.chdir(tmp_path)
    assert invoke("certify", "run.toml", "--out", "run").exit_code == 0
    monkeypatch.chdir("/")
    lost = invoke("extend", tmp_path / "run", "--samples", 400)
    assert isinstance(lost.exception, ConfigurationError)
    assert "--config" in str(lost.exception)
    assert load_record(tmp_path / "run").n_bound == 300
    found = invoke("extend", tmp_path / "run", "--samples", 400, "--config", tmp_path / "run.toml")
    assert found.exit_code == 0, found.output
    assert load_record(tmp_path / "run").n_bound == 400


def _miss_rate(rule: Any, repetitions: int) -> int:
    """Go on, by looks ever farther apart, until some count of the outputs above some probability is too large."""
    alpha, looks, truth = 0.1, np.unique(np.geomspace(5, 4000, 30).astype(int)), np.array([0.5] * 6 + [0.9] * 2)
    rng, missed = np.random.default_rng(8), 0
    for _ in range(repetitions):
        votes = rng.binomial(np.diff(looks, prepend=0)[:, None], truth).cumsum(axis=0)
        for seen, n in zip(votes, looks.tolist(), strict=True):
            if isinstance(rule, JointCount):
                bounds = rule.count_bounds(seen, n, alpha, np.zeros(truth.size, np.int64))
            else:
                bounds = rule.lower_bounds(seen, n, alpha)
            asked = np.unique(bounds.lower[bounds.lower > 0])
            if any((bounds.lower >= x).sum() - bounds.discount > (truth >= x).sum() for x in asked):
                missed += 1
                break
    return missed


@pytest.mark.parametrize("repetitions", [200, pytest.param(2000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_extending_until_it_looks_good_keeps_the_level(repetitions: int) -> None:
    assert_level_kept(_miss_rate(JointCount(), repetitions), repetitions, 0.1)
    # Bonferroni's rule, looked at again and again, does not (it misses in 57 % of all cases): so many misses come about
    # by chance with a probability below 1e-6, and fewer than that with one below 1e-20.
    fixed = _miss_rate(Bonferroni(), 200)
    assert stats.binom.sf(fixed - 1, 200, 0.1) < 1e-6
