"""What a run says where nobody was named: nothing of what is over at once, a line now and then of the rest."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from rich.console import Console

import localsmooth as ls
from localsmooth.execution import NoProgress, RichProgress, SamplingProgress, ScriptProgress, default_progress, scripts
from localsmooth.testing.exact import ExactModel, make_item

PLAN = ls.SamplingPlan(n_candidate=10, n_bound=100, seed=1, chunk_size=10)
ATTEMPTS = 1000


def certify(
    out: Path | None,
    watch: Callable[[torch.Tensor], None] | None = None,
    progress: SamplingProgress | None = None,
    store: str | None = None,
) -> None:
    task = ls.ArrayTask(ExactModel(watch=watch), [make_item().numpy()])
    smoothing = ls.Smoothing(ls.GridLayout((2, 3), 0.3, 0.6), PLAN)
    options = ls.SamplingOptions(batch_size=10, check_model=False)
    run = ls.Run(out, progress=progress, options=options, executor="serial", store=store)
    ls.certify(task, smoothing, ls.Settings(0.05, [0.0, 0.2]), run=run)


def interrupting(calls: int) -> Callable[[torch.Tensor], None]:
    left = iter(range(calls))

    def watch(_: torch.Tensor) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return watch


def script(after: float) -> tuple[io.StringIO, ScriptProgress]:
    stream = io.StringIO()
    return stream, ScriptProgress(Console(file=stream, width=300), after=after)


def wait_for(text: str, stream: io.StringIO) -> None:
    for _ in range(ATTEMPTS):
        if text in stream.getvalue():
            return
        time.sleep(0.01)
    raise AssertionError(stream.getvalue())


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The default tells everything after a moment, into this stream."""
    stream, told = script(0.0)
    monkeypatch.setattr(scripts, "default_progress", lambda: told)
    return stream


def test_off_a_terminal_the_default_prints_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    assert type(default_progress()) is ScriptProgress
    monkeypatch.setattr(scripts, "terminal", lambda: Console(file=io.StringIO(), force_terminal=True))
    assert type(default_progress()) is RichProgress


def test_what_takes_long_is_told_without_waiting_for_an_event() -> None:
    stream, told = script(0.1)
    with told:
        told.start(1000, 400)
        told.message("something else")
        assert not stream.getvalue()
        wait_for("something else", stream)
        first, second = stream.getvalue().splitlines()
        assert (first, second) == ("Sampling: 1,000 samples, 400 of them stored earlier", "something else")
        told.message("at once")
        assert stream.getvalue().endswith("at once\n")


def test_what_is_over_early_is_told_neither_then_nor_later() -> None:
    stream, told = script(0.05)
    with told:
        told.start(1000, 400)
    time.sleep(0.2)
    assert not stream.getvalue()
    told.certifying(0, 2)  # the clock goes on: it is one run
    wait_for("Certifying 2 items", stream)
    assert stream.getvalue().startswith("Sampling: 1,000 samples")


def test_a_short_run_in_a_script_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    certify(None)
    assert capfd.readouterr() == ("", "")


def test_a_long_run_in_a_script_says_how_far_it_is_and_goes_on(tmp_path: Path, patient: io.StringIO) -> None:
    with pytest.raises(KeyboardInterrupt):
        certify(tmp_path, interrupting(5 * 12))
    certify(tmp_path, lambda _: wait_for("Sampling: 660 samples, ", patient))
    earlier = [line for line in patient.getvalue().splitlines() if line.endswith("of them stored earlier")]
    assert earlier[-1] not in ("Sampling: 660 samples, 0 of them stored earlier", earlier[0])


def test_no_progress_says_nothing(tmp_path: Path, patient: io.StringIO, capfd: pytest.CaptureFixture[str]) -> None:
    certify(tmp_path, lambda _: time.sleep(0.01), NoProgress())
    certify(tmp_path, progress=ls.NoProgress())
    assert not patient.getvalue()
    assert capfd.readouterr() == ("", "")


KEPT = "Interrupted. Finished chunks are kept: the same call goes on where this one stopped.\n"


def test_an_interrupt_says_that_the_same_call_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for where in ({"out": tmp_path / "run"}, {"out": None, "store": str(tmp_path / "elsewhere")}):
        with pytest.raises(KeyboardInterrupt):
            certify(watch=interrupting(5), **where)  # type: ignore[arg-type]
        assert capfd.readouterr() == ("", KEPT)


@pytest.mark.parametrize("kept", [False, True])
def test_nothing_is_said_to_be_kept_where_nothing_is_or_the_user_tells_it_otherwise(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kept: bool
) -> None:
    with pytest.raises(KeyboardInterrupt):
        certify(tmp_path if kept else None, interrupting(5), NoProgress() if kept else None)
    assert capfd.readouterr() == ("", "")
