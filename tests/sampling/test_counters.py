"""New statistics plug in beside the votes and read the same samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import OtherPartsMissingError, Part
from localsmooth.models import OutputKind
from localsmooth.runs import DirectoryStore, MemoryStore, Stage, StoreError
from localsmooth.sampling import Accumulator, Counter, Counters, CountingScope, LabelCounts, Predictions, Votes
from tests.sampling.exact import PLAN, ExactModel, assert_same, run


class Moments(Counter):
    """Sum and sum of squares of the candidate's softmax score, about a centre chosen in the candidate stage."""

    name = "moments"

    def start(self, scope: CountingScope) -> Accumulator:
        return Running(scope)

    def choose(self, counts: Mapping[str, np.ndarray], n: int) -> Mapping[str, np.ndarray]:
        return {"centre": counts["sums"][:, 0] / n}


class Running(Accumulator):
    def __init__(self, scope: CountingScope) -> None:
        self.scope = scope
        self.sums = torch.zeros(*scope.shape, 2, dtype=torch.float64)

    def update(self, predictions: Predictions) -> None:
        if "candidate" in self.scope.chosen:
            index = self.scope.chosen["candidate"].long().reshape(1, 1, *self.scope.shape)
            index = index.expand(predictions.size, 1, *self.scope.shape)
            score = predictions.probabilities.gather(1, index)[:, 0].double()
            score = score - self.scope.chosen["centre"].reshape(self.scope.shape)
        else:
            score = predictions.probabilities.amax(dim=1).double()
        self.sums += torch.stack([score.sum(0), (score**2).sum(0)], dim=-1)

    def arrays(self) -> Mapping[str, torch.Tensor]:
        return {"sums": self.sums.reshape(-1, 2)}


BOTH = Counters((LabelCounts(), Moments()), (Votes(), Moments()))


def test_several_counters_read_the_same_samples(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        tally = run(counters=BOTH, store=store)
    assert_same(tally, run())
    assert set(tally.further) == {"centre", "moments.sums"}
    mean = tally.further["centre"] + tally.further["moments.sums"][:, 0] / tally.n
    variance = tally.further["moments.sums"][:, 1] / tally.n - (tally.further["moments.sums"][:, 0] / tally.n) ** 2
    assert ((mean > 0) & (mean < 1) & (variance >= 0)).all()
    # A candidate that always wins has the higher mean score.
    assert np.corrcoef(mean, tally.votes)[0, 1] > 0.9


def test_scores_of_a_model_that_returns_labels_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="labels without scores"):
        run(ExactModel(output=OutputKind.LABELS), counters=BOTH)


def test_without_a_counter_that_chooses_candidates_there_is_no_run() -> None:
    with pytest.raises(InvalidInputError, match="counters"):
        run(counters=Counters((Moments(),), (Votes(),)))


def test_counts_are_kept_in_compact_integers_on_the_device() -> None:
    scope = CountingScope((2, 3), 4, torch.device("cpu"), 200, {"candidate": torch.zeros(6, dtype=torch.int16)})
    assert next(iter(LabelCounts().start(scope).arrays().values())).dtype == torch.uint8
    assert next(iter(Votes().start(scope).arrays().values())).dtype == torch.uint8


def test_candidate_counts_come_back_when_asked_for() -> None:
    assert run().candidate_counts is None
    counts = run(keep_candidate_counts=True).candidate_counts
    assert counts is not None
    assert counts.shape == (96, 4)
    assert (counts.sum(axis=1) == PLAN.n_candidate).all()


@pytest.mark.parametrize("counters", [Counters(), BOTH])
def test_a_store_in_memory_forgets_histograms_alone_and_goes_on_from_there(counters: Counters, tmp_path: Path) -> None:
    memory = MemoryStore()
    with pytest.raises(OtherPartsMissingError):
        run(store=memory, counters=counters, part=Part(1, 2))
    counts = memory.merged(0, 0, Stage.CANDIDATE).counts
    assert "labels.counts" not in counts
    assert ("moments.sums" in counts) == (counters is BOTH)
    found, again = run(store=memory, counters=counters), run(store=memory, counters=counters)
    with DirectoryStore(tmp_path) as store:
        expected = run(store=store, counters=counters)
    for tally in (found, again):
        assert_same(tally, expected)
        assert tally.candidate_votes is not None
        assert expected.candidate_votes is not None
        np.testing.assert_array_equal(tally.candidate_votes, expected.candidate_votes)
        assert tally.further.keys() == expected.further.keys()
        for name, array in expected.further.items():
            np.testing.assert_array_equal(tally.further[name], array)
    with pytest.raises(StoreError, match="has not kept how often each class was predicted"):
        run(store=memory, counters=counters, keep_candidate_counts=True)
