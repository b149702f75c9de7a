"""Random streams: independent of the batch size, different for every key, and exact where probabilities need it."""

import numpy as np
import pytest
import torch

from localsmooth.noise import Randomness
from localsmooth.testing.chance import assert_binomial


def on_device(seed: int) -> Randomness:
    """A stream of the kind used on accelerators, on the CPU."""
    randomness = Randomness(seed, (0,))
    randomness._numpy = None
    randomness._torch = torch.Generator().manual_seed(seed)
    return randomness


def fill(randomness: Randomness, law: str, n: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    out = torch.empty((n, 5, 3), dtype=dtype)
    getattr(randomness, law)(out)
    return out


@pytest.mark.parametrize("law", ["normal_", "uniform_"])
@pytest.mark.parametrize("make", [lambda: Randomness(3, (1, 2)), lambda: on_device(3)])
def test_the_stream_continues_where_the_last_batch_ended(law: str, make) -> None:
    whole, parts = fill(make(), law, 12), make()
    assert torch.equal(torch.cat([fill(parts, law, n) for n in (1, 4, 7)]), whole)


@pytest.mark.parametrize("law", ["normal_", "uniform_"])
def test_seed_and_key_identify_the_stream(law: str) -> None:
    same = [fill(Randomness(3, (1, 2)), law, 4) for _ in range(2)]
    assert torch.equal(*same)
    streams = [fill(Randomness(seed, key), law, 4) for seed, key in [(3, (1, 2)), (4, (1, 2)), (3, (2, 1)), (3, (1,))]]
    streams.append(fill(Randomness(3 + 2**32, (1, 2)), law, 4))
    for i, one in enumerate(streams):
        assert not any(torch.equal(one, other) for other in streams[:i])


@pytest.mark.parametrize("make", [lambda: Randomness(0, (0,)), lambda: on_device(0)])
def test_uniform_numbers_are_on_the_grid_of_drawable_probabilities(make) -> None:
    numbers = fill(make(), "uniform_", 3000).numpy().astype(np.float64)
    scaled = numbers * 2**24
    np.testing.assert_array_equal(scaled, np.rint(scaled))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    # The last bit is set in half of the numbers, the large ones included.
    odd = np.rint(scaled[numbers > 0.5]) % 2
    assert_binomial(odd.sum(), odd.size, 0.5)


def test_both_precisions() -> None:
    for law in ("normal_", "uniform_"):
        assert fill(Randomness(0, (0,)), law, 2, torch.float64).dtype == torch.float64
