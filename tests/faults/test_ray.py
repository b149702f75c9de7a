"""Ray draws the same tallies as one chunk after the other, whatever happens to actors and nodes."""

from __future__ import annotations

import builtins
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import PoisonedChunksError, RayExecutor, SerialExecutor
from localsmooth.execution.fleet import WorkerError
from localsmooth.models import Preprocessing, TorchModel
from localsmooth.runs import DirectoryStore, MemoryStore
from localsmooth.scenes import UNet
from tests.execution.test_stopping import LAYOUT as STOPPED_LAYOUT
from tests.execution.test_stopping import PLAN as STOPPED_PLAN
from tests.execution.test_stopping import assert_equal, assert_holds_what_counts
from tests.faults.trouble import CHUNKS, PLAN, Poisonous, Sleepy, Suicidal, Troubled, Unloadable, disturbed, undisturbed
from tests.sampling.exact import assert_same, run
from tests.seeding import seeded

ray: Any = pytest.importorskip("ray", reason="needs Ray (pip install localsmooth[distributed])")
QUIET = {"log_to_driver": False, "logging_level": "ERROR"}


@pytest.fixture(scope="module")
def local() -> Generator[None]:
    """Two cores' worth of Ray, which the executors find initialised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        with seeded(0):  # it draws its own names
            ray.init(num_cpus=2, include_dashboard=False, **QUIET)
    yield
    ray.shutdown()


def test_two_actors_draw_the_same_tallies_as_one_chunk_after_the_other(local: None, tmp_path: Path) -> None:
    with seeded(0):
        model = TorchModel(
            UNet(width=4, classes=4).eval(), bounds=None, classes=4, preprocessing=Preprocessing(pad_multiple=8)
        )
    torch.set_num_threads(1)
    with DirectoryStore(tmp_path) as store:
        found = disturbed(model, executor=RayExecutor(workers=2), store=store)
        assert len(store.finished()) == CHUNKS
    assert_same(found, disturbed(model, executor=SerialExecutor()))
    assert found.votes.min() < found.n


@pytest.mark.long
def test_an_actor_that_hangs_for_ever_is_replaced_and_its_chunk_drawn_again(local: None, tmp_path: Path) -> None:
    store = MemoryStore()
    executor = RayExecutor(workers=1, chunk_time_limit=5.0)
    found = disturbed(Sleepy(tmp_path, call=5), executor=executor, store=store)
    assert len(list(tmp_path.glob("pid-*"))) == 2, "the actor was not replaced"
    assert len(store.finished()) == CHUNKS
    assert_same(found, undisturbed())


def test_an_actor_that_dies_is_replaced_and_its_chunk_drawn_again(local: None, tmp_path: Path) -> None:
    store = MemoryStore()
    found = disturbed(Suicidal(tmp_path, call=5), executor=RayExecutor(workers=1), store=store)
    assert len(list(tmp_path.glob("pid-*"))) == 2, "the actor was not replaced"
    assert len(store.finished()) == CHUNKS
    assert_same(found, undisturbed())
    assert ray.is_initialized(), "a cluster that was there before is left as it was"


@pytest.mark.long
def test_stopping_early_counts_the_same_samples_and_keeps_no_others(local: None) -> None:
    store = MemoryStore()
    found = run(plan=STOPPED_PLAN, layout=STOPPED_LAYOUT, executor=RayExecutor(workers=2), store=store)
    expected = run(plan=STOPPED_PLAN, layout=STOPPED_LAYOUT)
    assert_equal(found, expected)
    assert_holds_what_counts(store, expected)


class PoisonousThere(Poisonous):
    """Fails in other processes than the first."""

    def __init__(self) -> None:
        super().__init__()
        self.home = os.getpid()

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        if os.getpid() != self.home and float(batch[0, 0, 0, 0]) > 1.5:
            raise ValueError("too bright")
        return super().__call__(batch)


@pytest.mark.long
def test_poisoned_chunks_are_named_with_what_the_model_said(local: None) -> None:
    store = MemoryStore()
    with pytest.raises(PoisonedChunksError, match="ValueError: too bright"):
        disturbed(PoisonousThere(), executor=RayExecutor(workers=1), store=store)
    assert 0 < len(store.finished()) < CHUNKS
    assert_same(disturbed(Troubled(Path("/")), executor=RayExecutor(workers=1), store=store), undisturbed())


@pytest.mark.long
def test_models_that_cannot_travel_are_one_error(local: None) -> None:
    with pytest.raises(WorkerError, match="No module named 'network'"):
        disturbed(Unloadable(), executor=RayExecutor(workers=1))


def test_gpus_that_no_node_has_are_refused(local: None) -> None:
    with pytest.raises(InvalidInputError, match="0 GPUs"):
        disturbed(Troubled(Path("/")), executor=RayExecutor(workers=1, gpus_per_worker=1))


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name == "ray" or name.startswith("ray."):
            raise ImportError("No module named 'ray'")
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", missing)
    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(InvalidInputError, match=r"localsmooth\[distributed\]"):
        RayExecutor()


@pytest.mark.long
@seeded(0)  # Ray draws from the global generator when a cluster of several nodes is made, or one of them goes
def test_kill_9_of_a_node_in_the_middle_costs_nothing_but_time(tmp_path: Path) -> None:
    """Two raylets, one worker on each; the second node is killed while its actor is at work."""
    from ray.cluster_utils import Cluster

    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, **QUIET)
    killed: list[int] = []
    try:
        with DirectoryStore(tmp_path / "run") as store:
            commit = store.commit

            def kill_node(record: Any) -> bool:
                kept = commit(record)
                if not killed and len(list(tmp_path.glob("pid-*"))) == 2:
                    killed.append(len(store.finished()))
                    cluster.remove_node(second, allow_graceful=False)
                return kept

            store.commit = kill_node  # type: ignore[method-assign]
            executor = RayExecutor(workers=2)
            found = disturbed(Troubled(tmp_path, seconds=0.3), executor=executor, store=store)
            assert killed
            assert killed[0] < CHUNKS - 5, "the node was not killed in the middle"
            assert len(store.finished()) == CHUNKS
        assert_same(found, undisturbed(PLAN))
    finally:
        ray.shutdown()
        cluster.shutdown()
