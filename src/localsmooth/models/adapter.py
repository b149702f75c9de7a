"""What all adapters share: preprocess, run the network, turn its outputs into predictions."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import NoneType
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped

from localsmooth.errors import InvalidInputError, require_kind, require_number, require_several, require_whole_number
from localsmooth.models.base import Model, OutputKind
from localsmooth.models.denoiser import Denoiser
from localsmooth.models.outputs import (
    above_threshold,
    ambiguous,
    classes_first,
    cropped,
    require_classes_first,
    require_fitting_axis,
    resized,
)
from localsmooth.models.preprocessing import Number, Preprocessing
from localsmooth.models.told import encoded_levels, level_channel, level_map

__all__ = ["Adapter", "Bounds", "ClassAxis", "Upsample"]

Bounds = tuple[Number, Number]
Upsample = bool | tuple[int, ...]
ClassAxis = int | Literal["none"]


class Adapter(Model):
    """A model around somebody else's network; subclasses say how to run it.

    Parameters
    ----------
    bounds
        Smallest and largest value of a clean input, or None if unbounded.
    classes
        Number of classes; not needed with a threshold.
    output
        What the network returns; not needed with a threshold.
    preprocessing
        Padding and normalisation; None for neither.
    threshold
        For networks with one output channel: label 1 where its value exceeds this, else 0. In the channel's own units
        (0.5 for a probability map, 0 for a logit map).
    upsample
        True to interpolate scores to the size of the input, a shape to interpolate them to that shape, False to leave
        them as they are, None to do what is customary for the network.
    class_axis
        Axis of the network's output that holds the classes, the batch being axis 0: −1 where they lie last. Of labels,
        an axis of size 1 to leave out. "none" for a map without such an axis, that a threshold turns into labels. None
        for axis 1 of scores, and no such axis of labels; where the shape does not tell that from classes that lie
        last, it must be said.
    device
        Where batches are wanted.
    told
        Whether the network takes one channel more than the inputs have, behind their own, for the noise levels as
        `encoded_levels` writes them: log(level / (largest − smallest bound)), between −5 (no noise) and 5 (hidden).
    denoiser
        Applied to noisy inputs before anything else: a `Denoiser`, or what makes one that is not told the noise.

    Raises
    ------
    InvalidInputError
        If the arguments contradict each other.
    """

    def __init__(
        self,
        *,
        bounds: Bounds | None,
        classes: int | None,
        output: OutputKind,
        preprocessing: Preprocessing | None,
        threshold: Number | None,
        upsample: Upsample | None,
        class_axis: ClassAxis | None,
        device: torch.device,
        told: bool = False,
        denoiser: Denoiser | Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        if not isinstance(output, OutputKind):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may not check)
            raise InvalidInputError("output", f"got {output!r}", "Pass ls.OutputKind.LOGITS, .PROBABILITIES or .LABELS")
        self.bounds = None if bounds is None else _ordered(bounds)
        self.device = device
        require_kind("preprocessing", preprocessing, Preprocessing, NoneType)
        self._preprocessing = Preprocessing() if preprocessing is None else preprocessing
        made = denoiser if denoiser is None or isinstance(denoiser, Denoiser) else Denoiser(denoiser)
        self._denoiser: Denoiser | None = made
        self._widened = told
        self.told = told or (self._denoiser is not None and self._denoiser.told)
        self._threshold = threshold
        self._upsample = upsample
        self._class_axis: ClassAxis | None = _axis(class_axis, threshold is not None)
        if threshold is not None:
            if not math.isfinite(threshold):
                raise InvalidInputError("threshold", f"got {threshold}", "Pass a finite number")
            if classes not in (None, 2):
                raise InvalidInputError(
                    "classes", f"{classes} classes by one threshold", "Leave classes out, or pass 2"
                )
            self.classes, self.output = 2, OutputKind.LABELS
        else:
            if classes is None:
                raise InvalidInputError("classes", "not given", "Pass the number of classes")
            require_whole_number(
                "classes", classes, 2, "Pass at least 2, or a threshold for networks with one output channel"
            )
            self.classes, self.output = int(classes), output
        self._resizes = upsample is not None and upsample is not False
        if self._resizes and threshold is None and output is OutputKind.LABELS:
            raise InvalidInputError("upsample", "labels cannot be interpolated", "Return scores, or leave it out")
        if isinstance(upsample, tuple) and self._preprocessing.pads:
            raise InvalidInputError(
                "upsample",
                f"a fixed output shape {upsample} does not go with padding",
                "Pass upsample=True, or inputs whose size needs no padding",
            )

    _axis_told = False  # whether the shape of some output told that classes are on axis 1
    _classes_inferred = False  # whether the number of classes was read off the axis of the outputs that has them
    _levels: Float[np.ndarray, "..."] | None = None  # what the network is told
    _channel: tuple[object, torch.Tensor] | None = None  # that, for batches of one shape on one device
    _map: tuple[object, torch.Tensor] | None = None  # the same for the denoiser

    @abstractmethod
    def _predict(self, batch: Float[torch.Tensor, "batch *item"]) -> tuple[Shaped[torch.Tensor, "..."], bool]:
        """Run the network; returns its raw output, and whether it is customary to upsample it."""

    def under(self, levels: Float[np.ndarray, "..."] | float) -> Adapter:
        """The same model, told these levels where it is told the noise; see `Model`."""
        if not self.told:
            return self
        made = copy.copy(self)
        made._levels, made._channel, made._map = np.array(levels, dtype=np.float64), None, None
        return made

    def _said_levels(self, batch: torch.Tensor) -> Float[np.ndarray, "..."]:
        if self._levels is None:
            problem = "it is told the noise, and was asked without any levels"
            raise InvalidInputError("model", problem, "Ask model.under(levels), levels 0 for an input without noise")
        if batch.ndim < 3:
            problem = f"inputs of shape {tuple(batch.shape[1:])} have no place for a channel of noise levels"
            raise InvalidInputError("told", problem, "Pass inputs of shape (channels, …)")
        return self._levels

    def _denoised(self, batch: torch.Tensor) -> torch.Tensor:
        if self._denoiser is None or not self._denoiser.told:
            return batch if self._denoiser is None else self._denoiser(batch, None)
        asked = tuple(batch.shape[2:]), batch.device, batch.dtype
        levels = self._said_levels(batch)
        if self._map is None or self._map[0] != asked:
            places = level_map(levels, tuple(batch.shape[2:]))
            with torch.inference_mode(False):  # the tensor outlives this call
                self._map = asked, torch.from_numpy(places.copy())[None, None].to(batch.device, batch.dtype)
        return self._denoiser(batch, self._map[1])

    def _with_levels(self, batch: torch.Tensor) -> torch.Tensor:
        """The preprocessed batch with the channel that the network is told."""
        made = self._preprocessing(batch)
        if not self._widened:
            return made
        said = self._said_levels(batch)
        asked = tuple(batch.shape[2:]), made.device, made.dtype
        if self._channel is None or self._channel[0] != asked:
            levels = level_channel(said, tuple(batch.shape[2:]), self.bounds)
            with torch.inference_mode(False):  # the tensor outlives this call
                channel = torch.from_numpy(levels.copy())[None].to(made.device, made.dtype)
                # What is padded with a constant has no noise.
                channel = self._preprocessing.pad(channel, float(encoded_levels(0.0, self.bounds)))
            self._channel = asked, channel
        channel = self._channel[1]
        return torch.cat([made, channel.expand(len(made), *channel.shape[1:])], dim=1)

    def replica(self) -> Adapter:
        """The same model for another thread; see `Model`."""
        if self._denoiser is None:
            return self
        made = copy.copy(self)
        made._denoiser = self._denoiser.replica()
        return made

    def shared_with_replicas(self) -> str:
        """What a denoiser shares with its replicas; see `Model`."""
        return "" if self._denoiser is None else self._denoiser.shared_with_replicas()

    def weight_digests(self) -> dict[str, str]:
        """Digests of a denoiser's weights; see `Model`."""
        made = {} if self._denoiser is None else self._denoiser.weight_digests()
        return {f"denoiser.{name}": value for name, value in made.items()}

    def watching(self) -> AbstractContextManager[None]:
        """Note which attributes of a denoiser change while it is called; see `Model`."""
        return nullcontext() if self._denoiser is None else self._denoiser.watching()

    def _coarsest(self, own: str) -> str:
        """The coarser of a floating-point type and those of the denoiser's weights."""
        types = [getattr(torch, own), *([] if self._denoiser is None else self._denoiser.types)]
        return str(max(types, key=lambda each: torch.finfo(each).eps)).removeprefix("torch.")

    def __call__(self, batch: Float[torch.Tensor, "batch *item"]) -> Shaped[torch.Tensor, "batch *prediction"]:
        """Predict a batch of shape (batch, *item); see `Model`.

        Raises
        ------
        InvalidInputError
            If the batch does not fit the network, the network's outputs do not fit its declaration, or a thresholded
            score is NaN.
        """
        raw, low = self._predict(self._with_levels(self._denoised(batch)))
        spatial = tuple(batch.shape[2:])
        padded = self._preprocessing.padded_shape(spatial)
        said = self._class_axis is not None
        scored = self._threshold is not None or self.output is not OutputKind.LABELS
        if self._class_axis is not None:
            if self._classes_inferred and isinstance(self._class_axis, int):
                require_fitting_axis(tuple(raw.shape), self._class_axis, padded)
            raw = classes_first(raw, self._class_axis, labels=not scored)
        if raw.ndim < 1 or raw.shape[0] != batch.shape[0]:
            raise InvalidInputError(
                "model",
                f"it returned shape {tuple(raw.shape)} for a batch of {batch.shape[0]}",
                "Return one prediction per sample, the batch axis first",
            )
        if scored and raw.is_floating_point():  # integers where scores were declared are for the checks to name
            wanted = None if self._threshold is not None else self.classes
            require_classes_first(raw, padded, wanted, inferred=self._classes_inferred and not said, said=said)
            if wanted is not None and not said:
                self._require_told(tuple(raw.shape), padded, wanted)
            if low and self._upsample is None and raw.ndim == 3 and not said:
                raise InvalidInputError(
                    "class_axis",
                    f"the module returns .logits of shape {tuple(raw.shape)}, and whether axis 1 or 2 holds the "
                    "classes cannot be told",
                    "Pass class_axis=1 where it is (batch, classes, outputs), class_axis=2 where the classes lie last",
                )
            if isinstance(self._upsample, tuple):
                raw = resized(raw, self._upsample)
            elif self._upsample or (self._upsample is None and low and raw.ndim > 3):
                raw = resized(raw, padded)
        raw = cropped(raw, 2 if scored else 1, padded, spatial)
        if self._threshold is not None:
            return above_threshold(raw, self._threshold)
        return raw.to(torch.uint8) if raw.dtype is torch.bool else raw

    def _require_told(self, shape: tuple[int, ...], spatial: tuple[int, ...], classes: int) -> None:
        """Refuse outputs whose shape does not tell where the classes are, unless that of an earlier input did."""
        if not ambiguous(shape, spatial, classes):
            self._axis_told = True
        elif not self._axis_told:
            last = len(shape) - 1
            raise InvalidInputError(
                "class_axis",
                f"it returned shape {shape}, and whether axis 1 or {last} holds the {classes} classes cannot be told",
                f"Pass class_axis=1, or class_axis={last}",
            )

    def _configuration(self) -> Mapping[str, object]:
        """Every option that changes predictions, for the fingerprint."""
        return {
            "bounds": self.bounds,
            "classes": self.classes,
            "output": self.output.name,
            "threshold": self._threshold,
            "upsample": self._upsample,
            **self._preprocessing.configuration(),
            # Stored runs know a model that says nothing of its axes by their absence.
            **({} if self._class_axis is None else {"class_axis": self._class_axis}),
            # Stored runs know a model that is not told the noise by its absence.
            **({"told": "log(level / range) within 5"} if self._widened else {}),
            # Stored runs know a model without a denoiser by its absence.
            **({} if self._denoiser is None else {"denoiser": self._denoiser.fingerprint()}),
        }


def _ordered(bounds: Bounds) -> tuple[float, float]:
    remedy = "Pass (smallest, largest) input value, or None if unbounded"
    require_several("bounds", bounds, "two numbers, or None if unbounded")
    for value in bounds:
        require_number("bounds", value, remedy)
    low, high = (float(value) for value in bounds) if len(bounds) == 2 else (math.nan, math.nan)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInputError("bounds", f"got {bounds}", remedy)
    return low, high


def _axis(given: ClassAxis | None, thresholded: bool) -> ClassAxis | None:
    if given == "none" and not thresholded:
        raise InvalidInputError("class_axis", '"none" is for maps that a threshold turns into labels', "Pass an axis")
    if given is not None and given != "none" and (type(given) is not int or given == 0):
        raise InvalidInputError(
            "class_axis", f"got {given!r}", 'Pass 1, 2, … or −1 (the batch is axis 0), or "none" with a threshold'
        )
    return given
