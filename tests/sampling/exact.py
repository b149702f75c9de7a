"""A base classifier in integer arithmetic, which is the same for every batch size, and what tests run it on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from localsmooth.execution import sample
from localsmooth.layout import Layout, grid_layout
from localsmooth.models import Model, OutputKind
from localsmooth.noise import Gaussian
from localsmooth.runs import SamplingPlan, Store
from localsmooth.sampling import ItemTally, SamplingOptions

SHAPE = (8, 12)


class ExactModel(Model):
    """Quantises the input, adds up each pixel's neighbourhood, and scores class c by −(sum − 3c)²."""

    def __init__(
        self,
        classes: int = 4,
        stride: int = 1,
        output: OutputKind = OutputKind.LOGITS,
        watch: Callable[[torch.Tensor], None] | None = None,
        name: str = "exact",
    ) -> None:
        self.bounds = None
        self.output = output
        self.classes = classes
        self.device = torch.device("cpu")
        self.stride = stride
        self.watch = watch
        self.name = name

    def scores(self, batch: torch.Tensor) -> torch.Tensor:
        quantised = (batch.sum(dim=1) * 2).floor().clamp(-50, 50)
        padded = torch.nn.functional.pad(quantised, (1, 1, 1, 1))
        height, width = quantised.shape[1:]
        total = sum(padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3))
        assert isinstance(total, torch.Tensor)
        total = total[:, :: self.stride, :: self.stride]
        return torch.stack([-((total - 3 * c) ** 2) for c in range(self.classes)], dim=1)

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        if self.watch is not None:
            self.watch(batch)
        scores = self.scores(batch)
        return scores.argmax(dim=1) if self.output is OutputKind.LABELS else scores

    def fingerprint(self) -> str:
        return f"{self.name} {self.classes} {self.stride}"


def make_item(seed: int = 0, channels: int = 1, shape: tuple[int, ...] = SHAPE) -> torch.Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((channels, *shape)).astype(np.float32))


def make_layout(stride: int = 1, cells: tuple[int, int] = (2, 2)) -> Layout:
    outputs = tuple(-(-n // stride) for n in SHAPE)
    return grid_layout(cells, SHAPE, outputs, minimum=0.3, maximum=1.0)


PLAN = SamplingPlan(n_candidate=10, n_bound=45, seed=3, chunk_size=20)


def run(
    model: Model | None = None,
    *,
    batch_size: int | None = 8,
    plan: SamplingPlan = PLAN,
    store: Store | None = None,
    layout: Layout | None = None,
    **options: object,
) -> ItemTally:
    """Sample one item with the exact model."""
    keywords = {key: options.pop(key) for key in ("executor", "progress", "part") if key in options}
    return sample(
        ExactModel() if model is None else model,
        [make_item()],
        [make_layout() if layout is None else layout],
        Gaussian(),
        plan,
        store,
        options=SamplingOptions(batch_size=batch_size, check_model=False, **options),  # type: ignore[arg-type]
        **keywords,  # type: ignore[arg-type]
    )[0]


def assert_same(left: ItemTally, right: ItemTally) -> None:
    np.testing.assert_array_equal(left.candidate, right.candidate)
    np.testing.assert_array_equal(left.votes, right.votes)
    assert (left.n, left.n_candidate) == (right.n, right.n_candidate)
