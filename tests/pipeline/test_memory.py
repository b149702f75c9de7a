"""Memory that a large item takes: what numpy and Python hold is counted, torch's batches are not."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np

from localsmooth.bounds import Bonferroni, EmpiricalBernstein
from localsmooth.certificates import GaussianVotes
from localsmooth.certificates.combined import OutputVotes, certify_outputs
from localsmooth.execution import SerialExecutor, sample
from localsmooth.layout import grid_layout, windowed
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Gaussian
from localsmooth.runs import MemoryStore, SamplingPlan, Stage
from localsmooth.sampling import SamplingOptions

SIDE = 90
OUTPUTS = SIDE**3
PLAN = SamplingPlan(4, 36, chunk_size=36)


def thirds(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 0] > 0.3).astype(np.uint8) + (batch[:, 0] > 0.7)


def test_tallies_and_certificates_of_a_volume_take_16_bytes_an_output() -> None:
    model = CallableModel(thirds, name="thirds", bounds=(0.0, 1.0), classes=3, output=OutputKind.LABELS)
    volume = np.linspace(0.0, 1.0, OUTPUTS, dtype=np.float32).reshape(1, SIDE, SIDE, SIDE)
    layout = windowed(grid_layout((2, 2, 2), volume.shape[1:], minimum=0.1, maximum=0.4), 3)
    store = MemoryStore()
    options = SamplingOptions(batch_size=4, channels_last=False, check_model=False)
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        tally = sample(model, [volume], [layout], Gaussian(), PLAN, store, options=options, executor=SerialExecutor())[
            0
        ]
        # The histogram of a group that has its candidates is gone.
        assert "labels.counts" not in store.merged(0, 0, Stage.CANDIDATE).counts
        del store
        base = certify_outputs(
            OutputVotes(tally.candidate, tally.votes, tally.n),
            Gaussian(),
            layout.levels,
            layout.outputs.labels.ravel(),
            alpha=0.01,
            certificates=(GaussianVotes(),),
            simultaneous=Bonferroni(),
            score_bound=EmpiricalBernstein(),
        ).base
        gc.collect()
        held, peak = (size - before for size in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
    assert tally.candidate_votes is not None
    assert (base.prediction >= 0).mean() > 0.3
    assert held <= 16 * OUTPUTS
    assert peak <= 48 * OUTPUTS


def test_an_index_of_many_values_is_read_off_like_numpys() -> None:
    from localsmooth.blocks import blocks, look_up

    generator = np.random.default_rng(0)
    values, index = generator.random(300), generator.integers(0, 300, 600_001).astype(np.int16)
    np.testing.assert_array_equal(look_up(values, index), values[index])
    assert [(part.start, part.stop) for part in blocks(2**18 + 1)] == [(0, 2**18), (2**18, 2**18 + 1)]
    assert not list(blocks(0))
