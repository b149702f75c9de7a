"""Drawing a few samples."""

from __future__ import annotations

import numpy as np
import torch

from localsmooth.noise import Noise, Randomness


def draw(noise: Noise, item: torch.Tensor, level_map: np.ndarray, samples: int, *, seed: int = 0, bounds=None):
    prepared = noise.prepare(item, level_map, bounds, 0.0)
    out = torch.empty((samples, *item.shape), dtype=item.dtype)
    prepared.draw(out, Randomness(seed, (1, 2, 3)))
    return out
