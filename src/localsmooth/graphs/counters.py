"""What is counted about node predictions: votes and scores of the same samples, at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from localsmooth.bounds import ScoreHistogram, even_thresholds
from localsmooth.errors import InvalidInputError
from localsmooth.sampling import Accumulator, Counter, Counters, CountingScope, ItemTally, Predictions, Votes

__all__ = ["CandidateScores", "ScoreCounts", "node_counters", "score_histogram"]

# Class scores of the candidate stage are added up in these units, as whole numbers.
_UNIT = 1024


class CandidateScores(Counter):
    """Counts predicted classes and adds up class scores; chooses the candidate and its mean score ν ("reference").

    The candidate is the most frequent class, the smallest on ties.
    """

    name = "labels"

    def start(self, scope: CountingScope) -> Accumulator:
        """Begin with zero counts."""
        return _CandidateAccumulator(scope)

    def choose(self, counts: Mapping[str, np.ndarray], n: int) -> Mapping[str, np.ndarray]:
        """The candidate class of each output, and its mean score."""
        candidate = counts["counts"].argmax(axis=1)
        sums = np.take_along_axis(counts["sums"], candidate[:, None], axis=1)[:, 0]
        reference = np.clip(sums / (n * _UNIT), 0.0, 1.0)
        return {"candidate": candidate.astype(np.int32), "reference": reference}


class _CandidateAccumulator(Accumulator):
    def __init__(self, scope: CountingScope) -> None:
        shape = int(np.prod(scope.shape)), scope.classes
        self._counts = torch.zeros(shape, dtype=torch.int32, device=scope.device)
        self._sums = torch.zeros(shape, dtype=torch.float64, device=scope.device)
        self._classes = scope.classes

    def update(self, predictions: Predictions) -> None:
        labels = predictions.labels.reshape(predictions.size, -1).to(torch.int64)
        classes = torch.arange(self._classes, device=labels.device)
        self._counts += (labels.unsqueeze(-1) == classes).sum(dim=0, dtype=torch.int32)
        scores = predictions.probabilities.reshape(predictions.size, self._classes, -1)
        self._sums += (scores * _UNIT).floor().sum(dim=0, dtype=torch.float64).T

    def arrays(self) -> Mapping[str, torch.Tensor]:
        return {"counts": self._counts, "sums": self._sums}


@dataclass(frozen=True)
class ScoreCounts(Counter):
    """Counts the candidate's score on the grid 0, 1/bins, …, 1, rounded down (see `localsmooth.bounds.ScoreHistogram`).

    Parameters
    ----------
    bins
        Number of grid steps; a power of two keeps the rounding exact.
    """

    bins: int = 256
    name = "scores"

    def __post_init__(self) -> None:
        if not (1 <= self.bins <= 4096 and self.bins & (self.bins - 1) == 0):
            raise InvalidInputError("bins", f"got {self.bins}", "Pass a power of two up to 4096")

    def start(self, scope: CountingScope) -> Accumulator:
        """Begin with zero counts for the chosen candidates."""
        return _ScoreAccumulator(scope, self.bins)

    def configuration(self) -> Mapping[str, object]:
        """Name and number of bins."""
        return {"name": self.name, "bins": self.bins}


class _ScoreAccumulator(Accumulator):
    def __init__(self, scope: CountingScope, bins: int) -> None:
        outputs = int(np.prod(scope.shape))
        self._bins = bins
        self._candidate = scope.chosen["candidate"].reshape(1, 1, outputs).to(torch.int64)
        self._first = torch.arange(outputs, device=scope.device) * (bins + 1)
        self._counts = torch.zeros(outputs * (bins + 1), dtype=torch.int32, device=scope.device)

    def update(self, predictions: Predictions) -> None:
        scores = predictions.probabilities
        scores = scores.reshape(predictions.size, scores.shape[1], -1)
        chosen = scores.gather(1, self._candidate.expand(predictions.size, 1, -1))[:, 0]
        # NaN never reaches a store: such a chunk is refused.
        steps = (chosen * self._bins).floor().nan_to_num(0.0).clamp(0, self._bins).to(torch.int64)
        cells = (steps + self._first).reshape(-1)
        self._counts += torch.bincount(cells, minlength=self._counts.numel())

    def arrays(self) -> Mapping[str, torch.Tensor]:
        return {"histogram": self._counts.reshape(-1, self._bins + 1)}


def node_counters(bins: int = 256) -> Counters:
    """Votes, and a histogram of the candidate's scores, from the same samples."""
    return Counters(candidate=(CandidateScores(),), bound=(Votes(), ScoreCounts(bins)))


def score_histogram(tally: ItemTally, outputs: np.ndarray | None = None) -> ScoreHistogram:
    """Histogram of the candidate's scores of all outputs, or of some.

    Raises
    ------
    InvalidInputError
        If scores were not counted.
    """
    counts = tally.further.get("scores.histogram")
    if counts is None:
        raise InvalidInputError("tally", "it holds no scores", "Sample with node_counters()")
    return ScoreHistogram(even_thresholds(counts.shape[1] - 1), counts if outputs is None else counts[outputs])
