"""Tallies: the mergeable integer statistics that sampling leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Int

from localsmooth.errors import InvalidInputError

__all__ = ["CandidateTally", "VoteTally"]


def _require_mergeable(left: object, right: object, same: bool) -> None:
    if not same:
        raise InvalidInputError(
            "tally",
            f"{left!r} and {right!r} count different things",
            "Merge tallies of the same outputs and candidates",
        )


@dataclass(frozen=True, eq=False)
class CandidateTally:
    """How often each class was predicted, per output of a group.

    Parameters
    ----------
    counts
        Occurrences of each class.
    n
        Number of samples counted.
    """

    counts: Int[np.ndarray, "outputs classes"]
    n: int

    def __add__(self, other: Self) -> CandidateTally:
        _require_mergeable(self, other, self.counts.shape == other.counts.shape)
        return CandidateTally(self.counts + other.counts, self.n + other.n)

    @property
    def candidate(self) -> Int[np.ndarray, "outputs"]:
        """Most frequent class of each output, the smallest on ties."""
        return self.counts.argmax(axis=1)


@dataclass(frozen=True, eq=False)
class VoteTally:
    """How often the candidate was predicted, per output of a group.

    Parameters
    ----------
    candidate
        Candidate class of each output, chosen on other samples.
    votes
        Occurrences of the candidate.
    n
        Number of samples counted.
    """

    candidate: Int[np.ndarray, "outputs"]
    votes: Int[np.ndarray, "outputs"]
    n: int

    def __add__(self, other: Self) -> VoteTally:
        _require_mergeable(self, other, bool(np.array_equal(self.candidate, other.candidate)))
        return VoteTally(self.candidate, self.votes + other.votes, self.n + other.n)
