"""The calibration picks what is fastest by its clock, and says what it picked."""

from __future__ import annotations

import io
from types import EllipsisType

import pytest
import torch
from rich.console import Console

from localsmooth.execution import RichProgress
from localsmooth.memory import is_out_of_memory
from localsmooth.models import Model, OutputKind
from localsmooth.sampling import BatchSize, calibrate
from tests.sampling.exact import ExactModel, assert_same, run


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Timed(Model):
    """Takes the time that a table says, on a clock of its own."""

    def __init__(self, clock: Clock, cost: dict[bool, float], best: int, memory: int = 10**6) -> None:
        self.bounds, self.output, self.classes = None, OutputKind.LOGITS, 2
        self.device = torch.device("cpu")
        self.clock, self.cost, self.best, self.memory = clock, cost, best, memory
        self.channels_last = False
        self.precision: torch.dtype | None = None

    @property
    def evaluated_in(self) -> str:
        return "float32" if self.precision is None else str(self.precision).removeprefix("torch.")

    def with_options(
        self,
        *,
        precision: torch.dtype | EllipsisType | None = ...,
        channels_last: bool | None = None,
        compile: bool | None = None,
    ) -> Timed:
        del compile
        made = Timed(self.clock, self.cost, self.best, self.memory)
        made.channels_last = self.channels_last if channels_last is None else channels_last
        made.precision = self.precision if isinstance(precision, EllipsisType) else precision
        return made

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        n = batch.shape[0]
        if n > self.memory:
            raise torch.OutOfMemoryError("out of memory")
        slow = 10.0 if self.precision is not None else 1.0
        # Overheads weigh on small batches, and batches beyond the cache are slower.
        self.clock.now += slow * self.cost[self.channels_last] * (0.5 + n + max(0, n - self.best))
        return torch.zeros(n, 2, *batch.shape[2:])

    def fingerprint(self) -> str:
        return "timed"


def test_the_fastest_batch_size_and_memory_order_are_found() -> None:
    clock = Clock()
    found = calibrate(Timed(clock, {False: 0.02, True: 0.01}, best=8), (1, 4, 6), clock=clock, seconds=10.0)
    assert found.batch_size == BatchSize(8, 24)
    assert isinstance(found.model, Timed)
    assert found.model.channels_last
    assert "batch size 8, channels-last" in found.summary()
    assert "samples/s by the forward pass alone, of what one output group sees, without noise" in found.summary()
    assert clock.now < 10


def test_calibration_ends_in_time_for_slow_models() -> None:
    clock = Clock()
    found = calibrate(Timed(clock, {False: 2.0, True: 3.0}, best=64), (1, 4, 6), clock=clock, seconds=4.0)
    assert not found.model.channels_last  # type: ignore[attr-defined]
    assert clock.now < 30


def test_lack_of_memory_bounds_the_batch_size() -> None:
    clock = Clock()
    model = Timed(clock, {False: 1e-4, True: 1e-4}, best=64, memory=5)
    assert calibrate(model, (1, 4, 6), clock=clock).batch_size.samples == 4


def test_choices_by_hand_are_kept() -> None:
    clock = Clock()
    model = Timed(clock, {False: 0.02, True: 0.01}, best=8)
    by_hand = calibrate(model, (1, 4, 6), clock=clock, batch_size=3, channels_last=False)
    assert by_hand.batch_size == BatchSize(3)
    assert clock.now == 0
    assert not by_hand.model.channels_last  # type: ignore[attr-defined]
    assert calibrate(model, (1, 4, 6), clock=clock, batch_size=3).model.channels_last  # type: ignore[attr-defined]
    only_order = calibrate(model, (1, 4, 6), clock=clock, channels_last=False)
    assert only_order.batch_size.samples == 8
    assert not only_order.model.channels_last  # type: ignore[attr-defined]


def test_a_precision_that_is_slower_is_warned_about() -> None:
    clock = Clock()
    model = Timed(clock, {False: 0.01, True: 0.01}, best=8).with_options(precision=torch.bfloat16)
    found = calibrate(model, (1, 4, 6), clock=clock)
    assert len(found.warnings) == 1
    assert "torch.bfloat16 is 10.0x slower" in found.warnings[0]


def test_an_order_that_a_model_does_not_take_is_not_passed_over_in_silence() -> None:
    found = calibrate(ExactModel(), (1, 4, 6), batch_size=2, channels_last=True)
    assert "channels_last has no effect" in found.warnings[0]


def test_smaller_windows_get_as_many_elements_per_batch() -> None:
    assert BatchSize(8, 100).of(100) == 8
    assert BatchSize(8, 100).of(25) == 32
    assert BatchSize(8, 100).of(10**6) == 1
    assert BatchSize(8).of(25) == 8


def test_a_calibrated_run_has_the_same_tallies() -> None:
    assert_same(run(batch_size=None, calibration_seconds=0.05), run())


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("Non-zero status code: bad_alloc"), True),
        (RuntimeError("shape mismatch"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_lack_of_memory_is_recognised(error: Exception, is_memory: bool) -> None:
    assert is_out_of_memory(error) is is_memory


def console(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120)


def test_the_bar_shows_rate_and_time_left_on_a_terminal() -> None:
    screen = console(terminal=True)
    run(progress=RichProgress(screen))
    assert isinstance(screen.file, io.StringIO)
    assert "samples/s" in screen.file.getvalue()
    assert "220/220" in screen.file.getvalue()


def test_no_bar_is_drawn_where_there_is_no_terminal() -> None:
    quiet = console(terminal=False)
    run(progress=RichProgress(quiet))
    assert isinstance(quiet.file, io.StringIO)
    lines = quiet.file.getvalue().splitlines()
    assert lines[:2] == ["batch size 8, as given", "Sampling: 220 samples, 0 of them stored earlier"]
    assert lines[-1].startswith("220 samples in ")
    assert all(line.startswith("Sampling: ") for line in lines[1:-1])  # a line a minute, and no bar


def test_reduced_precision_says_what_is_certified() -> None:
    from localsmooth.execution import sample
    from localsmooth.layout import isotropic_layout
    from localsmooth.noise import Gaussian
    from localsmooth.runs import SamplingPlan
    from localsmooth.sampling import SamplingOptions

    screen = console(terminal=False)
    model = Timed(Clock(), {False: 1.0, True: 1.0}, 1).with_options(precision=torch.float16)
    sample(
        model,
        [torch.zeros(1, 4, 6)],
        [isotropic_layout(1.0, (4, 6), (4, 6))],
        Gaussian(),
        SamplingPlan(1, 1),
        options=SamplingOptions(batch_size=1, channels_last=False, check_model=False),
        progress=RichProgress(screen),
    )
    assert isinstance(screen.file, io.StringIO)
    assert "about the network as it runs in this precision" in screen.file.getvalue().replace("\n", " ")


class Bumpy(Timed):
    """Twice as slow per sample in batches of two as alone, and fastest in large ones, as some recurrent models are."""

    def with_options(self, **options: object) -> Bumpy:  # type: ignore[override]
        return self

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        n = batch.shape[0]
        self.clock.now += n * {1: 0.01, 2: 0.02}.get(n, 0.0025)
        return torch.zeros(n, 2, *batch.shape[2:])


def test_one_slow_size_does_not_end_the_search() -> None:
    clock = Clock()
    found = calibrate(Bumpy(clock, {False: 0.0, True: 0.0}, best=0), (1, 4, 6), clock=clock, seconds=10.0)
    assert found.batch_size.samples >= 4
