"""Threads draw the same tallies as one chunk after the other, pass on what goes wrong, and leave torch as it was."""

from __future__ import annotations

import inspect
import threading
import time

import numpy as np
import pytest
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import (
    EXECUTORS,
    PoisonedChunksError,
    SerialExecutor,
    ThreadExecutor,
    default_executor,
    draw_subject,
    named_executor,
    sample,
)
from localsmooth.layout import grid_layout
from localsmooth.models import CallableModel, Model, OutputKind, TorchModel
from localsmooth.noise import Gaussian
from localsmooth.runs import MemoryStore, SamplingPlan
from localsmooth.sampling import ArraySubject, SamplingOptions
from tests.seeding import seeded

SHAPE = (6, 8)
LAYOUT = grid_layout((2, 2), SHAPE, minimum=0.2, maximum=0.8)
PLAN = SamplingPlan(n_candidate=40, n_bound=200, seed=7, chunk_size=16)
OPTIONS = SamplingOptions(batch_size=8, check_model=False)


def signs(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 0] > 0).astype(np.int64)


def subject_of(model: Model) -> ArraySubject:
    return ArraySubject(model, [torch.zeros(1, *SHAPE)], [LAYOUT], Gaussian(), 0)


def exact_model(function=signs) -> CallableModel:
    return CallableModel(function, name="signs", bounds=None, classes=2, output=OutputKind.LABELS)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_same_tallies_as_one_after_the_other(workers: int) -> None:
    items = [torch.zeros(1, *SHAPE), torch.full((1, *SHAPE), 0.1)]
    layouts = [grid_layout((2, 2), SHAPE, minimum=0.2, maximum=0.8)] * 2
    before = torch.get_num_threads()
    expected = sample(exact_model(), items, layouts, Gaussian(), PLAN, options=OPTIONS, executor=SerialExecutor())
    found = sample(exact_model(), items, layouts, Gaussian(), PLAN, options=OPTIONS, executor=ThreadExecutor(workers))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.candidate, other.candidate)
        np.testing.assert_array_equal(one.votes, other.votes)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("name", ["serial", "threads"])
def test_an_executor_may_be_named(name: str) -> None:
    assert type(named_executor(name)) is EXECUTORS[name]
    assert named_executor(kept := ThreadExecutor(3)) is kept
    item = [torch.zeros(1, *SHAPE)]
    expected = sample(exact_model(), item, [LAYOUT], Gaussian(), PLAN, options=OPTIONS)[0]
    found = sample(exact_model(), item, [LAYOUT], Gaussian(), PLAN, options=OPTIONS, executor=name)[0]
    np.testing.assert_array_equal(expected.votes, found.votes)


@pytest.mark.parametrize("wrong", ["treads", "", 4, ThreadExecutor, ["threads"], {}])
def test_what_is_no_executor_is_refused_before_anything_is_drawn(wrong: object) -> None:
    calls = 0

    def counted(batch: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return signs(batch)

    store = MemoryStore()
    unchecked = inspect.unwrap(draw_subject)  # users have no shape checker that speaks first
    with pytest.raises(InvalidInputError, match=r"^executor: got .*'serial', 'threads', 'processes', 'ray'"):
        unchecked(subject_of(exact_model(counted)), PLAN, store, executor=wrong)
    assert calls == 0
    assert not store.array_names()


def test_chunks_really_run_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=20)
    met = threading.Event()

    def waiting(batch: np.ndarray) -> np.ndarray:
        if not met.is_set():
            meeting.wait()
            met.set()
        return signs(batch)

    layout = grid_layout((2, 2), SHAPE, minimum=0.2, maximum=0.8)
    sample(
        exact_model(waiting),
        [torch.zeros(1, *SHAPE)],
        [layout],
        Gaussian(),
        PLAN,
        options=OPTIONS,
        executor=ThreadExecutor(2),
    )
    assert met.is_set()


def test_what_goes_wrong_in_a_thread_is_raised_and_finished_chunks_stay() -> None:
    calls = 0
    lock = threading.Lock()

    def breaking(batch: np.ndarray) -> np.ndarray:
        nonlocal calls
        with lock:
            calls += 1
            late = calls > 40
        return np.full(batch[:, 0].shape, 9 if late else 1, np.int64)

    store = MemoryStore()
    layout = grid_layout((2, 2), SHAPE, minimum=0.2, maximum=0.8)
    before = torch.get_num_threads()
    with pytest.raises(PoisonedChunksError, match="FaultyPredictionError"):
        sample(
            exact_model(breaking),
            [torch.zeros(1, *SHAPE)],
            [layout],
            Gaussian(),
            PLAN,
            store,
            options=OPTIONS,
            executor=ThreadExecutor(2),
        )
    assert 0 < len(store.finished()) < 64
    assert torch.get_num_threads() == before


def test_default_is_threads_for_torch_modules_on_the_cpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with seeded(0):
        network = TorchModel(torch.nn.Conv2d(1, 2, 1).eval(), bounds=None, classes=2)
    assert isinstance(default_executor(subject_of(network)), ThreadExecutor)
    assert isinstance(default_executor(subject_of(network.with_options(compile=True))), SerialExecutor)
    assert isinstance(default_executor(subject_of(exact_model())), SerialExecutor)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert isinstance(default_executor(subject_of(network)), SerialExecutor)


class Forgetful(torch.nn.Module):
    """Keeps its input between two steps of one forward pass, and gives other threads time to come between."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.held = batch.mean(1)
        time.sleep(0.002)
        return torch.stack([-self.held, self.held * self.weight], dim=1)


def test_modules_that_keep_things_within_a_call_do_not_mix_them() -> None:
    items = [torch.zeros(1, *SHAPE)]
    layouts = [grid_layout((2, 2), SHAPE, minimum=0.2, maximum=0.8)]
    model = TorchModel(Forgetful().eval(), bounds=None, classes=2)
    expected, found = (
        sample(model, items, layouts, Gaussian(), PLAN, options=OPTIONS, executor=executor)[0]
        for executor in (SerialExecutor(), ThreadExecutor(4))
    )
    np.testing.assert_array_equal(expected.votes, found.votes)
    np.testing.assert_array_equal(expected.candidate, found.candidate)


def test_replicas_share_weights_and_nothing_else() -> None:
    model = TorchModel(Forgetful().eval(), bounds=None, classes=2)
    other = model.replica()
    assert other.module is not model.module
    assert other.module.weight is model.module.weight


def test_modules_with_hooks_or_without_copies_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    hooked = Forgetful().eval()
    hooked.register_forward_hook(lambda *_: None)
    assert isinstance(default_executor(subject_of(TorchModel(hooked, bounds=None, classes=2))), SerialExecutor)
    locked = Forgetful().eval()
    locked.lock = threading.Lock()  # cannot be copied
    assert isinstance(default_executor(subject_of(TorchModel(locked, bounds=None, classes=2))), SerialExecutor)


class Scratch(torch.nn.Module):
    """Keeps its input in a buffer between two steps of one forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("held", torch.zeros(8, *SHAPE))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.held[: len(batch)] = batch.mean(1)
        time.sleep(0.002)
        seen = self.held[: len(batch)].clone()
        return torch.stack([-seen, seen], dim=1)


def test_threads_do_not_share_buffers() -> None:
    items = [torch.full((1, *SHAPE), level) for level in (-5.0, 5.0)]
    model = TorchModel(Scratch().eval(), bounds=None, classes=2)
    for number, tally in enumerate(
        sample(model, items, [LAYOUT] * 2, Gaussian(), PLAN, options=OPTIONS, executor=ThreadExecutor(4))
    ):
        assert (tally.candidate == number).all()
        assert (tally.votes == tally.n).all()
