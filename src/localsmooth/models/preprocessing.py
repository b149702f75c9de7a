"""What happens to a noisy batch before the network sees it: padding, then normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError, require_whole_number

__all__ = ["Number", "Preprocessing", "reflected_positions"]

_MOST_MOVED = 64

Number = int | float


def reflected_positions(size: int, padded: int) -> Int[np.ndarray, "padded"]:
    """Source position of every element when an axis is extended by mirroring, as often as it takes.

    The edge element is not repeated: an axis a b c becomes a b c b a b c …

    Parameters
    ----------
    size
        Elements of the axis, at least 1.
    padded
        Elements after the extension.
    """
    period = max(1, 2 * (size - 1))
    positions = np.arange(padded) % period
    return np.minimum(positions, period - positions) if size > 1 else np.zeros(padded, dtype=np.int64)


def _per_channel(field: str, values: Number | Sequence[Number]) -> tuple[float, ...]:
    try:
        made = (float(values),) if isinstance(values, int | float) else tuple(float(v) for v in values)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(field, f"got {values!r}", "Pass one finite number per channel") from error
    if not made or not all(math.isfinite(v) for v in made):
        raise InvalidInputError(field, f"got {made}", "Pass one finite number per channel")
    return made


@dataclass(frozen=True)
class Preprocessing:
    """Pads the spatial axes and normalises the channels of batches of shape (batch, channels, *spatial).

    Both happen after the noise is added, so budgets and radii stay in the declared input space.

    Parameters
    ----------
    mean
        Subtracted from the input: one number or one number per channel, in the declared input space.
    std
        What is then divided by, likewise.
    axis
        Axis of the batch along which `mean` and `std` have their numbers; that of the channels by default.
    pad_multiple
        Extend every spatial axis at its end to the next multiple of this many elements; outputs are cropped back.
    pad_value
        Constant to extend with, in the declared input space; None to mirror the input.

    Raises
    ------
    InvalidInputError
        If a standard deviation is not positive, the multiple no whole number of at least 1, or a number not finite.
    """

    mean: Number | Sequence[Number] | None = None
    std: Number | Sequence[Number] | None = None
    axis: int = 1
    pad_multiple: int | None = None
    pad_value: Number | None = None
    # Small tensors on the device: to send them with every batch would mean to wait for it every time.
    _moved: dict[tuple[object, ...], torch.Tensor] = field(
        default_factory=dict[tuple[object, ...], torch.Tensor], init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        normalises = self.mean is not None or self.std is not None
        for name, value, neutral in (("mean", self.mean, 0.0), ("std", self.std, 1.0)):
            given = _per_channel(name, neutral if value is None else value) if normalises else None
            object.__setattr__(self, name, given)
        if not all(d > 0 for d in self._moments[1]):
            raise InvalidInputError("std", f"got {self.std}", "Pass positive standard deviations")
        if self.axis == 0:
            raise InvalidInputError("axis", "got 0, the axis of the batch", "Pass that of the channels, 1 by default")
        if self.pad_multiple is not None:
            require_whole_number("pad_multiple", self.pad_multiple, 1, "Pass a positive number of elements, or None")
        if self.pad_value is not None and not math.isfinite(self.pad_value):
            raise InvalidInputError("pad_value", f"got {self.pad_value}", "Pass a finite number, or None to mirror")
        if self.pad_value is not None and self.pad_multiple is None:
            raise InvalidInputError("pad_value", "given without pad_multiple", "Pass pad_multiple as well")

    @property
    def _moments(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return cast("tuple[float, ...]", self.mean or ()), cast("tuple[float, ...]", self.std or ())

    def __getstate__(self) -> dict[str, Any]:
        """Leave tensors behind that lie on a device."""
        return {**self.__dict__, "_moved": {}}

    def _at(self, place: torch.device, name: tuple[object, ...], make: Callable[[], torch.Tensor]) -> torch.Tensor:
        made = self._moved.get((place, *name))
        if made is None:
            with torch.inference_mode(False):
                made = make().to(place)
            if len(self._moved) >= _MOST_MOVED:
                self._moved.clear()
            self._moved[place, *name] = made
        return made

    @property
    def pads(self) -> bool:
        """Whether outputs may have to be cropped back."""
        return self.pad_multiple is not None

    def padded_shape(self, spatial: tuple[int, ...]) -> tuple[int, ...]:
        """Spatial shape after padding."""
        multiple = self.pad_multiple or 1
        return tuple(-(-size // multiple) * multiple for size in spatial)

    def __call__(self, batch: Float[torch.Tensor, "batch *item"]) -> Float[torch.Tensor, "batch *padded"]:
        """Pad, then normalise; the batch itself stays untouched.

        Raises
        ------
        InvalidInputError
            If the batch has another number of channels than the normalisation.
        """
        batch = self.pad(batch)
        if self.mean is not None:
            batch = self._normalise(batch)
        return batch

    def pad(
        self, batch: Float[torch.Tensor, "batch *item"], constant: Number | None = None
    ) -> Float[torch.Tensor, "batch *padded"]:
        """Extend the spatial axes alone; the batch itself where nothing is to be done.

        Parameters
        ----------
        batch
            Any number of channels.
        constant
            Stands in for `pad_value`, where axes are not mirrored.
        """
        padded = self.padded_shape(tuple(batch.shape[2:]))
        if padded == tuple(batch.shape[2:]):
            return batch
        if self.pad_value is None:
            for axis, size in enumerate(padded, start=2):
                if size != batch.shape[axis]:
                    before = batch.shape[axis]
                    source = self._at(
                        batch.device,
                        (before, size),
                        lambda b=before, s=size: torch.from_numpy(reflected_positions(b, s)),
                    )
                    batch = batch.index_select(axis, source)
            return batch
        made = batch.new_full((*batch.shape[:2], *padded), self.pad_value if constant is None else constant)
        made[(slice(None), slice(None), *(slice(size) for size in batch.shape[2:]))] = batch
        return made

    def _normalise(self, batch: torch.Tensor) -> torch.Tensor:
        inside = -batch.ndim <= self.axis < batch.ndim
        for name, values in zip(("mean", "std"), self._moments, strict=True):
            if len(values) != 1 and not (inside and len(values) == batch.shape[self.axis]):
                raise InvalidInputError(
                    name,
                    f"{len(values)} numbers along axis {self.axis} of a batch of shape {tuple(batch.shape)}",
                    "Pass one number per channel",
                )
        shape = [1] * batch.ndim
        shape[self.axis if inside else 0] = -1
        mean, deviation = (
            self._at(batch.device, (batch.dtype, values), lambda v=values: torch.tensor(v, dtype=batch.dtype))
            for values in self._moments
        )
        return (batch - mean.reshape(shape)).div_(deviation.reshape(shape))

    def configuration(self) -> Mapping[str, object]:
        """Every parameter, as text-friendly values."""
        mean, deviation = self._moments
        padding = {"pad_multiple": self.pad_multiple, "pad_value": self.pad_value}
        # Stored runs know the usual axis by its absence.
        axis = {} if self.axis == 1 else {"axis": self.axis}
        return {"mean": mean, "deviation": deviation, **padding, **axis}
