"""The tests that every smoothing distribution passes."""

from __future__ import annotations

import numpy as np
import torch

from localsmooth.noise import Noise, Randomness


def draw(noise: Noise, item: torch.Tensor, level_map: np.ndarray, samples: int, *, seed: int = 0, bounds=None):
    prepared = noise.prepare(item, level_map, bounds, 0.0)
    out = torch.empty((samples, *item.shape), dtype=item.dtype)
    prepared.draw(out, Randomness(seed, (1, 2, 3)))
    return out


def check_stream_does_not_depend_on_the_batch(noise: Noise, item: torch.Tensor, level_map: np.ndarray) -> None:
    prepared = noise.prepare(item, level_map, None, 0.0)
    together = torch.empty((64, *item.shape), dtype=item.dtype)
    prepared.draw(together, Randomness(5, (0, 1)))
    for batch in (1, 7, 64):
        randomness = Randomness(5, (0, 1))
        parts = []
        for start in range(0, 64, batch):
            out = torch.empty((min(batch, 64 - start), *item.shape), dtype=item.dtype)
            prepared.draw(out, randomness)
            parts.append(out)
        assert torch.equal(torch.cat(parts), together)


def check_streams_differ(noise: Noise, item: torch.Tensor, level_map: np.ndarray) -> None:
    prepared = noise.prepare(item, level_map, None, 0.0)
    outs = []
    for key in ((0,), (1,), (0, 0)):
        out = torch.empty((4, *item.shape), dtype=item.dtype)
        prepared.draw(out, Randomness(5, key))
        outs.append(out)
    assert not torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])


def check_item_is_left_alone(noise: Noise, item: torch.Tensor, level_map: np.ndarray) -> None:
    before = item.clone()
    draw(noise, item, level_map, 3)
    assert torch.equal(item, before)
