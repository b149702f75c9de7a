"""How far certificates can reach, before anything is drawn: what all outputs get if all of their votes agree.

The ideal is certified by the code that certifies, with fewer outputs where that comes to the same. So nothing here is
needed for a certificate to be true. No real run gets farther by rules that bound every output; rules that bound counts
choose after the votes what all strata share, and other votes may lead to a choice that gets a little farther.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.bounds import (
    Bonferroni,
    CandidateRule,
    CandidateVotes,
    Sharing,
    VoteBounds,
    VoteConfidenceSequence,
)
from localsmooth.certificates import OutputVotes
from localsmooth.collective import Bound, Constraints, Envelope, LinearProgram
from localsmooth.errors import InvalidInputError
from localsmooth.tasks.strategies import Strategies

__all__ = [
    "KnownVotes",
    "Planned",
    "budget_steps",
    "cheap_bounds",
    "farthest",
    "settled_bounds",
    "unanimous",
]

_DOUBLINGS, _PRECISION, _STEPS = 50, 1e-3, 12


@dataclass(frozen=True)
class Planned:
    """How often is drawn.

    Parameters
    ----------
    n_candidate, n_bound
        N₁ and N₂.
    sequence
        Confidence sequence that votes are bounded with; None where N₂ is fixed.
    """

    n_candidate: int
    n_bound: int
    sequence: VoteConfidenceSequence | None = None


@dataclass(frozen=True, eq=False)
class KnownVotes(OutputVotes):
    """Votes of which the bounds are known already, whatever the rule.

    Parameters
    ----------
    known
        Those bounds.
    """

    known: VoteBounds | None = None

    @classmethod
    def of_shares(cls, votes: OutputVotes, counted: Bool[np.ndarray, "outputs"] | None = None) -> KnownVotes:
        """Take the shares of votes for the probabilities, which more samples would lead to.

        Parameters
        ----------
        votes
            The votes.
        counted
            Outputs that count; None if all do.
        """
        n = np.asarray(votes.n)
        # A unanimous output is taken for one that erred once in twice as many samples.
        share = np.minimum(votes.votes / n, 1 - 0.5 / n)
        lower = share if counted is None else np.where(counted, share, 0.0)
        fields = {name: getattr(votes, name) for name in OutputVotes.__dataclass_fields__}
        return cls(**fields, known=VoteBounds(lower, 0))

    def bounds(
        self,
        sharing: Sharing,
        alpha: float,
        stratum: Int[np.ndarray, "outputs"] | None,
        worth: Float[np.ndarray, "outputs"] | None = None,
    ) -> VoteBounds:
        """Return them."""
        return super().bounds(sharing, alpha, stratum, worth) if self.known is None else self.known

    def part(self, outputs: Int[np.ndarray, "some"]) -> KnownVotes:
        """Votes of some of the outputs, with what is known of these."""
        made, known = super().part(outputs), self.known
        assert isinstance(made, KnownVotes)
        if known is None:
            return made
        alone = None if known.alone is None else known.alone[outputs]
        return replace(made, known=replace(known, lower=known.lower[outputs], alone=alone))


def unanimous(
    group: Int[np.ndarray, "outputs"],
    planned: Planned,
    settings: Strategies,
    ignored: Bool[np.ndarray, "outputs"] | None = None,
) -> KnownVotes:
    """Votes of which every one is for class 0, with their bounds.

    Where shares of α follow the candidate stage, any output is bounded as if it had all of α: no shares promise more.

    Parameters
    ----------
    group
        Output group of each output that shares α.
    planned
        How often is drawn.
    settings
        What is proven.
    ignored
        Outputs that do not count.
    """
    size, n = group.size, planned.n_bound
    zeros = np.zeros(size, dtype=np.int64)
    first = CandidateVotes(np.full(size, planned.n_candidate), planned.n_candidate)
    votes = KnownVotes(zeros, np.full(size, n), n, None, planned.sequence, first, n, zeros)
    if isinstance(settings.simultaneous, CandidateRule):
        one = votes.part(np.zeros(1, dtype=np.int64)).bounds(Bonferroni(), settings.alpha, None)
        return replace(votes, known=replace(one, lower=np.repeat(one.lower, size)))
    stratum = group.astype(np.int64) if ignored is None else np.where(ignored, -1, group)
    return replace(votes, known=votes.bounds(settings.sharing, settings.alpha, stratum))


def settled_bounds(votes: KnownVotes, group: Int[np.ndarray, "outputs"]) -> Int[np.ndarray, "some"]:
    """Choose outputs that decide whether anything is certified: of each group the one with the best bound.

    Where outputs are subtracted from every count, all of them are needed.

    Parameters
    ----------
    votes
        With known bounds.
    group
        Group of each output.
    """
    assert votes.known is not None
    if votes.known.discount:
        return np.arange(group.size)
    order = np.lexsort([-votes.known.lower, group])
    return order[np.unique(group[order], return_index=True)[1]]


def cheap_bounds(bounds: Mapping[str, Bound], constraints: Constraints) -> tuple[dict[str, Bound], dict[str, str]]:
    """Bounds whose reach is worth computing, and whose reach each of the given ones has.

    The relaxations certify anything wherever no spending breaks everything, up to whole numbers: their reach is that of
    the search for exact answers unless perturbations are counted in whole steps or groups. There it is not known.

    Parameters
    ----------
    bounds
        Collective bounds by name.
    constraints
        The threat.
    """
    hard = {name for name, one in bounds.items() if one.searches or one.time_limit is not None}
    relaxed = isinstance(bounds.get("envelope"), Envelope) or bool(hard)
    made = {name: one for name, one in bounds.items() if name not in hard and not isinstance(one, LinearProgram)}
    made |= {} if relaxed else {name: one for name, one in bounds.items() if isinstance(one, LinearProgram)}
    if relaxed:
        made["envelope"] = Envelope()
    continuous = not bool(constraints.integer.any()) and not constraints.limits
    same = {name: name if name in made else "envelope" for name in bounds if continuous or name not in hard}
    return made, {name: name for name in made} | same


def farthest(
    holds: Callable[[float], bool], start: float = 1.0, whole: bool = False, most: float = math.inf, least: float = 0.0
) -> float:
    """Return the largest budget at which something is certified, a thousandth or so below the limit; `inf` for none.

    Parameters
    ----------
    holds
        Whether anything is certified at a budget.
    start
        Where the limit may lie.
    whole
        Whether budgets are whole numbers.
    most
        What there is to spend at all: where something is certified there, there is no limit.
    least
        What is known to be reached otherwise: returned where nothing is certified a thousandth beyond it.
    """
    # Where the guess is right, no more than this and a little less is tried.
    low, high = 0.0, start if whole else start * (1 + 0.4 * _PRECISION)
    if least > 0:
        beyond = least + 1 if whole else least * (1 + _PRECISION)
        if math.isinf(least) or not holds(beyond):
            return least
        low, high = beyond, high if high > beyond else 2 * beyond
    close = start * (1 - _PRECISION / 2)
    if not whole and close > low and holds(close):
        low = close
    elif low == 0 and not holds(0.0):
        return 0.0
    for _ in range(_DOUBLINGS):
        if not holds(high):
            break
        if high >= most:
            return math.inf
        low, high = high, 2 * high
    else:
        return math.inf
    while high - low > (1 if whole else _PRECISION * high) and high > start * 1e-9:
        middle = float((low + high) // 2) if whole else (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def budget_steps(reach: Mapping[str, float], whole: bool = False, field: str = "budgets") -> tuple[float, ...]:
    """About 13 budgets from 0 to the farthest reach, a multiple of a step of two digits each.

    Parameters
    ----------
    reach
        By bound.
    whole
        Whether budgets are whole numbers.
    field
        What the budgets are called.

    Raises
    ------
    InvalidInputError
        If it is not known, or there is no limit or nothing within it.
    """
    largest = max(reach.values(), default=math.nan)
    if not 0 < largest < math.inf:
        problem = "nothing is certified beyond 0" if largest == 0 else "there is no limit"
        problem = "it cannot be told how far certificates reach" if math.isnan(largest) else problem
        remedy = "Draw more samples" if largest == 0 else "Name the budgets"
        raise InvalidInputError(field, f'"auto" proposes none: {problem}', remedy)
    step = largest / _STEPS
    digits = 1 - math.floor(math.log10(step))
    step = math.floor(step * 10**digits) * 10.0**-digits
    step = max(1.0, math.floor(step)) if whole else step
    count = math.floor(largest / step * (1 + 1e-12))
    return tuple(float(f"{number * step:.10g}") for number in range(count + 1))
