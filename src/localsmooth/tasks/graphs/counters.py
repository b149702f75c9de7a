"""What is counted about node predictions: votes and scores of the same samples, at once."""

from __future__ import annotations

import numpy as np

from localsmooth.bounds import ScoreHistogram, even_thresholds
from localsmooth.errors import InvalidInputError
from localsmooth.sampling import Counters, ItemTally
from localsmooth.tasks.scores import ScoreCounting

__all__ = ["SCORE_BINS", "node_counters", "score_histogram"]

SCORE_BINS = 256
"""Grid steps of the scores unless another number is asked for; a power of two keeps the rounding exact."""


def node_counters(bins: int = SCORE_BINS) -> Counters:
    """Votes, and a histogram of the candidate's scores, from the same samples."""
    return ScoreCounting("histogram", bins).counters()


def score_histogram(tally: ItemTally, outputs: np.ndarray | None = None) -> ScoreHistogram:
    """Histogram of the candidate's scores of all outputs, or of some.

    Raises
    ------
    InvalidInputError
        If scores were not counted.
    """
    counts = tally.further.get("scores.bins")
    if counts is None:
        raise InvalidInputError("tally", "it holds no scores", "Sample with node_counters()")
    return ScoreHistogram(even_thresholds(counts.shape[1] - 1), counts if outputs is None else counts[outputs])
