"""No lottery: global generators start every test with one seed, and whoever draws from them is found out.

Numbers at random come from generators with seeds of their own (`numpy.random.default_rng(seed)`,
`torch.Generator().manual_seed(seed)`). What cannot do without a global one, as initial weights, is made within
`seeded`.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from localsmooth.seeds import torch_seeded

__all__ = ["GENERATORS", "seeded", "untouched"]

GENERATORS: dict[str, Callable[[], object]] = {
    "random": random.getstate,
    "numpy.random": lambda: pickle.dumps(np.random.get_state()),  # noqa: NPY002
    "torch": lambda: pickle.dumps(torch.get_rng_state().numpy()),
}
"""Names of the global generators, and what tells their states apart."""


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Seed the global generators inside the block, and put them back."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch_seeded(seed):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


@contextmanager
def untouched() -> Generator[None]:
    """Seed the global generators, and fail the test if they are not left as they are."""
    with seeded(0):
        before = {name: state() for name, state in GENERATORS.items()}
        yield
        touched = [name for name, state in GENERATORS.items() if state() != before[name]]
    if touched:
        pytest.fail(
            f"the global generator of {' and '.join(touched)} was drawn from or seeded. In the package, draw from a "
            "generator with a seed of its own; in a test, do it within tests.seeding.seeded(seed)",
            pytrace=False,
        )
