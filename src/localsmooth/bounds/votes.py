"""Confidence bounds on the probability of a label, from the number of votes it received.

Source: Clopper and Pearson 1934. The bound is the probability at which the observed count becomes too surprising:
Pr[X >= votes] = level at the lower bound.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Integer
from scipy import special

from localsmooth.blocks import look_up
from localsmooth.bounds.binomial import binomial_tail
from localsmooth.bounds.cases import distinct_cases
from localsmooth.errors import InvalidInputError, LocalsmoothError

__all__ = ["NumericalError", "clopper_pearson_lower"]

_EPSILON = float(np.finfo(np.float64).eps)
_LARGEST_COUNT = 2**53
_MAX_ROUNDS = 30

Level = float | Float[np.ndarray, "*#shape"]
Count = int | np.integer | Integer[np.ndarray, "*#shape"]


class NumericalError(LocalsmoothError, ArithmeticError):
    """A special function returned a value that no bound may be built on."""


def clopper_pearson_lower(
    votes: int | np.integer | Integer[np.ndarray, "*shape"], n: Count, level: Level
) -> Float[np.ndarray, "*shape"]:
    """Lower confidence bound on a success probability, one-sided.

    Parameters
    ----------
    votes
        Number of successes per output, between 0 and ``n``.
    n
        Number of trials: one for all outputs, or one per output.
    level
        Probability in (0, 1) with which the bound may exceed the true probability: one for all outputs, or one per
        output.

    Returns
    -------
    Float[np.ndarray, "*shape"]
        The bounds: exactly 0 for no success, ``level ** (1 / n)`` for nothing but successes, never NaN. Each is
        rounded down until a rigorous bound on Pr[X >= votes] is no larger than ``level``, so the bound holds whatever
        the error of the special function that suggested it.

    Raises
    ------
    InvalidInputError
        If a count is not an integer in [0, n], n < 1 or a level is outside (0, 1).
    NumericalError
        If the incomplete beta function's inverse is not finite.
    """
    counts = np.asarray(votes)
    _check(counts, n, level)
    columns = [np.asarray(column) for column in (counts, n, level)]
    # What is the same for all outputs is not spread over them.
    columns = [np.broadcast_to(c, counts.shape).ravel() if c.ndim else c.reshape(1) for c in columns]
    varying = [column for column in columns if column.size == counts.size]
    first, case = distinct_cases(*varying)
    bounds = _lower(
        *((c[first] if c.size == counts.size else c.repeat(first.size)).astype(np.float64) for c in columns)
    )
    return look_up(bounds, case).reshape(counts.shape)


def _check(votes: np.ndarray, n: Count, level: Level) -> None:
    if not np.issubdtype(votes.dtype, np.integer):
        raise InvalidInputError("votes", f"counts have type {votes.dtype}", "Pass integer counts")
    trials, levels = np.asarray(n), np.asarray(level)
    if trials.size and not (trials.min() >= 1 and trials.max() < _LARGEST_COUNT):
        raise InvalidInputError("n", "the number of trials must be at least 1", "Draw samples before bounding")
    if not bool(np.all((levels > 0) & (levels < 1))):
        raise InvalidInputError("level", "confidence levels must lie strictly between 0 and 1", "Pass, say, 0.001")
    if votes.size and (votes.min() < 0 or bool(np.any(votes > trials))):
        raise InvalidInputError(
            "votes", "a count lies outside 0 … n", "Pass the number of successes among the n samples that were drawn"
        )


def _lower(
    k: Float[np.ndarray, " cases"], n: Float[np.ndarray, " cases"], level: Float[np.ndarray, " cases"]
) -> Float[np.ndarray, " cases"]:
    start = np.where(k == n, np.exp(np.log(level) / n), special.betaincinv(np.maximum(k, 1), n - k + 1, level))
    start = np.where(k == 0, 0.0, start)
    if not bool(np.all(np.isfinite(start) & (start >= 0) & (start <= 1))):
        raise NumericalError("the inverse incomplete beta function left [0, 1]; no bound can be given for these counts")
    return _settle(k, n, level, start)


def _settle(
    k: Float[np.ndarray, " cases"],
    n: Float[np.ndarray, " cases"],
    level: Float[np.ndarray, " cases"],
    start: Float[np.ndarray, " cases"],
) -> Float[np.ndarray, " cases"]:
    """Move each start to a point whose tail is provably at most the level, and hardly less.

    The log tail is a concave function of log p with slope k / mass_ratio. Newton's step from any point therefore
    lands where the tail is below the level: the tangent is above the curve. A count for which no point is proven in
    the rounds allowed keeps the trivial bound 0.
    """
    target = np.log(level) * (1 + 2 * _EPSILON)
    proven = np.zeros_like(start)
    point = start.copy()
    active = np.flatnonzero(start > 0)
    for _ in range(_MAX_ROUNDS):
        if not active.size:
            break
        tail = binomial_tail(k[active], n[active], point[active])
        slope = k[active] / tail.mass_ratio
        excess = tail.log_upper - target[active]
        holds = excess <= 0
        proven[active[holds]] = np.maximum(proven[active[holds]], point[active[holds]])
        # Closer than the rounding errors, or than neighbouring floats allow, there is nothing left to win.
        close = excess >= -4 * (tail.error + 4 * _EPSILON * slope + 1e-13)
        active, excess, slope = active[~(holds & close)], excess[~(holds & close)], slope[~(holds & close)]
        # Where the tail is flat the step is long: go a bounded part of the way.
        step = np.clip(-excess / np.maximum(slope, 1e-12), -1.0, 1.0)
        moved = point[active] * np.exp(step)
        moved = np.where(excess > 0, moved * (1 - 2 * _EPSILON), moved)
        point[active] = np.clip(moved, 0.0, 1 - _EPSILON / 2)
    return proven
