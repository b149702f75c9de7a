"""Points and tokens are tuned like arrays, among layouts that the caller offers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import localsmooth as ls
from localsmooth.errors import InvalidInputError
from localsmooth.tasks.points import PointTask, cell_layout
from localsmooth.tasks.tokens import EmbeddedTagger, TokenTask, WindowLayout

SETTINGS = ls.Settings(0.05, np.linspace(0, 2, 9).tolist(), bounds=["envelope"])
CELLS = np.repeat(np.arange(3), 8)


class _Sign(torch.nn.Module):
    """The sign of every token's first feature."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return torch.stack([batch[..., 0], -batch[..., 0]], dim=-1)


def tokens(seed: int) -> TokenTask:
    signs = np.random.default_rng(seed).choice([-0.5, 0.5], (CELLS.size, 2))
    return TokenTask(EmbeddedTagger(_Sign().eval(), classes=2), [signs])


def points(seed: int) -> PointTask:
    def right(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] > 0).astype(np.int64)

    model = ls.CallableModel(right, name="right", bounds=None, classes=2, output=ls.OutputKind.LABELS)
    return PointTask(model, [np.random.default_rng(seed).choice([-0.5, 0.5], (CELLS.size, 2))])


@pytest.mark.parametrize("make", [tokens, points])
def test_they_are_tuned_among_layouts_of_their_own(make: type) -> None:
    layout = (
        WindowLayout(3, 0.3, 3.0) if make is tokens else cell_layout(CELLS, np.arange(3.0)[:, None] * [1, 0], 0.3, 3.0)
    )
    one = ls.Candidate("three groups", layout)
    found = ls.tune(make(0), SETTINGS, [one], work=1800, draws=1, executor="serial")
    assert found.best.entry.candidate is one
    assert found.isotropic.entry.candidate.name == "isotropic 0.3"
    assert ls.certify(make(1), found.smoothing, SETTINGS)["certified"].max() > 0
    with pytest.raises(InvalidInputError, match="computed from"):
        ls.certify(make(0), found.smoothing, SETTINGS)
    with pytest.raises(InvalidInputError, match=r"^kind"):
        ls.tune(make(0), SETTINGS, [one], work=1800, aim=ls.Aim(kind="deletions"))
