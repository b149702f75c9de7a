"""What votes say against an error probability, from the definition: MATH.md section 10, in whole numbers.

M(u) = ∫ v^x (1−v)^(n−x) dπ(v) / (u^x (1−u)^(n−x)) for x errors among n votes, and m(u) = M(u) for u ≥ x/n, else 0.
The prior π has a point mass at 0 and Beta distributions with whole parameters, so that the integral is a sum of
quotients of rising factorials, which are whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from localsmooth.evidence.exact.big import (
    Big,
    divided_down,
    divided_up,
    dyadic,
    float_below,
    power_up,
    sum_down,
    times_down,
    times_up,
)

__all__ = ["Ballot", "Kind"]


@dataclass(frozen=True)
class Kind:
    """A prior of error probabilities: never @ δ₀ + Σ weight · Beta(a, b).

    Parameters
    ----------
    never
        Weight of the point mass at 0.
    betas
        Weight, a and b of each Beta distribution; a and b whole numbers ≥ 1.
    """

    never: float
    betas: tuple[tuple[float, int, int], ...]

    @property
    def proper(self) -> bool:
        """Whether weights are ≥ 0 and sum to at most 1, exactly."""
        weights = [self.never, *(weight for weight, _, _ in self.betas)]
        whole = all(a >= 1 and b >= 1 for _, a, b in self.betas)
        return whole and all(w >= 0 for w in weights) and sum(map(Fraction, weights), Fraction(0)) <= 1

    def integrals(self, errors: Sequence[int], trials: int) -> list[Big]:
        """Return ∫ v^x (1−v)^(n−x) dπ(v), rounded down, for ascending numbers of errors x."""
        made: list[Big] = [dyadic(self.never) if x == 0 else (0, 0) for x in errors]
        for weight, a, b in self.betas:
            last, value = 0, dyadic(weight)
            # ∫ v^x (1−v)^(n−x) dBeta(a, b) = (a)_x (b)_(n−x) / (a+b)_n with rising factorials, here for x = 0.
            value = times_down(value, (math.perm(b + trials - 1, trials), 0))
            value = divided_down(value, (math.perm(a + b + trials - 1, trials), 0))
            for place, x in enumerate(errors):
                if x > last:
                    value = times_down(value, (math.perm(a + x - 1, x - last), 0))
                    value = divided_down(value, (math.perm(b + trials - last - 1, x - last), 0))
                    last = x
                made[place] = sum_down(made[place], value)
        return made


class Ballot:
    """Votes of many outputs, and what they say against any error probability; outputs with equal votes share a case.

    Parameters
    ----------
    errors, trials
        Votes of each output that were not for its candidate, and all its votes.
    kind
        Number of each output's prior.
    priors
        The priors; fixed before the votes.

    Attributes
    ----------
    case
        Case of each output.
    cases
        How many there are.

    Raises
    ------
    ValueError
        If a prior is none, or there are more errors than votes.
    """

    def __init__(
        self,
        errors: Int[np.ndarray, " outputs"],
        trials: Int[np.ndarray, " outputs"],
        kind: Int[np.ndarray, " outputs"],
        priors: Sequence[Kind],
    ) -> None:
        if not all(prior.proper for prior in priors):
            raise ValueError("a prior of the error probabilities has a weight below 0, or more than 1 in all")
        if bool(np.any((errors < 0) | (errors > trials) | (trials < 1))):
            raise ValueError("there are more errors than votes")
        # Ascending in votes, then in errors.
        columns = np.stack([trials, errors, kind]).astype(np.int64)
        rows, case = np.unique(columns, axis=1, return_inverse=True)
        self.case = case.reshape(-1)
        self.cases = rows.shape[1]
        self._errors: list[list[int]] = []
        self._trials: list[int] = np.unique(rows[0]).tolist()
        self._integrals: list[list[Big]] = []
        self._known: dict[float, Float[np.ndarray, " cases"]] = {}
        for number in self._trials:
            own = rows[:, rows[0] == number]
            integrals: list[Big] = [(0, 0)] * own.shape[1]
            for each in np.unique(own[2]).tolist():
                places = np.flatnonzero(own[2] == each).tolist()
                for place, value in zip(places, priors[each].integrals(own[1, places].tolist(), number), strict=True):
                    integrals[place] = value
            self._errors.append(own[1].tolist())
            self._integrals.append(integrals)

    def against(self, u: float) -> Float[np.ndarray, " cases"]:
        """Bound m(u) of every case from below, for 0 < u < 1."""
        if u not in self._known:
            each = zip(self._errors, self._trials, self._integrals, strict=True)
            self._known[u] = np.array([value for parts in each for value in _evidence_below(*parts, u)])
        return self._known[u]


def _evidence_below(errors: Sequence[int], trials: int, integrals: Sequence[Big], u: float) -> list[float]:
    """Bound m(u) from below, for ascending numbers of errors."""
    wrong = dyadic(u)
    size = 1 << -wrong[1]
    right: Big = (size - wrong[0], wrong[1])
    odds = divided_up(wrong, right)
    made = [0.0] * len(errors)
    last, likelihood = 0, power_up(right, trials)
    for place, (x, integral) in enumerate(zip(errors, integrals, strict=True)):
        if x * size > wrong[0] * trials:
            break  # x/n > u, as for all that follow
        if x > last:
            likelihood = times_up(likelihood, power_up(odds, x - last))
            last = x
        made[place] = float_below(divided_down(integral, likelihood))
    return made
