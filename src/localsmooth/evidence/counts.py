"""Certified counts of one item, each against a dual proof that the collective kernel has verified."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from localsmooth.certificates import BaseCertificates
from localsmooth.collective import Bound, Curve, Envelope, Exact, Problem, Proof, Threat, prove, solve
from localsmooth.evidence.exact import power_covers
from localsmooth.tasks import Stakes

__all__ = ["Claimed", "KeptProof", "KeptProofs", "ProvenCounts", "Way", "ball_fails"]

_LONGEST = 60.0  # seconds for one budget, where a search that is run again ends before it has found what it had
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Way:
    """One way to certify a target: base certificates, and what outputs that do not abstain are worth."""

    base: BaseCertificates
    stakes: Stakes


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
        Number of the budget, where the proof is about a problem with this budget alone; −1 for one with all budgets.
    proof
        The proof.
    """

    way: int
    alone: int
    proof: Proof


KeptProofs = Mapping[tuple[str, str], Sequence[KeptProof]]
"""Proofs by names of item and target."""


class ProvenCounts:
    """Counts of one target of one item that are proven, budget by budget; a proof is looked for when it is needed.

    Parameters
    ----------
    ways
        The ways to certify it.
    budgets
        The budgets ε.
    threat
        What the adversary may do with some of them.

    Attributes
    ----------
    proofs
        The proofs that were verified.
    """

    def __init__(
        self, ways: Sequence[Way], budgets: Sequence[float], threat: Callable[[Sequence[float]], Threat]
    ) -> None:
        self._budgets, self._threat = budgets, threat
        self._ways = [way for way in ways if way.stakes.qualify.any()]
        self._problems = [self._problem(way, budgets) for way in self._ways]
        self._shown = [Fraction(0) for _ in budgets]
        self._most = [math.inf for _ in budgets]
        self.proofs: list[KeptProof] = []

    def _problem(self, way: Way, budgets: Sequence[float]) -> Problem:
        base, stakes = way.base, way.stakes
        threat = self._threat(budgets)
        return Problem(base.weights, base.eta, base.group, threat, stakes.qualify, stakes.problem_value)

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
        swift = [solve(problem, Envelope()) for problem in self._problems]
        left = np.stack([curve.upper - self._given(way) for way, curve in enumerate(swift)])
        self._most = left.max(axis=0).tolist()
        self._take_best(swift, range(len(swift)), claimed.values())
        kept = [np.maximum(curve.lower - self._given(way), 0.0).sum() for way, curve in enumerate(swift)]
        first = int(np.argmax(kept))
        for name, bound in bounds.items():
            if not self.missing(claimed[name]) or isinstance(bound, Envelope):
                continue
            ways = [first] if bound.searches else list(range(len(self._ways)))
            self._take_best([solve(self._problems[way], bound) for way in ways], ways, [claimed[name]])
            if isinstance(bound, Exact):
                self._insist(bound, first, claimed[name])

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

    def _take_best(self, curves: Sequence[Curve], ways: Sequence[int], claims: Collection[Claimed]) -> None:
        """Verify the best of several ways' proofs at each budget where something is missing."""
        for index in range(len(self._budgets)):
            if any(index in self.missing(claim) for claim in claims):
                found = [float(curve[index].lower) - self._given(way) for way, curve in zip(ways, curves, strict=True)]
                best = int(np.argmax(found))
                self._take(KeptProof(ways[best], -1, curves[best][index].proof))

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
        problem = self._problem(self._ways[way], [self._budgets[index]])
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
        whole = kept.alone < 0
        problem = self._problems[kept.way] if whole else self._problem(way, [self._budgets[kept.alone]])
        shown = _after_giving(way, problem, prove(problem, kept.proof))
        rows = self._problems[kept.way].constraints.budgets
        largest = rows[kept.proof.index if whole else kept.alone]
        better = [
            index for index in np.flatnonzero(np.all(rows <= largest, axis=1)).tolist() if shown > self._shown[index]
        ]
        for index in better:
            self._shown[index] = shown
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


def ball_fails(budgets: Sequence[float], exponent: int, threat: Threat, columns: int) -> str:
    """Say why a threat is not shown to allow all that a ball of each budget does; empty if it is.

    Parameters
    ----------
    budgets
        ε.
    exponent
        p of the norm.
    threat
        What the collective problem takes it for.
    columns
        Number of input groups.
    """
    made = threat.constraints(columns)
    if bool(made.limits) or bool(made.integer.any()) or bool(np.isfinite(made.caps).any()):
        return "it restricts more than the norm"
    if made.rows.shape != (1, columns) or not bool(np.all(made.rows == 1)) or len(made.budgets) != len(budgets):
        return "it is no sum over all input groups"
    for limit, budget in zip(made.budgets[:, 0].tolist(), budgets, strict=True):
        if not power_covers(limit, budget, exponent):
            return f"the limit {limit!r} is smaller than {budget!r} to the power {exponent}"
    return ""
