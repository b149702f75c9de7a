"""Progress moves inside chunks: told batch by batch, never beyond what is drawn, and never while something else is."""

from __future__ import annotations

import io
import json
import threading
import time

import pytest
from rich.console import Console

from localsmooth.execution import Executor, JsonProgress, NoProgress, RichProgress, SerialExecutor, ThreadExecutor
from localsmooth.execution.within import Within
from localsmooth.runs import Chunk, SamplingPlan
from tests.sampling.exact import run

PLAN = SamplingPlan(n_candidate=8, n_bound=16, seed=3, chunk_size=16)
TOTAL = 4.0 * (PLAN.n_candidate + PLAN.n_bound)


class Told(NoProgress):
    """Notes what it is told, and whether two threads ever tell at once."""

    def __init__(self) -> None:
        self.within_done: list[float] = []
        self.work_done: list[float] = []
        self.busy = threading.Lock()
        self.clashes = 0

    def _alone(self) -> None:
        if not self.busy.acquire(blocking=False):
            self.clashes += 1
            return
        time.sleep(1e-4)
        self.busy.release()

    def within(self, done: float, total: float) -> None:
        self._alone()
        assert total == TOTAL
        self.within_done.append(done)

    def work(self, done: float, total: float) -> None:
        self.work_done.append(done)

    def advance(self, samples: int) -> None:
        self._alone()


def test_every_batch_moves_it() -> None:
    told = Told()
    run(plan=PLAN, batch_size=2, executor=SerialExecutor(), progress=told)
    # All batches of two but the last of each chunk, in the order in which they are drawn.
    assert told.within_done == [done for done in range(2, int(TOTAL)) if done % 2 == 0 and done not in told.work_done]
    assert told.work_done[-1] == TOTAL


@pytest.mark.parametrize("executor", [SerialExecutor(), ThreadExecutor(2)], ids=["serial", "threads"])
def test_what_a_progress_raises_is_raised_and_no_fault_of_a_chunk(executor: Executor) -> None:
    class Broken(NoProgress):
        def within(self, done: float, total: float) -> None:
            raise ZeroDivisionError("the bar is broken")

    with pytest.raises(ZeroDivisionError, match="the bar is broken"):
        run(plan=PLAN, batch_size=2, executor=executor, progress=Broken())


def test_threads_tell_one_at_a_time() -> None:
    told = Told()
    run(plan=PLAN, batch_size=2, executor=ThreadExecutor(3), progress=told)
    assert told.within_done
    assert max(told.within_done) <= TOTAL
    assert not told.clashes


def test_a_chunk_that_came_back_counts_once() -> None:
    told, chunk, other = Told(), Chunk(0, 0, 0, 0, 4), Chunk(0, 1, 0, 0, 4)
    within = Within(told, lambda chunk: 0.5 if chunk.group else 1.0)
    within.hear(chunk, 2)
    assert told.within_done == []  # nothing is known of the whole yet
    within.finished(0.0, TOTAL)
    within.hear(chunk, 3)
    within.hear(other, 2)
    with within.alone(chunk):
        within.finished(4.0, TOTAL)
        within.hear(other, 3)  # somebody else is telling: left out, and nobody waits
    within.hear(other, 4)
    assert told.within_done == [3.0, 4.0, 6.0]


def test_lines_and_events_come_before_the_first_chunk_ends() -> None:
    now = [0.0]
    text = io.StringIO()
    lines = RichProgress(Console(file=text, width=200), every=60.0, clock=lambda: now[0])
    lines.start(1000, 0)
    lines.work(0.0, 1000.0)
    now[0] = 61.0
    lines.within(10.0, 1000.0)
    assert "1:40:39 left" in text.getvalue()  # 990 passes more at 10 in 61 s
    stream = io.StringIO()
    json_lines = JsonProgress(stream, every=1.0, clock=lambda: now[0])
    json_lines.start(1000, 0)
    now[0] = 63.0
    json_lines.within(10.0, 1000.0)
    last = json.loads(stream.getvalue().splitlines()[-1])
    assert (last["event"], last["passes"], last["done"]) == ("progress", 10.0, 0)


def test_a_bar_never_moves_back() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with RichProgress(console) as bar:
        bar.start(100, 20)
        seen: list[float] = []
        for event in (lambda: bar.within(30.0, 100.0), lambda: bar.advance(16), lambda: bar.within(37.0, 100.0)):
            event()
            seen.append(bar._bar.tasks[0].completed)  # pyright: ignore[reportPrivateUsage]
    assert seen == pytest.approx([30, 36, 37])
