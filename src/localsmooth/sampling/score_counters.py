"""Counters of the candidate's soft score: exact integers, whatever the batch size or the order of merging.

Scores are normalised (`Predictions.probabilities`) and rounded down to a grid before they are counted, and the rounded
score is what is certified (see `localsmooth.bounds.ScoreMoments`): those of all classes sum to at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.sampling.counter import Accumulator, Counter, CountingScope, LabelCounts
from localsmooth.sampling.predictions import FINEST_GRID, Predictions

__all__ = ["NORMALISED", "CandidateScores", "LabelsAndScores", "ScoreBins", "ScorePowers"]

NORMALISED: Mapping[str, object] = {"normalised": True}
"""In the configuration of every counter of scores: not to be mixed with scores counted as the model returned them."""


def _steps(scores: torch.Tensor, scale: int) -> torch.Tensor:
    """⌊score · scale⌋ as int64, clipped to 0 … scale (a softmax leaves [0, 1] by its own rounding error)."""
    return (scores * scale).floor_().clamp_(0, scale).to(torch.int64)


class LabelsAndScores(LabelCounts):
    """Counts labels and sums every class's score; chooses the candidate and, as reference ν, its mean score.

    Parameters
    ----------
    scale
        Number of grid steps in [0, 1].
    """

    def __init__(self, scale: int = 1024) -> None:
        self.scale = scale

    def start(self, scope: CountingScope) -> Accumulator:
        """Begin with zero counts and sums."""
        return _LabelsAndScores(super().start(scope), scope, self.scale)

    def choose(self, counts: Mapping[str, np.ndarray], n: int) -> Mapping[str, np.ndarray]:
        """The candidate class of each output, and its mean score."""
        chosen = dict(super().choose(counts, n))
        sums = np.take_along_axis(counts["score_sums"], chosen["candidate"][:, None].astype(np.int64), axis=1)[:, 0]
        return chosen | {"reference": sums / (n * self.scale)}

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {"name": self.name, "score_scale": self.scale, **NORMALISED}


class _LabelsAndScores(Accumulator):
    def __init__(self, labels: Accumulator, scope: CountingScope, scale: int) -> None:
        self._labels = labels
        self._scale = scale
        self._sums = torch.zeros((scope.classes, int(np.prod(scope.shape))), dtype=torch.int64, device=scope.device)

    def update(self, predictions: Predictions) -> None:
        self._labels.update(predictions)
        self._sums += _steps(predictions.probabilities, self._scale).sum(dim=0).reshape(self._sums.shape)

    def arrays(self) -> Mapping[str, torch.Tensor]:
        return {**self._labels.arrays(), "score_sums": self._sums.T.contiguous()}


class CandidateScores(Counter):
    """Reads the score of each output's candidate; subclasses say what is kept of it."""

    name = "scores"


def _candidate_scores(predictions: Predictions, candidate: torch.Tensor) -> torch.Tensor:
    """Scores of the candidates, shape (samples, outputs)."""
    scores = predictions.probabilities.flatten(2)
    return scores.gather(1, candidate.expand(len(scores), 1, -1))[:, 0]


class ScorePowers(CandidateScores):
    """Sums of the first four powers of the candidate's rounded score: four numbers an output.

    Parameters
    ----------
    scale
        Number of grid steps in [0, 1]; a power of two makes the rounding exact.

    Raises
    ------
    InvalidInputError
        If the number of grid steps is out of range.
    """

    def __init__(self, scale: int = 1024) -> None:
        if not 1 <= scale <= FINEST_GRID:
            raise InvalidInputError(
                "scale", f"got {scale}", f"Pass a number of grid steps from 1 to {FINEST_GRID}, such as 1024"
            )
        self.scale = scale

    def start(self, scope: CountingScope) -> Accumulator:
        """Begin with zero sums."""
        return _Powers(scope, self.scale)

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {"name": self.name, "tally": "moments", "scale": self.scale, **NORMALISED}


class _Powers(Accumulator):
    def __init__(self, scope: CountingScope, scale: int) -> None:
        self._scale = scale
        self._candidate = scope.chosen["candidate"].reshape(1, 1, -1).to(torch.int64)
        self._sums = torch.zeros((4, self._candidate.numel()), dtype=torch.int64, device=scope.device)

    def update(self, predictions: Predictions) -> None:
        steps = _steps(_candidate_scores(predictions, self._candidate), self._scale)
        power = steps
        for order in range(4):
            self._sums[order] += power.sum(dim=0)
            power = power * steps

    def arrays(self) -> Mapping[str, torch.Tensor]:
        return {"powers": self._sums.T.contiguous()}


class ScoreBins(CandidateScores):
    """How often the candidate's score fell into each of equal bins.

    Parameters
    ----------
    bins
        Number of bins in [0, 1); a score of exactly 1 has a bin of its own. A power of two makes the rounding exact.

    Raises
    ------
    InvalidInputError
        If the number of bins is out of range.
    """

    def __init__(self, bins: int = 128) -> None:
        if not 1 <= bins <= FINEST_GRID:
            raise InvalidInputError(
                "bins", f"got {bins}", f"Pass a number of bins from 1 to {FINEST_GRID}, such as 128"
            )
        self.bins = bins

    def start(self, scope: CountingScope) -> Accumulator:
        """Begin with empty bins."""
        return _Bins(scope, self.bins)

    def configuration(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {"name": self.name, "tally": "histogram", "bins": self.bins, **NORMALISED}


class _Bins(Accumulator):
    def __init__(self, scope: CountingScope, bins: int) -> None:
        self._bins = bins
        self._candidate = scope.chosen["candidate"].reshape(1, 1, -1).to(torch.int64)
        self._counts = torch.zeros((self._candidate.numel(), bins + 1), dtype=torch.int32, device=scope.device)
        self._one = torch.ones((1, 1), dtype=torch.int32, device=scope.device)

    def update(self, predictions: Predictions) -> None:
        bins = _steps(_candidate_scores(predictions, self._candidate), self._bins).T
        self._counts.scatter_add_(1, bins, self._one.expand(bins.shape))

    def arrays(self) -> Mapping[str, torch.Tensor]:
        return {"bins": self._counts}
