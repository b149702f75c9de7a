"""Seeds for what draws from torch's global generators: initial weights and dropout know no others."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch

__all__ = ["torch_seeded"]


@contextmanager
def torch_seeded(seed: int, device: torch.device | str = "cpu") -> Generator[None]:
    """Seed torch's global generators inside the block, and put them back as if nothing had been drawn.

    Parameters
    ----------
    seed
        Of all generators, as for `torch.manual_seed`.
    device
        Where, beside the CPU, drawing happens; CUDA devices other than this one keep the seed.
    """
    place = torch.device(device)
    with torch.random.fork_rng([place] if place.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
