"""A run that goes on is run as it began."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from localsmooth.execution import SerialExecutor, sample
from localsmooth.layout import grid_layout
from localsmooth.models import TorchModel
from localsmooth.noise import Gaussian
from localsmooth.runs import DirectoryStore, SamplingPlan
from localsmooth.runs.store import ChunkKey, FinishedChunk, StoreError
from localsmooth.sampling import SamplingOptions
from tests.seeding import seeded

SHAPE = (6, 8)
PLAN = SamplingPlan(n_candidate=16, n_bound=64, seed=1, chunk_size=16)


def run(store: DirectoryStore, **options: object) -> dict[ChunkKey, FinishedChunk]:
    with seeded(0):
        model = TorchModel(torch.nn.Conv2d(1, 2, 3, padding=1).eval(), bounds=None, classes=2)
    sample(
        model,
        [torch.zeros(1, *SHAPE)],
        [grid_layout((2, 2), SHAPE, minimum=0.2, maximum=0.8)],
        Gaussian(),
        PLAN,
        store,
        options=SamplingOptions(check_model=False, calibration_seconds=0.2, **options),  # type: ignore[arg-type]
        executor=SerialExecutor(),
    )
    return dict(store.finished())


def test_batch_size_and_memory_order_are_kept(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store)
        # Had it been measured again, another batch size than this one would be found.
        store.put_array("calibration", np.array([3, 0, 1]))
        lost = sorted((tmp_path / "chunks").rglob("group00002-stage1-*.tally"))
        for path in lost[1:]:
            path.unlink()
        again = run(store)
        redrawn = [chunk.batch_size for key, chunk in again.items() if key[1:3] == (2, 1) and key[3] > 0]
        assert redrawn == [3] * (len(lost) - 1)
        for path in lost[1:]:
            path.unlink()
        fixed = run(store, batch_size=5)
        assert {chunk.batch_size for key, chunk in fixed.items() if key[1:3] == (2, 1) and key[3] > 0} == {5}


@pytest.mark.parametrize("kept", [[-1, 0, 0], [0, 0, 0], [4, -3, 0], [1, 2], [[1, 0, 0]], [2.0, 0.0, 0.0]])
def test_a_batch_size_that_is_none_is_named(kept: list[int], tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store)
        store.put_array("calibration", np.array(kept))
        next((tmp_path / "chunks").rglob("*-stage1-*.tally")).unlink()
        with pytest.raises(StoreError, match=r"'calibration'.*Delete its file"):
            run(store)
        (tmp_path / "arrays" / "calibration.array").unlink()
        run(store)
