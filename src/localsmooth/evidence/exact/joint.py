"""Counts of outputs, checked from the definition: MATH.md section 10 with uniform weights.

T outputs take part. On the event Σ_n M_n(u_n) < T/α, whose probability is at least 1 − α, every set F of outputs of
which each has an error probability u_n ≥ υ_n has Σ_F m_n(υ_n) < T/α. What is claimed of a stratum is that its k-th
smallest bound l is below the k-th smallest probability, so that an adversary who asks for an error probability below υ
of it breaks at most B(υ) = #{l ≤ 1 − υ}. B changes at the bounds alone, and m does not fall with υ: for each distinct
bound l > 0, of which j others are smaller, υ = 1 − l decides.

* Nothing is given away: the j + 1 smallest m_n(υ) of the stratum sum to T/α or more, so that no j + 1 outputs can fail.
* A value g is given away once (a number of outputs, or what these are worth): with λ = gα/T, the value of F is
  Σ_F (v_n − λ m_n) + λ Σ_F m_n < Σ_s v_s R_s(υ_s) + g, R_s(υ) = Σ_n max(0, 1 − λ m_n(υ)/v_s), so that j ≥ R_s is
  enough in each stratum; and for counts, which are whole, j ≥ R_s − 1/strata.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.evidence.exact.evidence import Ballot

__all__ = ["CountClaim", "count_claim_fails", "refuted_alone"]

_UNIT = 2.0**-50  # more than the rounding error of a few operations on floats


@dataclass(frozen=True, eq=False)
class CountClaim:
    """Bounds that are claimed to be true of counts.

    Parameters
    ----------
    ballot
        The votes of the outputs.
    stratum
        Stratum of each output; negative for those that take no part. Fixed before the votes.
    lower
        The claimed bounds on the probabilities.
    alpha
        Probability with which the claim may be wrong.
    given
        What is subtracted from every count, or from every sum of worth.
    worth
        What each output is worth, the same within a stratum; None where they are counted.
    """

    ballot: Ballot
    stratum: Int[np.ndarray, " outputs"]
    lower: Float[np.ndarray, " outputs"]
    alpha: float
    given: float = 0.0
    worth: Float[np.ndarray, " outputs"] | None = None


def count_claim_fails(claim: CountClaim) -> str:
    """Say what does not hold of a claim; empty if all of it is proven."""
    if not (0 < claim.alpha < 1 and claim.given >= 0 and bool(np.all((claim.lower >= 0) & (claim.lower < 1)))):
        return "a bound, alpha or what is given away is out of range"
    taking = claim.stratum >= 0
    if bool(np.any(claim.lower[~taking] > 0)):
        return "an output that takes no part has a bound above 0"
    total = int(taking.sum())
    if total == 0:
        return ""
    stratum = np.unique(claim.stratum[taking], return_inverse=True)[1]
    lower, strata = claim.lower[taking], int(stratum.max()) + 1
    members = np.zeros((strata, claim.ballot.cases))
    np.add.at(members, (stratum, claim.ballot.case[taking]), 1.0)
    worth = np.ones(strata)
    if claim.worth is not None:
        worth[stratum] = claim.worth[taking]
        if not np.array_equal(worth[stratum], claim.worth[taking]) or bool(np.any(worth < 0)):
            return "outputs of one stratum are worth different values"
    share = 0.0 if claim.worth is not None else (1 - _UNIT) / strata
    # T/α, rounded up; λ = gα/T, rounded down.
    enough = float(Fraction(total) / Fraction(claim.alpha)) * (1 + _UNIT)
    rate = float(Fraction(claim.given) * Fraction(claim.alpha) / total) * (1 - _UNIT)
    shrink = 1 - (claim.ballot.cases + 8) * _UNIT
    below = [np.sort(lower[stratum == number]) for number in range(strata)]
    for bound in np.unique(lower[lower > 0]).tolist():
        against = claim.ballot.against(_complement(bound))
        order = np.argsort(against, kind="stable")
        for number in range(strata):
            smaller = int(np.searchsorted(below[number], bound, side="left"))
            if smaller == below[number].size or below[number][smaller] != bound or worth[number] == 0:
                continue
            if claim.given:
                lost = np.maximum(0.0, 1 - rate * against * (1 - _UNIT) / worth[number])
                proven = float(members[number] @ lost) / shrink <= smaller + share
            else:
                outputs = np.minimum(np.cumsum(members[number][order]), smaller + 1.0)
                proven = float(np.diff(outputs, prepend=0.0) @ against[order]) * shrink >= enough
            if not proven:
                size = below[number].size
                return f"more than {smaller} outputs of a stratum of {size} may have a probability below {bound!r}"
    return ""


def refuted_alone(ballot: Ballot, lower: Float[np.ndarray, " outputs"], alpha: float) -> Bool[np.ndarray, " outputs"]:
    """Say for each output whether its votes show, at level α, that its candidate's probability is above a bound."""
    made = lower <= 0
    for bound in np.unique(lower[(lower > 0) & (lower < 1)]).tolist():
        shown = ballot.against(_complement(bound)) * (alpha * (1 - _UNIT)) >= 1
        made |= (lower == bound) & shown[ballot.case]
    return made


def _complement(lower: float) -> float:
    """1 − lower, rounded down: m does not fall with u."""
    made = 1.0 - lower
    return math.nextafter(made, 0.0) if Fraction(made) + Fraction(lower) > 1 else made
