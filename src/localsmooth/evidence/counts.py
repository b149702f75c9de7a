"""Certified counts of one item, each against a dual proof that the collective kernel has verified."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from localsmooth.collective import Bound, Envelope, Exact, Problem, Proof, prove, solve
from localsmooth.evidence.item import Budgets, Way

__all__ = ["Claimed", "KeptProof", "KeptProofs", "ProvenCounts"]

_LONGEST = 60.0  # seconds for one budget, where a search that is run again ends before it has found what it had
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Claimed:
    """What a result claims of one target by one bound, over the budgets: counts, and bounds before rounding.

    `upper` is what the best attack found leaves, which is no promise, and helps to find a proof.
    """

    certified: Sequence[float | int]
    lower: Sequence[float | int]
    upper: Sequence[float | int]


@dataclass(frozen=True, eq=False)
class KeptProof:
    """A proof, and what it is about.

    Parameters
    ----------
    way
        Number of the way.
    alone
        Number of the budget, where the proof is about a problem with this budget alone; −1 for one with several.
    proof
        The proof.
    part
        Number of the problem with several budgets, where they are divided among some.
    """

    way: int
    alone: int
    proof: Proof
    part: int = 0


KeptProofs = Mapping[tuple[str, str], Sequence[KeptProof]]
"""Proofs by names of item and target."""


@dataclass(frozen=True, eq=False)
class _Found:
    """What a bound finds by one way, over all budgets: what is left at least and at most, and proofs."""

    lower: Float[np.ndarray, "budgets"]
    upper: Float[np.ndarray, "budgets"]
    proofs: Sequence[KeptProof]


class ProvenCounts:
    """Counts of one target of one item that are proven, budget by budget; a proof is looked for when it is needed.

    Parameters
    ----------
    ways
        The ways to certify it.
    budgets
        The budgets, and what the adversary may do with them.

    Attributes
    ----------
    proofs
        The proofs that were verified.
    """

    def __init__(self, ways: Sequence[Way], budgets: Budgets) -> None:
        self._budgets = budgets
        self._ways = [way for way in ways if way.stakes.qualify.any()]
        self._parts = [budgets.together(way.base) for way in self._ways]
        self._problems = [
            [budgets.problem(way, chosen) for chosen in parts]
            for way, parts in zip(self._ways, self._parts, strict=True)
        ]
        self._shown = [Fraction(0) for _ in budgets.sizes]
        self._most = [math.inf for _ in budgets.sizes]
        self.proofs: list[KeptProof] = []

    def prove(
        self, bounds: Mapping[str, Bound], claimed: Mapping[str, Claimed], known: Sequence[KeptProof] = ()
    ) -> None:
        """Look for proofs of what each bound is claimed to certify, the quickest first.

        Parameters
        ----------
        bounds
            The bounds by name.
        claimed
            What is claimed by each.
        known
            Proofs that were kept; verified like all others.

        Raises
        ------
        CertificateError
            If a proof is none.
        """
        for each in known:
            self._take(each)
        if not self._problems or not any(self.missing(claim) for claim in claimed.values()):
            return
        everything = range(len(self._ways))
        swift = [self._found(way, Envelope()) for way in everything]
        self._most = np.stack([found.upper - self._given(way) for way, found in enumerate(swift)]).max(axis=0).tolist()
        self._take_best(swift, everything, claimed.values())
        kept = [np.maximum(found.lower - self._given(way), 0.0).sum() for way, found in enumerate(swift)]
        first = int(np.argmax(kept))
        for name, bound in bounds.items():
            if not self.missing(claimed[name]) or isinstance(bound, Envelope):
                continue
            ways = [first] if bound.searches else everything
            self._take_best([self._found(way, bound) for way in ways], ways, [claimed[name]])
            if isinstance(bound, Exact):
                self._insist(bound, first, claimed[name])

    def _found(self, way: int, bound: Bound) -> _Found:
        """Solve by one way, at all budgets."""
        count = len(self._shown)
        lower, upper, proofs = np.zeros(count), np.zeros(count), dict[int, KeptProof]()
        for part, (chosen, problem) in enumerate(zip(self._parts[way], self._problems[way], strict=True)):
            for index, answer in zip(chosen.tolist(), solve(problem, bound), strict=True):
                lower[index], upper[index] = float(answer.lower), float(answer.upper)
                proofs[index] = KeptProof(way, -1, answer.proof, part)
        return _Found(lower, upper, [proofs[index] for index in range(count)])

    def missing(self, claim: Claimed) -> list[int]:
        """Numbers of the budgets at which a claim is not proven."""
        # What is proven is so in whole units, which the bound before rounding never exceeds.
        each = zip(self._shown, claim.certified, claim.lower, strict=True)
        return [index for index, (shown, *claimed) in enumerate(each) if Fraction(max(claimed)) > shown]

    def most(self, index: int) -> float:
        """The most that attacks which were found leave at a budget, by the best way: no proof can show more."""
        return self._most[index] if self._ways else 0.0

    def join(self, part: ProvenCounts) -> None:
        """Let what is proven of some outputs count for all of them."""
        self._shown = [max(mine, theirs) for mine, theirs in zip(self._shown, part._shown, strict=True)]
        self._most = [max(mine, theirs) for mine, theirs in zip(self._most, part._most, strict=True)]

    def _take_best(self, several: Sequence[_Found], ways: Sequence[int], claims: Collection[Claimed]) -> None:
        """Verify the best of several ways' proofs at each budget where something is missing."""
        for index in range(len(self._shown)):
            if any(index in self.missing(claim) for claim in claims):
                left = [found.lower[index] - self._given(way) for way, found in zip(ways, several, strict=True)]
                self._take(several[int(np.argmax(left))].proofs[index])

    def _insist(self, bound: Exact, first: int, claim: Claimed) -> None:
        """Search single budgets for no more than what is claimed: a time limit may have ended the first search."""
        limit = _LONGEST if bound.time_limit is None else max(_LONGEST, float(bound.time_limit))
        for index in self.missing(claim):
            for way in [first, *(other for other in range(len(self._ways)) if other != first)]:
                if index in self.missing(claim):  # a proof for a larger budget may have come in the meantime
                    self._insist_at(index, way, claim, limit)

    def _insist_at(self, index: int, way: int, claim: Claimed, limit: float) -> None:
        # Enough is the first bound from which the claim follows; a search stops at a distance from its best attack.
        wanted, upper = claim.certified[index] + self._given(way), claim.upper[index]
        problem = self._budgets.problem(self._ways[way], np.array([index]))
        for _ in range(_ROUNDS):
            slack = max(0.0, upper - wanted) * (1.0 if self._ways[way].stakes.counts else 1 - 1e-9)
            answer = solve(problem, Exact(gap=slack, time_limit=limit))[0]
            self._take(KeptProof(way, index, answer.proof))
            upper = float(answer.upper)
            if upper < wanted or index not in self.missing(claim):
                break
        if len(self._ways) == 1:
            self._most[index] = min(self._most[index], upper - self._given(way))

    def _given(self, way: int) -> float:
        return self._ways[way].base.discount + self._ways[way].base.spare

    def _take(self, kept: KeptProof) -> None:
        """Verify a proof in exact arithmetic; what it shows holds for every budget that allows no more."""
        way = self._ways[kept.way]
        if kept.alone < 0:
            problem, index = self._problems[kept.way][kept.part], self._parts[kept.way][kept.part][kept.proof.index]
        else:
            problem, index = self._budgets.problem(way, np.array([kept.alone])), kept.alone
        shown = _after_giving(way, problem, prove(problem, kept.proof))
        sizes = self._budgets.sizes
        none_larger = np.flatnonzero(np.all(sizes <= sizes[index], axis=1)).tolist()
        better = [each for each in none_larger if shown > self._shown[each]]
        for each in better:
            self._shown[each] = shown
        if better:
            self.proofs.append(kept)


def _after_giving(way: Way, problem: Problem, value: Fraction) -> Fraction:
    """Lower what is proven by what the rule for many outputs may be wrong about."""
    base, stakes, unit = way.base, way.stakes, problem.worth.unit
    if stakes.counts:
        lost = Fraction(base.discount)
    else:
        dearest = np.sort(stakes.values)[max(stakes.values.size - base.discount, 0) :].tolist()
        lost = sum(map(Fraction, dearest), Fraction(0)) + Fraction(base.spare)
    return max(Fraction(0), math.ceil(value / unit) * unit - lost)
