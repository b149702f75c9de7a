"""Score counters count what the tallies of the bounds would, from the same scores, whatever the batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from localsmooth.bounds import ScoreHistogram, ScoreMoments, even_thresholds
from localsmooth.errors import InvalidInputError
from localsmooth.execution import sample
from localsmooth.layout import Layout, Partition
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Gaussian, Randomness
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import Counters, SamplingOptions, Votes
from localsmooth.sampling.score_counters import LabelsAndScores, ScoreBins, ScorePowers

SHAPE = (4, 5)
CLASSES = 3
PLAN = SamplingPlan(n_candidate=30, n_bound=70, seed=11, chunk_size=20)


def logits(batch: np.ndarray) -> np.ndarray:
    return np.stack([batch[:, 0] * k for k in range(CLASSES)], axis=1).astype(np.float32)


def model() -> CallableModel:
    return CallableModel(logits, name="logits", bounds=None, classes=CLASSES, output=OutputKind.LOGITS)


def scattered_layout() -> Layout:
    """Two output groups that are no boxes, one input group each."""
    labels = (np.indices(SHAPE).sum(axis=0) % 2).astype(np.int32)
    return Layout(Partition(labels), Partition(np.zeros(SHAPE, np.int32)), np.array([[0.5], [1.0]]))


def scores_by_hand(item: torch.Tensor, layout: Layout, group: int, stage: int, total: int) -> np.ndarray:
    """Probabilities (samples, classes, members) drawn chunk by chunk as the engine draws them."""
    prepared = Gaussian().prepare(item, layout.level_map(group), None, 0.0)
    members = layout.outputs.members(group)
    parts = []
    for index, start in enumerate(range(0, total, PLAN.chunk_size)):
        out = torch.empty((min(PLAN.chunk_size, total - start), *item.shape))
        prepared.draw(out, Randomness(PLAN.seed, (0, group, stage, index)))
        parts.append(torch.from_numpy(logits(out.numpy())).softmax(1).flatten(2)[:, :, members].numpy())
    return np.concatenate(parts)


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_tallies_are_those_of_the_bounds(batch_size: int) -> None:
    item = torch.linspace(-1, 1, 20).reshape(1, *SHAPE)
    layout = scattered_layout()

    def tallied(counter):
        options = SamplingOptions(
            batch_size=batch_size, counters=Counters((LabelsAndScores(),), (Votes(), counter)), check_model=False
        )
        (tally,) = sample(model(), [item], [layout], Gaussian(), PLAN, options=options)
        return tally

    powers, bins = tallied(ScorePowers(1024)), tallied(ScoreBins(64))
    for group in range(2):
        members = layout.outputs.members(group)
        first = scores_by_hand(item, layout, group, 0, PLAN.n_candidate)
        candidate = np.array([np.bincount(row, minlength=CLASSES).argmax() for row in first.argmax(1).T])
        np.testing.assert_array_equal(powers.candidate[members], candidate)
        steps = np.floor(first * 1024).sum(axis=0, dtype=np.float64)
        reference = steps[candidate, np.arange(len(members))] / (1024 * PLAN.n_candidate)
        np.testing.assert_allclose(powers.further["reference"][members], reference, rtol=0, atol=1e-12)
        second = scores_by_hand(item, layout, group, 1, PLAN.n_bound)[:, candidate, np.arange(len(members))]
        np.testing.assert_array_equal(
            powers.further["scores.powers"][members].T, ScoreMoments.of(second.astype(np.float64), 1024).sums
        )
        np.testing.assert_array_equal(
            bins.further["scores.bins"][members], ScoreHistogram.of(second, even_thresholds(64)).counts
        )
        np.testing.assert_array_equal(powers.votes, bins.votes)


def test_sums_of_many_samples_do_not_wrap_around() -> None:
    """Fourth powers of scores near 1 leave 32 bits after a single sample."""
    sure = CallableModel(
        lambda batch: np.stack([np.full(batch[:, 0].shape, -50.0), np.full(batch[:, 0].shape, 50.0)], axis=1),
        name="sure",
        bounds=None,
        classes=2,
        output=OutputKind.LOGITS,
    )
    options = SamplingOptions(
        batch_size=10, counters=Counters((LabelsAndScores(),), (Votes(), ScorePowers(1024))), check_model=False
    )
    (tally,) = sample(sure, [torch.zeros(1, *SHAPE)], [scattered_layout()], Gaussian(), PLAN, options=options)
    expected = [70 * 1024**p for p in range(1, 5)]
    assert (tally.further["scores.powers"] == expected).all()


@pytest.mark.parametrize("make", [lambda: ScorePowers(0), lambda: ScorePowers(5000), lambda: ScoreBins(0)])
def test_grids_out_of_range_are_refused(make) -> None:
    with pytest.raises(InvalidInputError):
        make()
