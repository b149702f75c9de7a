"""Arrays under noise: what is drawn of images, volumes, sequences and tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Integer, Num

from localsmooth.errors import InvalidInputError, LocalsmoothError
from localsmooth.layout import Layout, item_digest
from localsmooth.memory import is_out_of_memory
from localsmooth.models import Model, check_batch, check_item, check_model
from localsmooth.noise import Noise, PreparedNoise, Randomness
from localsmooth.runs import RunIdentity, SamplingPlan, Store, digest
from localsmooth.sampling.calibration import (
    AdjustableModel,
    Calibration,
    calibrate,
    keep_calibration,
    recall_calibration,
)
from localsmooth.sampling.counter import Counters
from localsmooth.sampling.options import BatchSize, SamplingOptions
from localsmooth.sampling.predictions import Predictions
from localsmooth.sampling.region import Region
from localsmooth.sampling.subject import PreparedGroup, Ready, Subject

__all__ = ["ArraySubject", "describe_run", "prepare_items"]

_TRIAL_STREAM = 2  # beside the two stages, so that no sample of a trial is ever counted
_TRIAL_SAMPLES = 5
_FITTED_ELSEWHERE = "Fit levels and groups on other items, or certify others"
_TOGETHER = 2  # samples in a batch when labels are compared


@dataclass(frozen=True, eq=False)
class ArraySubject(Subject):
    """Items under additive or flipping noise, and a model that takes batches of them.

    Parameters
    ----------
    model
        The base classifier.
    items
        Items to smooth, each of shape (*channels, *spatial), all in the precision in which noise is drawn.
    layouts
        One layout per item.
    noise
        The family of smoothing distributions.
    seed
        The run's seed.
    counters
        What each stage counts.
    """

    model: Model
    items: Sequence[torch.Tensor]
    layouts: Sequence[Layout]
    noise: Noise
    seed: int
    counters: Counters = field(default_factory=Counters)

    @property
    def classes(self) -> int:
        """Number of the model's classes."""
        return self.model.classes

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return self.model.device

    @property
    def concurrent(self) -> bool:
        """Whether the model allows it."""
        return self.model.concurrent

    def prepare(self, item: int, group: int) -> PreparedGroup:
        """Crop one item to what a group's model call sees, and set its noise up."""
        tensor = self.items[item]
        if self.device.type == "cuda":
            tensor = tensor.pin_memory().to(self.device, non_blocking=True)
        return _ArrayGroup(self, Region.of(self.layouts[item], group, self.device), tensor.to(self.device))

    def stream(self, key: tuple[int, ...]) -> Randomness:
        """Return the stream of the seed and a key, where the model runs."""
        return Randomness(self.seed, key, self.device)

    def describe(self, plan: SamplingPlan) -> RunIdentity:
        """Describe a run by all that affects its tallies."""
        return describe_run(self.model, self.items, self.layouts, self.noise, plan, self.counters)

    def replica(self) -> ArraySubject:
        """Return the same subject with a model of its own."""
        return replace(self, model=self.model.replica())

    def notes(self) -> tuple[str, ...]:
        """Say which precision the certificate will be about."""
        if self.model.evaluated_in in ("float32", "float64"):
            return ()
        return (
            f"{self.model.evaluated_in}: the certificate will be about the network as it runs in this precision, "
            "rounding included, and not about the same network in full precision. Deploy it as it was certified",
        )

    def try_out(self) -> None:
        """Refuse a model that is random, mixes the samples of a batch, or returns something else than it declares.

        Raises
        ------
        InvalidInputError
            Saying what the model does wrong.
        """
        crop = Region.of(self.layouts[0], 0).of_item(self.items[0].to(self.device)).contiguous()
        check_model(self._base_classifier(0, 0), crop, samples=self._trial_samples(0, 0))

    def get_ready(
        self, plan: SamplingPlan, store: Store, options: SamplingOptions, conditions: AbstractContextManager[None]
    ) -> Ready:
        """Calibrate, or recall what an interrupted run had chosen, and try the model with batches of that size."""
        calibration = recall_calibration(self.model, store, options)
        if calibration is None:
            with conditions:
                calibration = self._calibrate(plan, options)
            keep_calibration(store, calibration)
        subject = replace(self, model=calibration.model)
        if options.check_model:
            subject.try_batch(calibration.batch_size, plan)
        return Ready(subject, calibration.batch_size, (calibration.summary(), *calibration.warnings))

    def try_batch(self, batch_size: BatchSize, plan: SamplingPlan) -> None:
        """Refuse a model that mixes samples, or predicts otherwise, in batches as large as those of the run.

        Tried are the largest window and the one with the largest batches, with full batches; sizes in between and the
        smaller batches at the end of chunks are not.

        Parameters
        ----------
        batch_size, plan
            Of the run.

        Raises
        ------
        InvalidInputError
            Saying what the model does wrong.
        """
        longest = min(plan.chunk_size, max(plan.n_candidate, plan.n_bound))
        sizes = {place: int(np.prod(shape)) for place, shape in self._windows().items()}
        for item, group in {max(sizes, key=lambda place: sizes[place]), min(sizes, key=lambda place: sizes[place])}:
            model, samples = self._base_classifier(item, group), self._trial_samples(item, group)
            size = min(batch_size.of(sizes[item, group]), longest)
            while True:
                try:
                    check_batch(model, samples, size)
                    break
                except (MemoryError, RuntimeError) as error:
                    if size == 1 or not is_out_of_memory(error):
                        raise
                size //= 2  # as the run will

    def clean_labels(self, item: int) -> Integer[np.ndarray, "..."]:
        """Ask the model once about the item, or once about every window."""
        layout, model = self.layouts[item], self.model.under(0.0)
        outputs = layout.outputs
        made = np.empty(outputs.shape, np.int32)
        for group in range(outputs.count if layout.views else 1):
            region = Region.of(layout, group, self.device)
            here = outputs.labels == group
            if not layout.views:
                here[...] = True
                region = replace(region, box=tuple(slice(0, size) for size in outputs.shape), index=None)
            with torch.inference_mode():
                shown = region.of_item(self.items[item].to(self.device)).contiguous()[None]
                labels = Predictions(model(shown), region, model.output, model.classes, 1).clean_labels()
            made[here] = labels
        return made

    def trial_labels(self, item: int, group: int, key: tuple[int, ...], count: int) -> Integer[np.ndarray, " labels"]:
        """Labels of a few samples, two at a time; the noise is the CPU's on every device."""
        model, made = self._base_classifier(item, group), list[np.ndarray]()
        region = Region.of(self.layouts[item], group, self.device)
        for few in self._noisy(item, group, count, key, torch.device("cpu")).split(_TOGETHER):
            with torch.inference_mode():
                outputs = model(few.to(self.device))
                predictions = Predictions(outputs, region, model.output, model.classes, len(few))
                made.append(predictions.labels.cpu().numpy().astype(np.int32).ravel())
        return np.concatenate(made)

    def _base_classifier(self, item: int, group: int) -> Model:
        return self.model.under(Region.of(self.layouts[item], group).level_map)

    def _trial_samples(self, item: int, group: int) -> torch.Tensor:
        return self._noisy(item, group, _TRIAL_SAMPLES, (item, group, _TRIAL_STREAM, 0), self.device)

    def _noisy(self, item: int, group: int, count: int, key: tuple[int, ...], device: torch.device) -> torch.Tensor:
        region = Region.of(self.layouts[item], group)
        crop = region.of_item(self.items[item].to(device)).contiguous()
        samples = torch.empty((count, *crop.shape), dtype=crop.dtype, device=device)
        self._prepared_noise(region, crop).draw(samples, Randomness(self.seed, key, device))
        return samples

    def _prepared_noise(self, region: Region, crop: torch.Tensor) -> PreparedNoise:
        return self.noise.prepare(crop, region.level_map, self.model.bounds, self.model.hidden_value)

    def _windows(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Shape of what each model call sees, by an item and output group that has it."""
        return {
            (number, group): _cropped_shape(tuple(item.shape), layout.view(group).inputs)
            for number, (item, layout) in enumerate(zip(self.items, self.layouts, strict=True))
            for group in range(len(layout.views or (0,)))
        }

    def _calibrate(self, plan: SamplingPlan, options: SamplingOptions) -> Calibration:
        """Calibrate for the largest window of the run; smaller ones get batches of as many elements."""
        try:
            found = calibrate(
                self.model.under(0.0),
                max(self._windows().values(), key=lambda shape: int(np.prod(shape))),
                batch_size=options.batch_size,
                channels_last=options.channels_last,
                largest=min(plan.chunk_size, max(plan.n_candidate, plan.n_bound)),
                dtype=options.item_dtype,
                seconds=options.calibration_seconds,
            )
            if not self.model.told:
                return found
            # What is kept of the trial is the memory order, and not what the model was told.
            chosen, model = found.model, self.model
            if isinstance(chosen, AdjustableModel) and isinstance(model, AdjustableModel):
                model = model.with_options(channels_last=chosen.channels_last)
            return replace(found, model=model)
        except LocalsmoothError:
            raise
        except Exception as error:  # a model may raise anything
            raise LocalsmoothError(
                f"the model raised {type(error).__name__} on random inputs, before any sample was drawn: {error}. "
                "Correct the model; a run directory that holds no samples yet can be deleted"
            ) from error


class _ArrayGroup(PreparedGroup):
    def __init__(self, subject: ArraySubject, region: Region, item: torch.Tensor) -> None:
        crop = region.of_item(item)
        self.shape = region.shape
        self.elements = crop.numel()
        self.precision = str(item.dtype)
        # The noise and what the model is told of it come from the one level map of the layout.
        self._model, self._region, self._crop = subject.model.under(region.level_map), region, crop
        self._noise = subject._prepared_noise(region, crop)  # pyright: ignore[reportPrivateUsage]
        self._buffer: torch.Tensor | None = None

    def draw(self, count: int, stream: Randomness) -> torch.Tensor:
        """Fill the first part of a buffer that is allocated once."""
        elements = count * self.elements
        if self._buffer is None or self._buffer.numel() < elements:
            self._buffer = torch.empty(elements, dtype=self._crop.dtype, device=self._crop.device)
        batch = self._buffer[:elements].view(count, *self._crop.shape)
        self._noise.draw(batch, stream)
        return batch

    def predict(self, batch: torch.Tensor) -> Predictions:
        model = self._model
        return Predictions(model(batch), self._region, model.output, model.classes, batch.shape[0])

    def inputs(self, batch: torch.Tensor) -> np.ndarray:
        return batch.cpu().numpy()

    @property
    def bytes_per_sample(self) -> int:
        return self.elements * self._crop.element_size()

    def release(self) -> None:
        self._buffer = None


def prepare_items(
    model: Model,
    items: Sequence[Num[torch.Tensor, "..."] | Num[np.ndarray, "..."]],
    layouts: Sequence[Layout],
    noise: Noise,
    dtype: torch.dtype,
) -> list[torch.Tensor]:
    """Check items and layouts against each other, and bring the items to the precision of the run.

    Raises
    ------
    InvalidInputError
        Naming what does not fit.
    """
    if len(items) != len(layouts) or not items:
        raise InvalidInputError(
            "layouts", f"{len(layouts)} layouts for {len(items)} items", "Pass at least one item, and a layout for each"
        )
    prepared: list[torch.Tensor] = []
    for index, (item, layout) in enumerate(zip(items, layouts, strict=True)):
        tensor = torch.as_tensor(item).detach().to("cpu", dtype).contiguous()
        shape = layout.inputs.shape
        if tuple(tensor.shape[tensor.ndim - len(shape) :]) != shape:
            raise InvalidInputError(
                f"items[{index}]",
                f"shape {tuple(tensor.shape)} does not end in the shape {shape} of the layout's input label map",
                "Make the layout from the item's own size",
            )
        check_item(model, tensor)
        noise.validate(layout.levels)
        noise.require_item(tensor)
        if model.told and (layout.levels.ndim > 2 or len(shape) >= tensor.ndim):
            raise InvalidInputError(
                "model",
                "it is told the noise, and the layout has levels of several parameters, or one for every channel",
                "Use noise of one level, and a layout of the axes behind the channels",
            )
        if layout.origins:
            given = torch.as_tensor(item).detach().to("cpu", torch.float32).numpy()
            # As the model gets it, and as people have it: with channels, coordinates or features last.
            for seen in (given, np.moveaxis(given, 0, -1)):
                layout.require_independent(item_digest(seen), f"items[{index}]", _FITTED_ELSEWHERE)
        prepared.append(tensor)
    return prepared


def _cropped_shape(shape: tuple[int, ...], crop: tuple[slice, ...] | None) -> tuple[int, ...]:
    if crop is None:
        return shape
    leading = len(shape) - len(crop)
    return shape[:leading] + tuple(
        len(range(*part.indices(size))) for part, size in zip(crop, shape[leading:], strict=True)
    )


def describe_run(
    model: Model,
    items: Sequence[torch.Tensor],
    layouts: Sequence[Layout],
    noise: Noise,
    plan: SamplingPlan,
    counters: Counters,
) -> RunIdentity:
    """Describe a run by all that affects its tallies: not by batch size, device, workers or memory format.

    Parameters
    ----------
    model, layouts, noise, plan, counters
        As in `sample`.
    items
        The items in the precision of the run.
    """
    return RunIdentity(
        {
            "plan": dict(plan.configuration()),
            "noise": dict(noise.configuration()),
            "model": {
                "fingerprint": model.fingerprint(),
                "output": model.output.name,
                "classes": model.classes,
                "bounds": None if model.bounds is None else [float(b) for b in model.bounds],
                "hidden_value": float(model.hidden_value),
            },
            "counters": dict(counters.configuration()),
            "items": [
                {"content": digest(item.cpu().numpy()), "precision": str(item.dtype), "layout": layout.digest()}
                for item, layout in zip(items, layouts, strict=True)
            ],
        }
    )
