"""What every executor must do: draw the same tallies as one chunk after the other, and say which chunks failed."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np
import torch

from localsmooth.execution import (
    Executor,
    FailedChunkError,
    PoisonedChunksError,
    SerialExecutor,
    Session,
    sample,
)
from localsmooth.layout import windowed
from localsmooth.noise import Gaussian
from localsmooth.runs import Chunk, ChunkRecord, MemoryStore, SamplingPlan, Stage, Store
from localsmooth.sampling import ArraySubject, BatchSize, ChunkWorker, ItemTally, Job, SamplingOptions
from localsmooth.testing.exact import ExactModel, make_item, make_layout
from localsmooth.testing.refusals import refused

__all__ = ["ExecutorContract"]

_PLAN = SamplingPlan(n_candidate=12, n_bound=45, seed=3, chunk_size=10)
_LAYOUTS = [windowed(make_layout(), 2), make_layout(cells=(1, 2))]


class _Failing(ExactModel):
    """Fails on some of the noise, the same wherever it is drawn; importable, so that it can travel to processes."""

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        if bool((batch[:, 0, 0, 0] > 4.1).any()):
            raise ValueError("too bright")
        return super().__call__(batch)


def _worker(model: ExactModel | None = None, brightness: float = 0.0) -> ChunkWorker:
    items = [make_item() + brightness, make_item(1)]
    subject = ArraySubject(ExactModel() if model is None else model, items, _LAYOUTS, Gaussian(), 7)
    return ChunkWorker(subject, BatchSize(4))


def _jobs(items: int = 1, groups: int = 4, chunks: int = 3) -> list[Job]:
    return [
        Job(Chunk(item, group, Stage.CANDIDATE.value, index, 5 + index))
        for item in range(items)
        for group in range(groups)
        for index in range(chunks)
    ]


class _Noted(MemoryStore):
    """Notes what is committed."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: Counter[tuple[int, int, int, int]] = Counter()

    def commit(self, record: ChunkRecord) -> bool:
        self.commits[record.chunk.key] += 1
        return super().commit(record)


class ExecutorContract:
    """Tests of an executor, from one chunk to a whole run."""

    def make(self) -> Executor:
        """Make the executor, with two workers where their number can be chosen.

        Raises
        ------
        NotImplementedError
            Where a suite does not say how.
        """
        raise NotImplementedError

    def _tallies(
        self, executor: Executor, store: Store | None = None, model: ExactModel | None = None
    ) -> list[ItemTally]:
        options = SamplingOptions(batch_size=4, check_model=False, channels_last=False)
        items = [make_item(), make_item(1)]
        model = ExactModel() if model is None else model
        return sample(model, items, _LAYOUTS, Gaussian(), _PLAN, store, options=options, executor=executor)

    def _work_off(self, session: Session, jobs: list[Job]) -> tuple[list[ChunkRecord], list[FailedChunkError]]:
        """Keep the session as busy as it allows until everything came out, drawn or failed."""
        waiting, in_flight = list(jobs), 0
        records, failures = list[ChunkRecord](), list[FailedChunkError]()
        while waiting or in_flight:
            while waiting and in_flight < session.capacity:
                session.submit(waiting.pop(0))
                in_flight += 1
            try:
                records.append(session.collect())
            except FailedChunkError as failure:
                failures.append(failure)
            in_flight -= 1
        return records, failures

    def test_every_job_comes_out_once_and_as_if_drawn_here(self) -> None:
        """In any order, with the same counts whoever drew it."""
        jobs, here = _jobs(items=2, groups=2), _worker()
        with self.make().open(_worker()) as session:
            assert session.capacity >= 1
            records, failures = self._work_off(session, jobs)
        assert not failures
        assert Counter(record.chunk for record in records) == Counter(job.chunk for job in jobs)
        expected = {job.chunk: here(job) for job in jobs}
        for record in records:
            assert record.n == record.chunk.size
            assert record.counts.keys() == expected[record.chunk].counts.keys()
            for name, array in record.counts.items():
                np.testing.assert_array_equal(array, expected[record.chunk].counts[name])

    def test_failures_name_their_job_and_leave_the_others_alone(self) -> None:
        """What went wrong is told; the job may be submitted again, and others go on."""
        jobs = _jobs()
        with self.make().open(_worker(_Failing(), brightness=3.0)) as session:
            records, failures = self._work_off(session, jobs)
            assert failures, "failures were swallowed"
            for failure in failures:
                assert (failure.trouble.kind, failure.trouble.message) == ("ValueError", "too bright")
                assert any(failure.job.chunk == job.chunk for job in jobs)
            again = self._work_off(session, [failures[0].job])
            assert (len(again[0]), len(again[1])) == (0, 1), "a failed job may be submitted again"
        came_out = [record.chunk for record in records] + [failure.job.chunk for failure in failures]
        assert Counter(came_out) == Counter(job.chunk for job in jobs)
        assert records, "everything failed"

    def test_leaving_drops_what_is_in_flight(self) -> None:
        """Also where an error is the reason; the executor may be opened again."""
        executor, jobs = self.make(), _jobs()
        for _ in range(2):
            try:
                with executor.open(_worker()) as session:
                    for job in jobs[: session.capacity]:
                        session.submit(job)
                    raise _InterruptedError
            except _InterruptedError:
                pass
        with executor.open(_worker()) as session:
            records, failures = self._work_off(session, jobs[:2])
        assert {record.chunk for record in records} == {job.chunk for job in jobs[:2]}
        assert not failures

    def test_torch_is_left_as_it_was(self) -> None:
        """The number of threads is another's business again."""
        before, executor = torch.get_num_threads(), self.make()
        with executor.conditions():
            pass
        assert torch.get_num_threads() == before
        with executor.open(_worker()) as session:
            self._work_off(session, _jobs(groups=1, chunks=1))
        assert torch.get_num_threads() == before

    def test_runs_have_the_same_tallies(self) -> None:
        """Two items, candidates before their votes, every chunk kept once."""
        store, expected = _Noted(), self._tallies(SerialExecutor())
        _require_same(self._tallies(self.make(), store), expected)
        assert set(store.commits.values()) == {1}, "a chunk came out twice"
        assert len(store.commits) == 6 * (2 + 5)

    def test_runs_go_on_where_they_stopped(self) -> None:
        """Only what is missing is drawn."""
        whole, part = _Noted(), _Noted()
        expected = self._tallies(SerialExecutor(), whole)
        with suppress(KeyboardInterrupt):
            self._tallies(SerialExecutor(), part, _Stopping(25))
        kept = set(part.finished())
        part.commits.clear()
        _require_same(self._tallies(self.make(), part), expected)
        assert kept
        assert set(part.commits) == set(whole.finished()) - kept

    def test_runs_name_poisoned_chunks_and_keep_the_others(self) -> None:
        """One output group that cannot be drawn costs the others nothing."""
        store, options = _Noted(), SamplingOptions(batch_size=4, check_model=False, channels_last=False)
        items = [make_item() + 3.0]
        with refused("a run without all its chunks", field="too bright", kinds=(PoisonedChunksError,)):
            sample(_Failing(), items, _LAYOUTS[:1], Gaussian(), _PLAN, store, options=options, executor=self.make())
        assert store.finished(), "nothing was kept"


class _InterruptedError(Exception):
    """Stands for whatever ends a run."""


class _Stopping(ExactModel):
    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().__call__(batch)


def _require_same(one: list[ItemTally], other: list[ItemTally]) -> None:
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left.candidate, right.candidate)
        np.testing.assert_array_equal(left.votes, right.votes)
        assert (left.n, left.n_candidate) == (right.n, right.n_candidate)
