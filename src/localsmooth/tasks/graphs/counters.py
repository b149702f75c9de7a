"""What is counted about node predictions: votes and scores of the same samples, at once."""

from __future__ import annotations

from localsmooth.sampling import Counters
from localsmooth.tasks.scores import ScoreCounting

__all__ = ["SCORE_BINS", "node_counters"]

SCORE_BINS = 256
"""Grid steps of the scores unless another number is asked for; a power of two keeps the rounding exact."""


def node_counters(bins: int = SCORE_BINS) -> Counters:
    """Votes, and a histogram of the candidate's scores, from the same samples."""
    return ScoreCounting("histogram", bins).counters()
