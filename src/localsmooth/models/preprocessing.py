"""What happens to a noisy batch before the network sees it: padding, then normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError

__all__ = ["Moments", "Number", "Preprocessing", "reflected_positions"]

_MOST_MOVED = 64

Number = int | float
Moments = tuple[Number | Sequence[Number], Number | Sequence[Number]]


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
    made = (float(values),) if isinstance(values, int | float) else tuple(float(v) for v in values)
    if not made or not all(math.isfinite(v) for v in made):
        raise InvalidInputError(field, f"got {made}", "Pass one finite number per channel")
    return made


class Preprocessing:
    """Pads the spatial axes and normalises the channels of batches of shape (batch, channels, *spatial).

    Both happen after the noise is added, so budgets and radii stay in the declared input space.

    Parameters
    ----------
    normalise
        (mean, standard deviation), each one number or one number per channel, in the declared input space.
    pad_multiple
        Extend every spatial axis at its end to the next multiple of this many elements.
    pad_value
        Constant to extend with, in the declared input space; None to mirror the input.

    Raises
    ------
    InvalidInputError
        If a standard deviation is not positive, the multiple is smaller than 1, or a number is not finite.
    """

    def __init__(
        self,
        normalise: Moments | None = None,
        pad_multiple: int | None = None,
        pad_value: Number | None = None,
    ) -> None:
        self._mean, self._deviation = ((), ()) if normalise is None else self._moments(normalise)
        if pad_multiple is not None and pad_multiple < 1:
            raise InvalidInputError(
                "pad_multiple", f"got {pad_multiple}", "Pass a positive number of elements, or None"
            )
        if pad_value is not None and not math.isfinite(pad_value):
            raise InvalidInputError("pad_value", f"got {pad_value}", "Pass a finite number, or None to mirror")
        if pad_value is not None and pad_multiple is None:
            raise InvalidInputError("pad_value", "given without pad_multiple", "Pass pad_multiple as well")
        self._multiple = pad_multiple
        self._value = pad_value
        # Small tensors on the device: to send them with every batch would mean to wait for it every time.
        self._moved: dict[tuple[object, ...], torch.Tensor] = {}

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

    @staticmethod
    def _moments(normalise: Moments) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if len(normalise) != 2:
            raise InvalidInputError(
                "normalise", f"got {len(normalise)} entries", "Pass a pair: means and standard deviations"
            )
        mean, deviation = _per_channel("normalise", normalise[0]), _per_channel("normalise", normalise[1])
        if not all(d > 0 for d in deviation):
            raise InvalidInputError("normalise", f"standard deviations {deviation}", "Pass positive ones")
        return mean, deviation

    @property
    def pads(self) -> bool:
        """Whether outputs may have to be cropped back."""
        return self._multiple is not None

    def padded_shape(self, spatial: tuple[int, ...]) -> tuple[int, ...]:
        """Spatial shape after padding."""
        multiple = self._multiple or 1
        return tuple(-(-size // multiple) * multiple for size in spatial)

    def __call__(self, batch: Float[torch.Tensor, "batch *item"]) -> Float[torch.Tensor, "batch *padded"]:
        """Pad, then normalise; the batch itself stays untouched.

        Raises
        ------
        InvalidInputError
            If the batch has another number of channels than the normalisation.
        """
        spatial = tuple(batch.shape[2:])
        padded = self.padded_shape(spatial)
        if padded != spatial:
            batch = self._pad(batch, padded)
        if self._mean:
            batch = self._normalise(batch)
        return batch

    def _pad(self, batch: torch.Tensor, padded: tuple[int, ...]) -> torch.Tensor:
        if self._value is None:
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
        made = batch.new_full((*batch.shape[:2], *padded), self._value)
        made[(slice(None), slice(None), *(slice(size) for size in batch.shape[2:]))] = batch
        return made

    def _normalise(self, batch: torch.Tensor) -> torch.Tensor:
        channels = batch.shape[1] if batch.ndim > 1 else 0
        for values in (self._mean, self._deviation):
            if len(values) not in (1, channels):
                raise InvalidInputError(
                    "normalise",
                    f"{len(values)} numbers for a batch of shape {tuple(batch.shape)} (batch, channels, …)",
                    "Pass one number per channel",
                )
        shape = (-1, *(1 for _ in batch.shape[2:]))
        mean, deviation = (
            self._at(batch.device, (batch.dtype, values), lambda v=values: torch.tensor(v, dtype=batch.dtype))
            for values in (self._mean, self._deviation)
        )
        return (batch - mean.reshape(shape)).div_(deviation.reshape(shape))

    def configuration(self) -> Mapping[str, object]:
        """Every parameter, as text-friendly values."""
        return {
            "mean": self._mean,
            "deviation": self._deviation,
            "pad_multiple": self._multiple,
            "pad_value": self._value,
        }
