"""Stop drawing for an output group once its votes say enough."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int

__all__ = ["StoppingRule"]


class StoppingRule(ABC):
    """When an output group needs no more samples of the bound stage.

    It is asked after each chunk, in the order of the chunks' numbers, and hears of nothing but the votes so far: where
    a group stops depends on the run's seed alone, whatever the batch size, the number of threads and interruptions.
    The number of samples then depends on the votes, so that only bounds that hold at every number of samples at once
    (`localsmooth.bounds.VoteConfidenceSequence`) may be built on them.
    """

    @abstractmethod
    def decided(self, item: int, group: int, votes: Int[np.ndarray, "outputs"], n: int) -> bool:
        """Say whether the first `n` samples of a group suffice; a function of its arguments alone.

        Parameters
        ----------
        item, group
            Which output group.
        votes
            Votes of the group's outputs so far, in flat order.
        n
            Samples so far, at least 1.
        """

    @abstractmethod
    def require_fit(self, groups: Sequence[int]) -> None:
        """Refuse to be used on items with these numbers of output groups, if that is not possible.

        Raises
        ------
        InvalidInputError
            Saying what does not fit.
        """

    @abstractmethod
    def configuration(self) -> Mapping[str, object]:
        """Everything that the decisions depend on, as stored with a run (JSON-compatible)."""
