"""How scores are counted for the certificates that need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Integer

from localsmooth.bounds import ScoreBound, ScoreHistogram, ScoreMoments, even_thresholds
from localsmooth.sampling import Counters, LabelsAndScores, ScoreBins, ScorePowers, Votes

__all__ = ["ScoreCounting"]


@dataclass(frozen=True)
class ScoreCounting:
    """What is kept of each candidate's score.

    Parameters
    ----------
    kind
        Power sums, or a histogram.
    grid
        Number of grid steps in [0, 1].
    """

    kind: Literal["moments", "histogram"]
    grid: int

    @classmethod
    def for_bound(cls, bound: ScoreBound) -> ScoreCounting:
        """Count as little as the bound needs."""
        return cls("histogram", 128) if bound.needs_histogram else cls("moments", 1024)

    def counters(self) -> Counters:
        """Counters of the two stages, votes included."""
        scores = ScorePowers(self.grid) if self.kind == "moments" else ScoreBins(self.grid)
        return Counters((LabelsAndScores(),), (Votes(), scores))

    @property
    def array_name(self) -> str:
        """Name of the counted array among an item's tallies."""
        return "scores.powers" if self.kind == "moments" else "scores.bins"

    def tally(self, array: Integer[np.ndarray, "outputs columns"], n: int) -> ScoreMoments | ScoreHistogram:
        """Make the tally that bounds read from what the counters kept."""
        if self.kind == "moments":
            return ScoreMoments(n, array.T.astype(np.int64), self.grid)
        return ScoreHistogram(even_thresholds(self.grid), array.astype(np.int64))

    @staticmethod
    def array(tally: ScoreMoments | ScoreHistogram) -> Integer[np.ndarray, "outputs columns"]:
        """Give back what `tally` was made from."""
        return np.ascontiguousarray(tally.sums.T) if isinstance(tally, ScoreMoments) else tally.counts
