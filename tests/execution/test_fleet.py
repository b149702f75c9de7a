"""Whatever happens to the workers of a fleet, every chunk that counts comes out once, and poisoned ones are named."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import (
    Executor,
    PoisonedChunksError,
    ProcessExecutor,
    SerialExecutor,
    Session,
    ThreadExecutor,
    redraw,
)
from localsmooth.execution.executor import FailedChunkError, Trouble
from localsmooth.execution.fleet import Crew, Done, Event, FleetSession, Lost, Ready, WorkerError
from localsmooth.layout import windowed
from localsmooth.noise import Gaussian
from localsmooth.runs import Chunk, ChunkRecord, DirectoryStore, MemoryStore, SamplingPlan, Stage
from localsmooth.sampling import ArraySubject, BatchSize, ChunkWorker, Job
from tests.execution.test_stopping import PLAN as STOPPED_PLAN
from tests.execution.test_stopping import Unanimity, assert_equal
from tests.sampling.exact import ExactModel, assert_same, make_item, make_layout, run

PLAN = SamplingPlan(n_candidate=30, n_bound=120, seed=11, chunk_size=6)
LAYOUT = windowed(make_layout(), 2)


class MadeUpCrew(Crew):
    """Workers that do their jobs at random moments, or die."""

    def __init__(self, worker: ChunkWorker, seed: int, deaths: float) -> None:
        self.worker, self.deaths = worker, deaths
        self.chance = random.Random(seed)
        self.jobs: dict[int, deque[Job]] = {}
        self.ready: set[int] = set()
        self.started = 0
        self.sent: list[Job] = []

    def start(self) -> Hashable:
        self.started += 1
        self.jobs[self.started] = deque()
        return self.started

    def end(self, worker: Hashable) -> None:
        raise AssertionError("nobody hangs")

    def send(self, worker: Hashable, job: Job) -> None:
        assert isinstance(worker, int)
        self.sent.append(job)
        assert len(self.jobs.get(worker, ())) < 2
        if worker in self.jobs:
            self.jobs[worker].append(job)

    def wait(self, seconds: float | None) -> Sequence[Event]:
        if seconds == 0.0 and self.chance.random() < 0.5:
            return []
        able = [name for name in self.jobs if name not in self.ready or self.jobs[name]]
        if not able:
            assert seconds is not None, "waits for ever"
            return []
        name = self.chance.choice(able)
        if self.chance.random() < self.deaths and name in self.ready:
            del self.jobs[name]
            return [Lost(name, "shot")]
        if name not in self.ready:
            self.ready.add(name)
            return [Ready(name)]
        job = self.jobs[name].popleft()
        try:
            return [Done(name, self.worker(job))]
        except Exception as error:
            return [Done(name, Trouble.of(error))]


class MadeUpFleet(Executor):
    def __init__(self, seed: int, workers: int = 3, deaths: float = 0.0, clock: Callable[[], float] | None = None):
        self.seed, self.workers, self.deaths = seed, workers, deaths
        self.chance = random.Random(seed)
        self.now = 0.0
        self.clock = self.tick if clock is None else clock
        self.crew: MadeUpCrew | None = None

    def tick(self) -> float:
        """A clock that jumps so that chunks look slow, and now and then goes backwards."""
        self.now += self.chance.choice((0.1, 5.0, -1.0))
        return self.now

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        self.crew = MadeUpCrew(worker, self.seed, self.deaths)
        yield FleetSession(self.crew, self.workers, self.clock)


@pytest.mark.parametrize("seed", range(6))
def test_deaths_and_second_copies_lose_nothing_and_count_nothing_twice(seed: int, tmp_path: Path) -> None:
    fleet = MadeUpFleet(seed, workers=2 + seed, deaths=0.03)
    with DirectoryStore(tmp_path) as store:
        commit, kept = store.commit, []
        store.commit = lambda record: kept.append(record.chunk.key) or commit(record)  # type: ignore[method-assign]
        found = run(plan=PLAN, layout=LAYOUT, executor=fleet, store=store)
        assert len(kept) == len(set(kept)) == len(store.finished())
    assert_same(found, run(plan=PLAN, layout=LAYOUT))
    assert fleet.crew is not None
    assert fleet.crew.started > fleet.workers, "nobody died"
    assert len(fleet.crew.sent) > len(kept), "nothing was sent twice"


@pytest.mark.parametrize("seed", range(6))
def test_stopping_early_counts_the_same_samples(seed: int) -> None:
    store = MemoryStore()
    found = run(plan=STOPPED_PLAN, layout=make_layout(), executor=MadeUpFleet(seed, 2 + seed, deaths=0.02), store=store)
    expected = run(plan=STOPPED_PLAN, layout=make_layout(), executor=SerialExecutor())
    assert_equal(found, expected)
    assert found.n_per_output is not None
    bound = sum(kept.n for key, kept in store.finished().items() if key[2] == Stage.BOUND.value)
    sizes = make_layout().outputs.sizes
    assert bound == sum(
        int(found.n_per_output[make_layout().outputs.members(group)[0]]) for group in range(len(sizes))
    ), "chunks were kept that do not count"


def job(index: int, size: int = 6) -> Job:
    return Job(Chunk(0, 0, Stage.CANDIDATE.value, index, size))


class ByHand(Crew):
    """Does what the test says."""

    def __init__(self) -> None:
        self.events: deque[list[Event]] = deque()
        self.sent: list[tuple[Hashable, int]] = []
        self.started = 0

    def start(self) -> Hashable:
        self.started += 1
        return self.started

    def end(self, worker: Hashable) -> None:
        raise AssertionError("nobody hangs")

    def send(self, worker: Hashable, job: Job) -> None:
        self.sent.append((worker, job.chunk.index))

    def wait(self, seconds: float | None) -> Sequence[Event]:
        if seconds == 0.0:
            return []
        return self.events.popleft()


def record(index: int) -> ChunkRecord:
    return ChunkRecord(job(index).chunk, 6, {})


def test_a_slow_chunk_goes_to_an_idle_worker_and_the_first_result_wins() -> None:
    now = 0.0
    crew = ByHand()
    session = FleetSession(crew, 2, lambda: now)
    for index in range(4):
        session.submit(job(index))
    crew.events.extend([[Ready(1)], [Ready(2)], [Done(1, record(0))]])
    assert session.collect().chunk.index == 0
    assert crew.sent == [(1, 0), (1, 1), (2, 2), (2, 3)]
    mine = [index for worker, index in crew.sent if worker == 1][1]
    hers = [index for worker, index in crew.sent if worker == 2]
    now = 1.0
    crew.events.append([Done(1, record(mine))])
    assert session.collect().chunk.index == mine
    # Worker 1 has nothing to do: it gets what worker 2 has not come to, then, late enough, what it is slow with.
    crew.events.append([Done(1, record(hers[1]))])
    now = 2.0
    assert session.collect().chunk.index == hers[1]
    assert crew.sent[-1] == (1, hers[1])
    crew.events.extend([[], []])
    before = len(crew.sent)
    now = 3.0

    def later(seconds: float | None) -> Sequence[Event]:
        nonlocal now
        if seconds == 0.0:
            return []
        now += 4.0
        return [Done(1, record(hers[0]))] if len(crew.sent) > before else []

    crew.wait = later  # type: ignore[method-assign]
    assert session.collect().chunk.index == hers[0]
    assert crew.sent[-1] == (1, hers[0])
    # Worker 2 comes late with both; nobody hears of them again, and new jobs go on.
    session.submit(job(9))
    crew.wait = lambda seconds: [Done(2, record(hers[0])), Done(2, record(hers[1])), Done(1, record(9))]  # type: ignore[method-assign]
    assert session.collect().chunk.index == 9


def test_a_copy_that_fails_says_nothing_while_another_is_in_work() -> None:
    crew = ByHand()
    session = FleetSession(crew, 2)
    session.submit(job(0))
    session.submit(job(1))
    crew.events.extend([[Ready(1)], [Ready(2)]])
    crew.events.append([Done(2, Trouble("ValueError", "a copy"))])  # of the chunk that worker 1 has not come to
    crew.events.append([Done(1, record(0)), Done(1, record(1))])
    assert [session.collect().chunk.index for _ in range(2)] == [0, 1]
    assert crew.sent[:3] == [(1, 0), (1, 1), (2, 1)]
    session.submit(job(2))
    crew.events.append([Done(1, Trouble("ValueError", "the only one"))])
    with pytest.raises(FailedChunkError, match="the only one"):
        session.collect()


def test_waiting_tasks_of_a_dead_worker_go_elsewhere_and_only_the_one_in_work_failed() -> None:
    crew = ByHand()
    session = FleetSession(crew, 1)
    session.submit(job(0))
    session.submit(job(1))
    crew.events.extend([[Ready(1)], [Lost(1, "signal 9")]])
    with pytest.raises(FailedChunkError, match="signal 9") as caught:
        session.collect()
    assert caught.value.job.chunk.index == 0
    assert caught.value.trouble.died
    crew.events.extend([[Ready(2)], [Done(2, record(1))]])
    assert session.collect().chunk.index == 1


def test_workers_that_never_start_are_one_error() -> None:
    crew = ByHand()
    session = FleetSession(crew, 2)
    session.submit(job(0))
    crew.events.extend([[Lost(1, "no module named network")], [Lost(2, "a")], [Lost(3, "no module named network")]])
    with pytest.raises(WorkerError, match="no module named network"):
        session.collect()


class Poisoned(ExactModel):
    """Fails on the samples of some chunks, however they are cut into batches."""

    def __init__(self, chunks: Sequence[Chunk], times: int = 10**9) -> None:
        super().__init__()
        self.times = times
        self.tasted: dict[bytes, int] = {}
        self.samples = {one.numpy().tobytes() for chunk in chunks for one in redraw(subject(), chunk)}

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        for one in batch:
            if (key := one.numpy().tobytes()) in self.samples and self.tasted.get(key, 0) < self.times:
                self.tasted[key] = self.tasted.get(key, 0) + 1
                raise ValueError("this sample is poison")
        return super().__call__(batch)

    def replica(self) -> Poisoned:
        return self


def subject() -> ArraySubject:
    return ArraySubject(ExactModel(), [make_item()], [LAYOUT], Gaussian(), PLAN.seed)


EXECUTORS: list[Callable[[], Executor]] = [
    SerialExecutor,
    lambda: ThreadExecutor(2),
    lambda: MadeUpFleet(0, deaths=0.02),
]


@pytest.mark.parametrize("make", EXECUTORS)
def test_poisoned_chunks_are_named_after_everything_else_is_stored(
    make: Callable[[], Executor], tmp_path: Path
) -> None:
    poisoned = [Chunk(0, 1, Stage.CANDIDATE.value, 2, 6), Chunk(0, 2, Stage.BOUND.value, 5, 6)]
    with DirectoryStore(tmp_path) as store, pytest.raises(PoisonedChunksError, match="2 chunks") as caught:
        run(Poisoned(poisoned), plan=PLAN, layout=LAYOUT, executor=make(), store=store)
    assert [entry.chunk for entry in caught.value.chunks] == poisoned
    text = str(caught.value)
    assert "item 0, output group 1, chunk 2 of the candidate stage (6 samples, seed 11, 3 tries)" in text
    assert "ValueError: this sample is poison" in text
    with DirectoryStore(tmp_path) as store:
        candidates, bounds = 4 * 5 - 1, 3 * 20 - 1
        assert len(store.finished()) == candidates + bounds, "group 1 has no candidates to vote for"
        for entry in caught.value.chunks:
            np.testing.assert_array_equal(store.get_array(entry.array), redraw(subject(), entry.chunk).numpy())
        # With a model that is mended, the run goes on and ends like one that was never disturbed.
        assert_same(run(plan=PLAN, layout=LAYOUT, store=store), run(plan=PLAN, layout=LAYOUT))


@pytest.mark.parametrize("make", EXECUTORS)
def test_a_chunk_that_fails_twice_is_drawn_the_third_time(make: Callable[[], Executor]) -> None:
    model = Poisoned([Chunk(0, 1, Stage.CANDIDATE.value, 2, 6)], times=1)
    model.samples = set(sorted(model.samples)[:2])  # each of two samples fails once
    assert_same(run(model, plan=PLAN, layout=LAYOUT, executor=make()), run(plan=PLAN, layout=LAYOUT))


def test_where_nothing_succeeds_the_run_stops_early() -> None:
    calls = 0

    def fail(_: torch.Tensor) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("driver not found")

    with pytest.raises(PoisonedChunksError, match="others were not tried"):
        run(ExactModel(watch=fail), plan=SamplingPlan(60, 100, chunk_size=6), layout=LAYOUT)
    assert calls == 3 * (3 * 10 + 1), "one chunk of the fourth group was the last straw"


@pytest.mark.parametrize("ahead", [0, 3])
def test_poison_behind_the_end_of_a_group_does_not_matter(ahead: int) -> None:
    expected = run(plan=STOPPED_PLAN, layout=make_layout())
    assert expected.n_per_output is not None
    chunks = int(expected.n_per_output[make_layout().outputs.members(0)[0]]) // 6
    poison = Chunk(0, 0, Stage.BOUND.value, chunks + ahead, 6)
    plain = ArraySubject(ExactModel(), [make_item()], [make_layout()], Gaussian(), STOPPED_PLAN.seed)
    model = Poisoned([])
    model.samples = {one.numpy().tobytes() for one in redraw(plain, poison)}
    assert_equal(run(model, plan=STOPPED_PLAN, layout=make_layout(), executor=ThreadExecutor(5)), expected)
    assert isinstance(STOPPED_PLAN.stop, Unanimity)


def test_poison_before_the_end_of_a_group_leaves_it_open(tmp_path: Path) -> None:
    plain = ArraySubject(ExactModel(), [make_item()], [make_layout()], Gaussian(), STOPPED_PLAN.seed)
    model = Poisoned([])
    model.samples = {one.numpy().tobytes() for one in redraw(plain, Chunk(0, 0, Stage.BOUND.value, 1, 6))}
    with DirectoryStore(tmp_path) as store, pytest.raises(PoisonedChunksError, match="1 chunk could"):
        run(model, plan=STOPPED_PLAN, layout=make_layout(), store=store, executor=ThreadExecutor(5))
    with DirectoryStore(tmp_path) as store:
        kept = [key for key in store.finished() if key[:3] == (0, 0, Stage.BOUND.value)]
        assert kept == [(0, 0, 1, 0)], "chunks behind the missing one were kept"
        assert_equal(
            run(plan=STOPPED_PLAN, layout=make_layout(), store=store), run(plan=STOPPED_PLAN, layout=make_layout())
        )


def test_a_model_of_the_wrong_shape_stops_the_run_at_once() -> None:
    class Dropping(ExactModel):
        def __call__(self, batch: torch.Tensor) -> torch.Tensor:
            return super().__call__(batch)[1:]

    fleet = MadeUpFleet(0)
    with pytest.raises(InvalidInputError, match="one prediction per sample"):
        run(Dropping(), executor=fleet)


def test_no_other_chunk_is_redrawn_than_the_problem_has() -> None:
    with pytest.raises(InvalidInputError, match="chunk"):
        redraw(subject(), Chunk(1, 0, 0, 0, 6))


def test_halved_batches_draw_the_same_samples() -> None:
    worker = ChunkWorker(subject(), BatchSize(6))
    whole, halved = (worker(Job(Chunk(0, 0, 0, 0, 6), halvings=h)) for h in (0, 2))
    assert (whole.provenance["batch_size"], halved.provenance["batch_size"]) == (6, 1)
    np.testing.assert_array_equal(whole.counts["labels.counts"], halved.counts["labels.counts"])


class Hanging(ByHand):
    """Workers say nothing by themselves; one that is ended is lost, as a process is."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__()
        self.clock = clock
        self.ended: list[Hashable] = []

    def end(self, worker: Hashable) -> None:
        self.ended.append(worker)
        self.events.append([Lost(worker, "signal 9")])

    def wait(self, seconds: float | None) -> Sequence[Event]:
        if seconds == 0.0:
            return []
        if self.events:
            return self.events.popleft()
        assert seconds is not None, "waits for ever"
        self.clock[0] += seconds
        return []


def hanging(limit: float | None) -> tuple[Hanging, FleetSession, list[float]]:
    clock = [0.0]
    crew = Hanging(clock)
    return crew, FleetSession(crew, 1, lambda: clock[0], limit), clock


def test_a_worker_that_hangs_is_replaced_and_its_chunk_has_failed_once() -> None:
    crew, session, clock = hanging(20.0)
    session.submit(job(0))
    session.submit(job(1))
    crew.events.append([Ready(1)])
    with pytest.raises(FailedChunkError, match="not done after 20 s") as caught:
        session.collect()
    assert (caught.value.job.chunk.index, caught.value.trouble.died) == (0, False)
    assert 20 < clock[0] < 25
    assert crew.ended == [1]
    crew.events.extend([[Ready(2)], [Done(2, record(1))]])
    assert session.collect().chunk.index == 1
    assert crew.sent == [(1, 0), (1, 1), (2, 1)]


def test_a_chunk_that_was_done_just_before_its_worker_was_ended_counts_and_no_other_is_blamed() -> None:
    crew, session, _ = hanging(20.0)
    session.submit(job(0))
    session.submit(job(1))
    crew.events.append([Ready(1)])

    def end(worker: Hashable) -> None:
        crew.ended.append(worker)
        crew.events.append([Done(worker, record(0)), Lost(worker, "signal 9")])
        crew.events.extend([[Ready(2)], [Done(2, record(1))]])

    crew.end = end  # type: ignore[method-assign]
    assert [session.collect().chunk.index for _ in range(2)] == [0, 1]


def test_without_a_limit_a_chunk_may_take_a_hundred_times_the_usual_and_ten_minutes() -> None:
    crew, session, clock = hanging(None)
    for index in range(4):
        session.submit(job(index))
        if index == 0:
            crew.events.append([Ready(1)])
        if index == 3:
            break
        clock[0] += 8.0
        crew.events.append([Done(1, record(index))])
        session.collect()
    start = clock[0]
    with pytest.raises(FailedChunkError, match="not done after"):
        session.collect()
    assert clock[0] - start >= 600


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf")])
def test_impossible_limits_are_refused(limit: float) -> None:
    with pytest.raises(InvalidInputError, match="chunk_time_limit"):
        ProcessExecutor(1, chunk_time_limit=limit)
