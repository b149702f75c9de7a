"""Find the batch size and the memory order that the model runs fastest with, by timing a few forward passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from localsmooth.memory import is_out_of_memory
from localsmooth.models import Model
from localsmooth.runs import Store, StoreError
from localsmooth.sampling.options import BatchSize, SamplingOptions

__all__ = ["AdjustableModel", "Calibration", "calibrate", "keep_calibration", "recall_calibration"]

_CALIBRATION = "calibration"
_WORTHWHILE = 1.02
_GIVE_UP = 0.85
_LARGEST_BATCH = 1024
_FINALISTS = 4
_FAIR_TRIAL = 8
_SLOWER = 3  # sizes in a row that are slower before larger ones are given up
_REPEATS = 3


@runtime_checkable
class AdjustableModel(Protocol):
    """A model that can be run in another memory order or precision."""

    channels_last: bool
    precision: torch.dtype | None

    def with_options(
        self,
        *,
        precision: torch.dtype | EllipsisType | None = ...,
        channels_last: bool | None = None,
        compile: bool | None = None,
    ) -> Model:
        """Make the same model with other settings."""
        ...


@dataclass(frozen=True, eq=False)
class Calibration:
    """What was measured and chosen.

    Parameters
    ----------
    model
        The model in the memory order that was chosen.
    batch_size
        The batch size that was chosen.
    rates
        Samples per second for every (channels last, batch size) tried.
    warnings
        What the user should reconsider.
    """

    model: Model
    batch_size: BatchSize
    rates: dict[tuple[bool, int], float]
    warnings: tuple[str, ...] = ()

    def summary(self) -> str:
        """The choice in one line."""
        if not self.rates:
            return f"batch size {self.batch_size.samples}, as given"
        (order, size), rate = _preferred(self.rates)
        words = "channels-last" if order else "the model's own"
        return (
            f"batch size {size}, {words} memory order, chosen by timing ({rate:,.1f} samples/s by the "
            "forward pass alone, of what one output group sees, without noise and counting)"
        )


def calibrate(
    model: Model,
    shape: tuple[int, ...],
    *,
    batch_size: int | None = None,
    channels_last: bool | None = None,
    largest: int = _LARGEST_BATCH,
    dtype: torch.dtype = torch.float32,
    seconds: float = 4.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Calibration:
    """Time forward passes on random inputs, doubling the batch size while that pays.

    Parameters
    ----------
    model
        The model. Its memory order can be chosen if it is an `AdjustableModel`.
    shape
        Shape of one (cropped) item.
    batch_size, channels_last
        Fixed by hand; None to find them.
    largest
        Largest batch size to try.
    dtype
        Type of the inputs.
    seconds
        Time after which no further trial starts.
    clock
        Seconds, monotonic.
    """
    orders = _orders(model, shape, channels_last)
    ignored = channels_last is not None and not isinstance(model, AdjustableModel)
    notes = ("channels_last has no effect on this model: its memory order cannot be chosen",) if ignored else ()
    elements = max(1, torch.Size(shape).numel())
    end = clock() + seconds
    if batch_size is not None and len(orders) == 1:
        chosen = next(iter(orders.values()))
        notes += _slow_precision(chosen, shape, batch_size, dtype, clock)
        return Calibration(chosen, BatchSize(batch_size), {}, notes)
    rates: dict[tuple[bool, int], float] = {}
    growing, slower = set(orders), dict.fromkeys(orders, 0)
    size = 1 if batch_size is None else batch_size
    while growing and size <= max(largest, batch_size or 1):
        for order in sorted(growing, reverse=True):
            # One trial per memory order always runs; a batch twice as large takes about twice as long.
            previous = rates.get((order, size // 2))
            if previous is not None and clock() + 2 * size / previous > end:
                growing.discard(order)
                continue
            rate = _rate(orders[order], (size, *shape), dtype, clock, patience=seconds / 40)
            if rate is None:
                growing.discard(order)
                continue
            rates[order, size] = rate
            best = max(r for (o, _), r in rates.items() if o == order)
            # The order that loses with small batches may win with large ones: it gets a few sizes to show that.
            behind = size >= _FAIR_TRIAL and best < _GIVE_UP * max(rates.values())
            slower[order] = slower[order] + 1 if rate < _GIVE_UP * best else 0
            if slower[order] >= _SLOWER or behind:
                growing.discard(order)
        if batch_size is not None:
            break
        size *= 2
    if not rates:
        return Calibration(model, BatchSize(1), {}, ("the model runs out of memory on a single sample",))
    _repeat_best(rates, orders, shape, dtype, clock, end)
    (order, size), _ = _preferred(rates)
    chosen = orders[order]
    picked = BatchSize(size, elements if batch_size is None else None)
    return Calibration(chosen, picked, rates, notes + _slow_precision(chosen, shape, size, dtype, clock))


def _repeat_best(
    rates: dict[tuple[bool, int], float],
    orders: dict[bool, Model],
    shape: tuple[int, ...],
    dtype: torch.dtype,
    clock: Callable[[], float],
    end: float,
) -> None:
    """Time the best few again in turn while there is time: on a busy machine one trial may have been disturbed."""
    best = sorted(rates, key=lambda key: -rates[key])[:_FINALISTS]
    for _ in range(_REPEATS if len(best) > 1 else 0):
        for order, size in best:
            if clock() + 2 * size / rates[order, size] > end:
                return
            again = _rate(orders[order], (size, *shape), dtype, clock, patience=0.0)
            rates[order, size] = max(rates[order, size], again or 0.0)


def _orders(model: Model, shape: tuple[int, ...], channels_last: bool | None) -> dict[bool, Model]:
    """The memory orders to try, with the model in each."""
    if not isinstance(model, AdjustableModel):
        return {False: model}
    if channels_last is not None:
        return {channels_last: model.with_options(channels_last=channels_last)}
    if len(shape) not in (3, 4):
        return {model.channels_last: model}
    return {order: model.with_options(channels_last=order) for order in (False, True)}


def _preferred(rates: dict[tuple[bool, int], float]) -> tuple[tuple[bool, int], float]:
    """The fastest, or the smallest batch that is as fast but for timing noise: it needs less memory."""
    fastest = max(rates.values())
    good = [entry for entry in rates.items() if entry[1] * _WORTHWHILE >= fastest]
    return min(good, key=lambda entry: (entry[0][1], -entry[1]))


def _rate(
    model: Model, shape: tuple[int, ...], dtype: torch.dtype, clock: Callable[[], float], patience: float
) -> float | None:
    """Samples per second, from the fastest of a few passes; None if memory does not suffice."""
    try:
        with torch.inference_mode():
            generator = torch.Generator(model.device).manual_seed(0)
            batch = torch.rand(shape, dtype=dtype, device=model.device, generator=generator)
            durations: list[float] = []
            began = clock()
            while not durations or (len(durations) < 4 and clock() - began < 4 * patience):
                started = clock()
                model(batch)
                if model.device.type == "cuda":
                    torch.cuda.synchronize(model.device)
                durations.append(clock() - started)
            # The first pass may have set things up; with a second one, it does not count.
            return shape[0] / max(min(durations[1:] or durations), 1e-9)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return None


def _slow_precision(
    model: Model, shape: tuple[int, ...], size: int, dtype: torch.dtype, clock: Callable[[], float]
) -> tuple[str, ...]:
    """Warn where a reduced precision is slower than the model's own, as it is on CPUs without support for it."""
    if not isinstance(model, AdjustableModel) or model.precision is None:
        return ()
    size = min(size, 4)
    own = _rate(model.with_options(precision=None), (size, *shape), dtype, clock, patience=0.05)
    reduced = _rate(model, (size, *shape), dtype, clock, patience=0.05)
    if own is None or reduced is None or reduced >= own:
        return ()
    return (
        f"{model.precision} is {own / reduced:.1f}x slower than the model's own precision on this device; "
        "leave the precision out",
    )


def recall_calibration(model: Model, store: Store, options: SamplingOptions) -> Calibration | None:
    """What an interrupted run had chosen, so that all of its chunks are drawn alike; None if that is not known.

    A batch size or memory order that is fixed by hand now takes precedence.

    Raises
    ------
    StoreError
        If what is kept is none.
    """
    if not store.has_array(_CALIBRATION) or options.batch_size is not None or options.channels_last is not None:
        return None
    kept = store.get_array(_CALIBRATION)
    if kept.shape != (3,) or kept.dtype.kind != "i" or not (kept[0] >= 1 and kept[1] >= 0):
        raise StoreError(
            f"array {_CALIBRATION!r} of the store holds no batch size. Delete its file and start the run again"
        )
    samples, elements, channels_last = (int(value) for value in kept)
    if isinstance(model, AdjustableModel):
        model = model.with_options(channels_last=bool(channels_last))
    return Calibration(model, BatchSize(samples, elements or None), {})


def keep_calibration(store: Store, calibration: Calibration) -> None:
    """Keep what was chosen beside the tallies."""
    size, model = calibration.batch_size, calibration.model
    order = isinstance(model, AdjustableModel) and model.channels_last
    store.put_array(_CALIBRATION, np.array([size.samples, size.elements or 0, order], dtype=np.int64))
