"""A stopping rule sees chunks in order only: the same samples count whatever was drawn ahead, or before."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import (
    Executor,
    FailedChunkError,
    PoisonedChunksError,
    SamplingSummary,
    SerialExecutor,
    Session,
    ThreadExecutor,
)
from localsmooth.execution.executor import Trouble
from localsmooth.noise import Gaussian
from localsmooth.runs import ChunkRecord, DirectoryStore, MemoryStore, SamplingPlan, Stage, StoppingRule, StoreError
from localsmooth.sampling import ChunkWorker, Counters, ItemTally, Job, Votes, describe_run
from localsmooth.sampling.score_counters import LabelsAndScores, ScorePowers
from tests.sampling.exact import ExactModel, assert_same, make_item, make_layout, run


@dataclass(frozen=True)
class Unanimity(StoppingRule):
    """Stops once every output has so many votes for its candidate."""

    votes: int

    def decided(self, item: int, group: int, votes: np.ndarray, n: int) -> bool:
        return bool((votes >= self.votes + 3 * group).all())

    def require_fit(self, groups: Sequence[int]) -> None:
        pass

    def configuration(self) -> Mapping[str, object]:
        return {"rule": "unanimity", "votes": self.votes}


N_BOUND, CHUNK = 120, 6
PLAN = SamplingPlan(n_candidate=30, n_bound=N_BOUND, seed=11, chunk_size=CHUNK, stop=Unanimity(9))
LAYOUT = make_layout()


def stopped(**arguments: object) -> ItemTally:
    return run(plan=PLAN, layout=LAYOUT, **arguments)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def expected() -> ItemTally:
    """What counts according to plain runs of every length."""
    labels = LAYOUT.outputs.labels.ravel()
    n, votes = np.zeros(labels.size, dtype=np.int64), np.zeros(labels.size, dtype=np.int64)
    for samples in range(CHUNK, N_BOUND + 1, CHUNK):
        plain = run(plan=SamplingPlan(30, samples, seed=11, chunk_size=CHUNK), layout=LAYOUT)
        for group in range(LAYOUT.outputs.count):
            members = labels == group
            if not n[members].any() and (
                samples == N_BOUND or Unanimity(9).decided(0, group, plain.votes[members], samples)
            ):
                n[members], votes[members] = samples, plain.votes[members]
    assert len(set(n.tolist())) > 2, "the groups should stop at different times"
    assert n.max() < N_BOUND
    return ItemTally(plain.shape, plain.candidate, votes, 30, N_BOUND, None, {}, n)


def assert_equal(found: ItemTally, expected: ItemTally) -> None:
    assert_same(found, expected)
    assert found.n_per_output is not None
    assert expected.n_per_output is not None
    np.testing.assert_array_equal(found.n_per_output, expected.n_per_output)


class Shuffled(Executor):
    """Draws many chunks ahead and gives them back in a random order."""

    def __init__(self, seed: int, capacity: int = 7) -> None:
        self.random, self.capacity = random.Random(seed), capacity

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        yield _ShuffledSession(worker, self.random, self.capacity)


class _ShuffledSession(Session):
    def __init__(self, worker: ChunkWorker, chance: random.Random, capacity: int) -> None:
        self.worker, self.random, self.capacity = worker, chance, capacity
        self.jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def collect(self) -> ChunkRecord:
        return self.worker(self.jobs.pop(self.random.randrange(len(self.jobs))))


@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_prefix_of_a_plain_run_counts_whatever_the_batch_size(batch_size: int, expected: ItemTally) -> None:
    assert_equal(stopped(batch_size=batch_size), expected)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_stop_at_the_same_samples(workers: int, expected: ItemTally) -> None:
    store = MemoryStore()
    assert_equal(stopped(executor=ThreadExecutor(workers), store=store), expected)
    assert_holds_what_counts(store, expected)


@pytest.mark.parametrize("seed", range(5))
def test_order_of_arrival_does_not_matter(seed: int, expected: ItemTally, tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        assert_equal(stopped(executor=Shuffled(seed), store=store), expected)
        assert_holds_what_counts(store, expected)


def assert_holds_what_counts(store: MemoryStore | DirectoryStore, expected: ItemTally) -> None:
    assert expected.n_per_output is not None
    for group in range(LAYOUT.outputs.count):
        count = int(expected.n_per_output[LAYOUT.outputs.members(group)[0]])
        kept = [key[3] for key in store.finished() if key[:3] == (0, group, Stage.BOUND.value)]
        assert sorted(kept) == list(range(count // CHUNK))


def test_one_chunk_at_a_time_draws_nothing_in_vain(expected: ItemTally) -> None:
    samples = 0

    def count(batch: torch.Tensor) -> None:
        nonlocal samples
        samples += len(batch)

    stopped(model=ExactModel(watch=count), executor=SerialExecutor())
    assert expected.n_per_output is not None
    first = [int(LAYOUT.outputs.members(group)[0]) for group in range(LAYOUT.outputs.count)]
    assert samples == 30 * len(first) + int(expected.n_per_output[first].sum())


class Interruption(Executor):
    """Is interrupted after a few chunks."""

    def __init__(self, inner: Executor, chunks: int) -> None:
        self.inner, self.chunks = inner, chunks

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        with self.inner.open(worker) as session:
            collect, left = session.collect, iter(range(self.chunks))

            def interrupted() -> ChunkRecord:
                if next(left, None) is None:
                    raise KeyboardInterrupt  # what Python makes of SIGINT, also where that is ignored
                return collect()

            session.collect = interrupted  # type: ignore[method-assign]
            yield session


@pytest.mark.parametrize("seed", range(4))
def test_interrupted_runs_stop_at_the_same_samples(seed: int, expected: ItemTally, tmp_path: Path) -> None:
    chance, interruptions = random.Random(seed), 0
    while True:
        inner = Shuffled(chance.randrange(1000)) if seed % 2 else SerialExecutor()
        try:
            with DirectoryStore(tmp_path) as store:
                found = stopped(
                    store=store, executor=Interruption(inner, chance.randint(3, 9)), batch_size=chance.randint(1, 9)
                )
            break
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions >= 2
    assert_equal(found, expected)


def test_finished_run_is_read_without_drawing(expected: ItemTally, tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        stopped(store=store)

    def never(_: torch.Tensor) -> None:
        raise AssertionError("a sample was drawn")

    with DirectoryStore(tmp_path) as store:
        assert_equal(stopped(store=store, model=ExactModel(watch=never)), expected)


def test_chunk_deleted_by_hand_is_drawn_again(expected: ItemTally, tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        stopped(store=store)
    files = sorted((tmp_path / "chunks").rglob("*stage1*.tally"))
    files[0].unlink()
    with DirectoryStore(tmp_path) as store:
        assert_equal(stopped(store=store), expected)


def test_progress_ends_at_the_total() -> None:
    class Told:
        total, done = 0, 0

        def __enter__(self) -> Told:
            return self

        def __exit__(self, *_: object) -> None: ...

        def start(self, total: int, done: int) -> None:
            self.total, self.done = total, done

        def advance(self, samples: int) -> None:
            self.done += samples

        def message(self, text: str) -> None: ...

        def finish(self, summary: SamplingSummary) -> None:
            self.stored = summary.samples

    told, store = Told(), MemoryStore()
    stopped(progress=told, executor=Shuffled(3), store=store)
    assert told.done == told.total == LAYOUT.outputs.count * (30 + N_BOUND)
    assert told.stored == sum(kept.n for kept in store.finished().values()) < told.total


def test_rule_is_part_of_the_configuration() -> None:
    def configuration(plan: SamplingPlan):
        return describe_run(ExactModel(), [make_item()], [LAYOUT], Gaussian(), plan, Counters())

    plain = SamplingPlan(30, N_BOUND, seed=11, chunk_size=CHUNK)
    assert "stop" not in configuration(plain).text
    hashes = {configuration(plan).sha256 for plan in (plain, PLAN, SamplingPlan(30, N_BOUND, 11, CHUNK, Unanimity(8)))}
    assert len(hashes) == 3
    store = MemoryStore()
    run(plan=plain, layout=LAYOUT, store=store)
    with pytest.raises(StoreError, match="stop"):
        stopped(store=store)


def test_scores_cannot_be_counted_beside_a_rule() -> None:
    with pytest.raises(InvalidInputError, match="stop: scores are counted"):
        stopped(counters=Counters((LabelsAndScores(),), (Votes(), ScorePowers())))


def test_tally_refuses_more_votes_than_samples() -> None:
    with pytest.raises(InvalidInputError, match="votes"):
        ItemTally((2,), np.zeros(2, int), np.array([5, 7]), 1, 10, None, {}, np.array([5, 6]))


# --- chunks that cannot be counted ------------------------------------------------------------------------------------


class Faulty(Executor):
    """Draws ahead in order; some chunks of the bound stage come back as faults, before the ones drawn earlier."""

    def __init__(self, group: int, first: int, capacity: int = 7) -> None:
        self.group, self.first, self.capacity = group, first, capacity

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        yield _FaultySession(worker, self)


class _FaultySession(Session):
    def __init__(self, worker: ChunkWorker, executor: Faulty) -> None:
        self.worker, self.executor, self.capacity = worker, executor, executor.capacity
        self.jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def collect(self) -> ChunkRecord:
        job = self.jobs.pop()
        chunk = job.chunk
        wrong = chunk.stage == Stage.BOUND.value and chunk.group == self.executor.group
        if wrong and chunk.index >= self.executor.first:
            raise FailedChunkError(job, Trouble("FaultyPredictionError", f"chunk {chunk.index} is faulty"))
        return self.worker(job)


@pytest.mark.parametrize("group", range(3))
def test_fault_in_a_chunk_drawn_ahead_matters_only_if_it_is_needed(
    group: int, expected: ItemTally, tmp_path: Path
) -> None:
    assert expected.n_per_output is not None
    needed = int(expected.n_per_output[LAYOUT.outputs.labels.ravel() == group][0]) // CHUNK
    with DirectoryStore(tmp_path / "enough") as store:
        assert_equal(stopped(executor=Faulty(group, needed), store=store), expected)
        assert_holds_what_counts(store, expected)
    with DirectoryStore(tmp_path / "short") as store:
        with pytest.raises(PoisonedChunksError, match=f"chunk {needed - 1} is faulty"):
            stopped(executor=Faulty(group, needed - 1), store=store)
        # Everything before the fault is kept, and a run without it goes on from there.
        assert store.merged(0, group, Stage.BOUND).n == (needed - 1) * CHUNK
        assert_equal(stopped(store=store), expected)


def test_fault_without_a_rule_keeps_what_was_being_drawn(tmp_path: Path) -> None:
    plan = SamplingPlan(30, N_BOUND, seed=11, chunk_size=CHUNK)
    with DirectoryStore(tmp_path) as store:
        with pytest.raises(PoisonedChunksError, match=r"chunk \d+ is faulty"):
            run(plan=plan, layout=LAYOUT, executor=Faulty(0, N_BOUND // CHUNK - 1), store=store)
        kept = len(store.finished())
        assert kept > 30 // CHUNK
        assert_same(run(plan=plan, layout=LAYOUT, store=store), run(plan=plan, layout=LAYOUT))
