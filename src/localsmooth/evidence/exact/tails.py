"""Binomial tails from above, in whole numbers."""

from __future__ import annotations

import math

from localsmooth.evidence.exact.big import Big, at_most, divided_up, dyadic, power_up, sum_up, times_up

__all__ = ["tail_is_at_most"]

_ENOUGH = 100  # bits of the sum below which what is left of it is bounded by a geometric series


def tail_is_at_most(successes: int, trials: int, probability: float, level: float) -> bool:
    """Say whether Pr[Binomial(trials, probability) ≥ successes] ≤ level is proven, for 0 ≤ successes ≤ trials.

    That is what makes `probability` a lower confidence bound of that level (Clopper and Pearson 1934): the terms of the
    sum are rounded up, and all after the last one that is added are bounded by a geometric series.
    """
    if not (0 <= successes <= trials and 0.0 <= probability < 1.0 and level >= 0.0):
        return False
    if probability == 0.0:
        return successes > 0 or level >= 1.0
    right = dyadic(probability)
    size = 1 << -right[1]
    wrong: Big = (size - right[0], right[1])
    term = times_up(power_up(right, successes), power_up(wrong, trials - successes))
    term = times_up(term, (math.comb(trials, successes), 0))
    total: Big = (0, 0)
    for number in range(successes, trials + 1):
        total = sum_up(total, term)
        # The next term is this one times top / bottom, and the quotient falls from term to term.
        top, bottom = (trials - number) * right[0], (number + 1) * wrong[0]
        if top < bottom:
            rest = divided_up(times_up(term, (top, 0)), (bottom - top, 0))
            if at_most((rest[0], rest[1] + _ENOUGH), total):
                total = sum_up(total, rest)
                break
        term = divided_up(times_up(term, (top, 0)), (bottom, 0))
    return at_most(total, dyadic(level))
