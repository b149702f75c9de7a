"""What is told about a run, and that it is true."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from localsmooth.execution import (
    JsonProgress,
    NoProgress,
    RichProgress,
    SamplingSummary,
    SerialExecutor,
    tell_certifying,
)
from localsmooth.execution.usage import EnergyMeter, UsageMeter
from localsmooth.layout import windowed
from localsmooth.memory import peak_memory
from localsmooth.runs import MemoryStore
from tests.sampling.exact import PLAN, ExactModel, make_layout, run

TOTAL = 4 * (PLAN.n_candidate + PLAN.n_bound)


def events(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_events_tell_the_whole_run() -> None:
    stream = io.StringIO()
    run(progress=JsonProgress(stream, every=0.0))
    told = events(stream)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", str(event["time"])) for event in told)
    kinds = [event["event"] for event in told]
    assert kinds[0] == "message"
    assert kinds.index("start") < kinds.index("progress") < kinds.index("summary") == len(kinds) - 1
    assert told[kinds.index("start")]["total"] == TOTAL
    done = [event["done"] for event in told if event["event"] == "progress"]
    assert done == sorted(done)  # type: ignore[type-var]
    assert done[-1] == TOTAL
    summary = told[-1]
    assert summary["samples"] == TOTAL
    assert summary["images_per_second"] == pytest.approx(TOTAL / summary["seconds"])  # type: ignore[operator]
    assert len(summary["devices"]) == 1  # type: ignore[arg-type]
    assert summary["peak_memory"] > 1 << 24  # type: ignore[operator]
    assert summary["peak_device_memory"] is None


def test_json_events_are_no_more_frequent_than_asked_for() -> None:
    stream, now = io.StringIO(), iter(np.arange(0.0, 1e6, 0.25))
    progress = JsonProgress(stream, every=1.0, clock=lambda: float(next(now)))
    progress.start(1000, 900)
    for _ in range(50):
        progress.advance(2)
    told = [event for event in events(stream) if event["event"] == "progress"]
    assert len(told) == 50 // 4 + 1
    assert told[-1]["done"] == 1000
    assert told[0]["samples_per_second"] == pytest.approx(8.0)


def test_an_error_is_told_as_such() -> None:
    stream, calls = io.StringIO(), 0

    def interrupt(_: torch.Tensor) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(ExactModel(watch=interrupt), progress=JsonProgress(stream), executor=SerialExecutor())
    assert events(stream)[-1]["event"] == "stopped"
    assert events(stream)[-1]["error"] == "KeyboardInterrupt"


def test_summary_counts_only_what_was_drawn_now() -> None:
    store, seen = MemoryStore(), []

    class Told(JsonProgress):
        def finish(self, summary: SamplingSummary) -> None:
            seen.append(summary)

    calls = 0

    def interrupt(_: torch.Tensor) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(ExactModel(watch=interrupt), store=store, executor=SerialExecutor())
    before = sum(kept.n for kept in store.finished().values())
    run(store=store, progress=Told(io.StringIO()))
    assert 0 < before < TOTAL
    assert [summary.samples for summary in seen] == [TOTAL - before]
    run(store=store, progress=Told(io.StringIO()))
    assert len(seen) == 1, "nothing was drawn"


def test_summary_is_one_readable_line() -> None:
    console = Console(file=io.StringIO(), width=400)
    RichProgress(console).finish(SamplingSummary(12_000, 60.0, ("made-up GPU (cuda)",), 3 << 30, 5 << 20, 123.4))
    assert console.file.getvalue() == (  # type: ignore[attr-defined]
        "12,000 samples in 60.0 s (200.0 samples/s), on made-up GPU (cuda), peak memory 3,072 MiB a process, "
        "5 MiB a GPU, 123 J of this machine's processors\n"
    )


def test_energy_counters_are_added_up_and_may_wrap_around(tmp_path: Path) -> None:
    for package, start in ((0, 1_000_000), (1, 9_000_000)):
        folder = tmp_path / f"intel-rapl:{package}"
        folder.mkdir()
        (folder / "energy_uj").write_text(f"{start}\n")
        (folder / "max_energy_range_uj").write_text("10000000\n")
    part = tmp_path / "intel-rapl:0:0"  # counted in its package already
    part.mkdir()
    (part / "energy_uj").write_text("0\n")
    meter = EnergyMeter(tmp_path)
    assert meter.joules() == 0.0
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("3500000\n")
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("500000\n")
    (part / "energy_uj").write_text("2000000\n")
    assert meter.joules() == pytest.approx(2.5 + 1.5)
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    assert meter.joules() is None


def test_energy_is_not_known_without_counters_or_elsewhere(tmp_path: Path) -> None:
    assert EnergyMeter(tmp_path).joules() is None
    assert UsageMeter(local=False).summary(3).energy is None


def test_peak_memory_grows_with_what_is_used() -> None:
    before = peak_memory()
    assert before is not None
    block = np.ones(1 << 26, dtype=np.uint8)
    after = peak_memory()
    assert after is not None
    assert before <= after
    assert after > block.nbytes


def test_logs_get_a_line_now_and_then() -> None:
    stream, now = io.StringIO(), iter(np.arange(0.0, 1e6, 30.0))
    progress = RichProgress(Console(file=stream, width=300), every=60.0, clock=lambda: float(next(now)))
    progress.start(1000, 900)
    for _ in range(50):
        progress.advance(2)
    progress.certifying(0, 3)
    for done in (1, 2, 3):
        progress.certifying(done, 3)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Sampling: 1,000 samples, 900 of them stored earlier"
    assert lines[1] == "Sampling: 904 of 1,000 samples, 0.1 samples/s, about 0:24:00 left"
    assert lines[25] == "Sampling: 1,000 of 1,000 samples, 0.1 samples/s, about 0:00:00 left"
    assert lines[26:] == ["Certifying 3 items", "Certified 2 of 3 items"]


def test_progress_of_ones_own_needs_no_more_than_before() -> None:
    class Own:
        """Has the methods that `SamplingProgress` names, and no others."""

        __enter__, __exit__ = NoProgress.__enter__, NoProgress.__exit__
        start, advance, message, finish = NoProgress.start, NoProgress.advance, NoProgress.message, NoProgress.finish

    tell_certifying(Own(), 0, 1)  # pyright: ignore[reportArgumentType]
    tell_certifying(None, 0, 1)
    stream = io.StringIO()
    tell_certifying(JsonProgress(stream), 0, 1)
    assert [(event["event"], event["done"], event["total"]) for event in events(stream)] == [("certifying", 0, 1)]


def test_progress_counts_work_by_what_windows_show() -> None:
    """Samples of small windows are little work: passes at the end are the shares of all windows, and never go back."""
    layout = windowed(make_layout(cells=(2, 3)), 1)
    corner, middle = 5 * 5 / 96, 5 * 6 / 96
    assert layout.shown.tolist() == pytest.approx([corner, middle, corner] * 2)
    stream = io.StringIO()
    run(layout=layout, progress=JsonProgress(stream, every=0.0))
    told = [event for event in events(stream) if event["event"] == "progress"]
    passes = [float(str(event["passes"])) for event in told]
    total = float(layout.shown.sum()) * (PLAN.n_candidate + PLAN.n_bound)
    assert passes == sorted(passes)
    assert passes[-1] == pytest.approx(total)
    assert all(float(str(event["total_passes"])) == pytest.approx(total) for event in told)
    assert told[-1]["done"] == 6 * (PLAN.n_candidate + PLAN.n_bound)


def test_the_time_left_follows_the_work() -> None:
    """Half of the samples, a tenth of the work: nine times as long to go, not as long again."""
    now = [0.0]
    console = Console(width=200, file=io.StringIO(), record=True)
    progress = RichProgress(console, every=0.0, clock=lambda: now[0])
    progress.start(100, 0)
    progress.work(0.0, 50.0)
    now[0] = 10.0
    progress.work(5.0, 50.0)
    progress.advance(50)
    text = console.export_text()
    assert "50 of 100 samples (5 of 50 passes)" in text
    assert "about 0:01:30 left" in text


def test_where_every_group_sees_all_nothing_is_said_of_passes() -> None:
    console = Console(width=200, file=io.StringIO(), record=True)
    run(progress=RichProgress(console, every=0.0))
    assert "passes" not in console.export_text()
