"""Whether what a collective problem takes for a threat allows all that is promised."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from localsmooth.collective import Constraints, Threat
from localsmooth.evidence.exact import power_covers

__all__ = ["ball_fails", "flips_fail"]


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


def flips_fail(
    sizes: Float[np.ndarray, "budgets kinds"],
    kind: Int[np.ndarray, "columns"],
    room: Int[np.ndarray, "columns"],
    made: Constraints,
) -> str:
    """Say why constraints are not shown to allow every choice of whole flips within budgets; empty if they are.

    Parameters
    ----------
    sizes
        How many flips of each kind every budget allows.
    kind
        Kind of the flips that each column counts.
    room
        How many bits there are to flip in each column.
    made
        What the collective problem takes the threat for.
    """
    if bool(made.limits):
        return "it restricts in how many groups bits are flipped"
    if made.caps.shape != room.shape or len(made.budgets) != len(sizes):
        return "it is about other budgets or input groups"
    if bool(np.any(made.caps < room)):
        column = int(np.argmax(made.caps < room))
        return f"it allows {made.caps[column]:g} flips in a column, and there are {room[column]} bits to flip"
    # The most that each kind of flip can add to a row, one flip at a time.
    dearest = np.zeros((len(made.rows), sizes.shape[1]))
    for number in range(sizes.shape[1]):
        dearest[:, number] = made.rows[:, kind == number].max(axis=1, initial=0.0)
    for limits, budget in zip(made.budgets.tolist(), sizes.tolist(), strict=True):
        for limit, prices in zip(limits, dearest.tolist(), strict=True):
            if limit == np.inf:
                continue
            most = sum(
                (Fraction(price) * Fraction(size) for price, size in zip(prices, budget, strict=True)), Fraction(0)
            )
            if Fraction(limit) < most:
                return f"the limit {limit!r} is smaller than the {budget!r} flips that are promised"
    return ""
