"""Random streams that are the same for every batch size, worker count and interruption."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Int

__all__ = ["Randomness"]


class Randomness:
    """An independent random stream, identified by a run seed and a key, that fills tensors sample by sample.

    On the CPU the stream is numpy's SFC64 seeded through `SeedSequence` with 128 bits. (The generator in torch's
    CPU backend keeps 32 bits of its seed only: with 10⁵ chunks two of them would likely share their noise, and a
    sample counted twice makes a certificate false.) On other devices it is torch's counter-based generator with a
    64-bit seed.

    Parameters
    ----------
    seed
        The run's seed, any non-negative integer.
    key
        What the stream is for, for example (item, group, stage, chunk); different keys give independent streams.
    device
        Where the tensors to be filled live.
    """

    def __init__(self, seed: int, key: tuple[int, ...], device: torch.device | str = "cpu") -> None:
        sequence = np.random.SeedSequence(entropy=seed, spawn_key=key)
        self._device = torch.device(device)
        self._numpy: np.random.Generator | None = None
        self._torch: torch.Generator | None = None
        if self._device.type == "cpu":
            self._numpy = np.random.Generator(np.random.SFC64(sequence))
        else:
            self._torch = torch.Generator(self._device)
            self._torch.manual_seed(int(sequence.generate_state(1, np.uint64)[0]) >> 1)

    def normal_(self, out: torch.Tensor) -> None:
        """Fill a contiguous float32 or float64 tensor of shape (samples, …) with standard normal numbers."""
        if self._numpy is not None:
            dtype = np.float64 if out.dtype == torch.float64 else np.float32
            self._numpy.standard_normal(dtype=dtype, out=out.numpy())
        else:
            for sample in out:  # one call a sample, so that the stream does not depend on the batch size
                sample.normal_(generator=self._torch)

    def bits(self, shape: tuple[int, ...]) -> Int[torch.Tensor, "samples *item"]:
        """Return integers of 64 random bits each, all of the 2⁶⁴ values equally likely.

        Parameters
        ----------
        shape
            Samples first.
        """
        if self._numpy is not None:
            limits = np.iinfo(np.int64)
            return torch.from_numpy(self._numpy.integers(limits.min, limits.max, shape, np.int64, endpoint=True))
        made = torch.empty(shape, dtype=torch.int64, device=self._device)
        for sample in made:
            sample.random_(-(1 << 63), None, generator=self._torch)
        return made

    def uniform_(self, out: torch.Tensor) -> None:
        """Fill a contiguous float32 or float64 tensor of shape (samples, …) with numbers uniform on [0, 1).

        They are whole multiples of 2⁻²⁴ (2⁻⁵³ for float64 on the CPU), all equally likely: for a threshold that is a
        multiple of 2⁻²⁴ too, the probability of falling below it is the threshold itself.
        """
        if self._numpy is not None:
            dtype = np.float64 if out.dtype == torch.float64 else np.float32
            self._numpy.random(dtype=dtype, out=out.numpy())
        else:
            # Not uniform_, whose rounding to single precision makes some numbers likelier than others.
            for sample in out:
                sample.random_(0, 1 << 24, generator=self._torch)
            out.mul_(2.0**-24)
