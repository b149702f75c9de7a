"""Processes draw the same tallies as one chunk after the other, whatever happens to them."""

from __future__ import annotations

import multiprocessing
import signal
from pathlib import Path

import pytest

from localsmooth.errors import InvalidInputError
from localsmooth.execution import PoisonedChunksError, ProcessExecutor
from localsmooth.execution.fleet import WorkerError
from localsmooth.execution.processes import _most, _share  # pyright: ignore[reportPrivateUsage]
from localsmooth.models import CallableModel
from localsmooth.runs import MemoryStore, SamplingPlan
from tests.execution.test_stopping import LAYOUT as STOPPED_LAYOUT
from tests.execution.test_stopping import PLAN as STOPPED_PLAN
from tests.execution.test_stopping import assert_equal, assert_holds_what_counts
from tests.faults.trouble import (
    CHUNKS,
    Comatose,
    Greedy,
    Leaving,
    Poisonous,
    Sleepy,
    Suicidal,
    Troubled,
    Unloadable,
    disturbed,
    undisturbed,
)
from tests.sampling.exact import assert_same, make_layout, run


def processes(folder: Path) -> int:
    return len(list(folder.glob("pid-*")))


def test_kill_9_of_a_worker_costs_nothing_but_time(tmp_path: Path) -> None:
    store = MemoryStore()
    found = disturbed(Suicidal(tmp_path, call=5), executor=ProcessExecutor(1), store=store)
    assert (tmp_path / "struck").exists()
    assert processes(tmp_path) == 2, "the worker was not replaced"
    assert len(store.finished()) == CHUNKS
    assert_same(found, undisturbed())
    assert not multiprocessing.active_children()


def test_without_sigkill_workers_are_replaced_and_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, where `signal` has no SIGKILL, and pipes are of another class."""
    model = Leaving(tmp_path, call=5)
    monkeypatch.delattr(signal, "SIGKILL")
    monkeypatch.setattr(
        "localsmooth.execution.processes.Connection",
        type("Other", (), {"__class_getitem__": classmethod(lambda cls, _: cls)}),
    )
    found = disturbed(model, executor=ProcessExecutor(1))
    assert processes(tmp_path) == 2, "the worker was not replaced"
    assert_same(found, undisturbed())
    assert not multiprocessing.active_children()


def test_stopping_early_counts_the_same_samples_and_keeps_no_others() -> None:
    store = MemoryStore()
    found = run(plan=STOPPED_PLAN, layout=STOPPED_LAYOUT, executor=ProcessExecutor(2), store=store)
    expected = run(plan=STOPPED_PLAN, layout=STOPPED_LAYOUT)
    assert_equal(found, expected)
    assert_holds_what_counts(store, expected)


def test_out_of_memory_in_the_model_halves_the_batch_and_changes_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    found = disturbed(Greedy(tmp_path), executor=ProcessExecutor(1), store=store, batch_size=8)
    assert_same(found, undisturbed())
    assert {chunk.batch_size for chunk in store.finished().values()} <= {1, 2}


@pytest.mark.long
def test_a_chunk_that_hangs_is_drawn_by_another_worker(tmp_path: Path) -> None:
    found = disturbed(Sleepy(tmp_path, call=8), executor=ProcessExecutor(2))
    assert (tmp_path / "struck").exists()
    assert_same(found, undisturbed())


def test_a_worker_that_hangs_for_ever_is_replaced_and_its_chunk_drawn_again(tmp_path: Path) -> None:
    store = MemoryStore()
    found = disturbed(Sleepy(tmp_path, call=5), executor=ProcessExecutor(1, chunk_time_limit=3.0), store=store)
    assert (tmp_path / "struck").exists()
    assert processes(tmp_path) == 2, "the worker was not replaced"
    assert len(store.finished()) == CHUNKS
    assert_same(found, undisturbed())
    assert not multiprocessing.active_children()


@pytest.mark.long
def test_a_chunk_that_hangs_every_time_is_named_like_any_other_that_fails() -> None:
    plan = SamplingPlan(n_candidate=10, n_bound=10, chunk_size=10)
    with pytest.raises(PoisonedChunksError, match=r"3 tries\): ChunkHung: it was not done after 1 s"):
        run(Comatose(), plan=plan, layout=make_layout(cells=(1, 1)), executor=ProcessExecutor(1, chunk_time_limit=1.0))


def test_poisoned_chunks_are_named_with_what_the_model_said() -> None:
    store = MemoryStore()
    with pytest.raises(PoisonedChunksError, match="ValueError: too bright") as caught:
        disturbed(Poisonous(), executor=ProcessExecutor(1), store=store)
    assert 0 < len(store.finished()) < CHUNKS
    assert "tests/faults/trouble.py" in caught.value.chunks[0].trouble.details
    assert_same(disturbed(Troubled(Path("/")), executor=ProcessExecutor(1), store=store), undisturbed())


def test_models_that_cannot_travel_are_one_error() -> None:
    model = CallableModel(lambda batch: batch, name="local", bounds=None, classes=2)
    with pytest.raises(InvalidInputError, match="cannot be sent to another process"):
        disturbed(model, executor=ProcessExecutor(1))
    with pytest.raises(WorkerError, match="No module named 'network'"):
        disturbed(Unloadable(), executor=ProcessExecutor(1))


@pytest.mark.parametrize("change", [{"workers": 0}, {"gpus_per_worker": -1}, {"gpus_per_worker": float("nan")}])
def test_impossible_numbers_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(change))):
        ProcessExecutor(**change)  # type: ignore[arg-type]


def test_more_gpus_than_there_are_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="there are 0"):
        disturbed(Troubled(Path("/")), executor=ProcessExecutor(1, gpus_per_worker=1))


@pytest.mark.parametrize(
    ("gpus", "most", "shares"),
    [
        (1.0, 4, [["0"], ["1"], ["2"], ["3"]]),
        (2.0, 2, [["0", "1"], ["2", "3"]]),
        (3.0, 1, [["0", "1", "2"]]),
        (0.5, 8, [["0"], ["0"], ["1"], ["1"], ["2"], ["2"], ["3"], ["3"]]),
        (0.4, 8, [["0"], ["0"], ["1"], ["1"], ["2"], ["2"], ["3"], ["3"]]),
    ],
)
def test_gpus_are_dealt_out_in_blocks(gpus: float, most: int, shares: list[list[str]]) -> None:
    places = ["0", "1", "2", "3"]
    assert _most(places, gpus) == most
    assert [list(_share(places, gpus, worker)) for worker in range(most)] == shares
