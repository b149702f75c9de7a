"""What votes say against error probabilities: e-values of the joint count, bounded from below, kind by kind."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from localsmooth.bounds.beta_mixture import BetaMixture
from localsmooth.bounds.votes import NumericalError

__all__ = ["Cases", "Evidence", "gathered"]

_EPSILON = float(np.finfo(np.float64).eps)


class Cases(NamedTuple):
    """Kinds of outputs: their errors (more than `less`, at most `most`), votes and prior."""

    less: Integer[np.ndarray, " cases"]
    most: Integer[np.ndarray, " cases"]
    trials: Integer[np.ndarray, " cases"]
    kind: Integer[np.ndarray, " cases"]


class Evidence(NamedTuple):
    """Lower bounds on log m_c(u) where it rises, case by case: grid points `at`, of case `case`."""

    case: Integer[np.ndarray, " entries"]
    at: Integer[np.ndarray, " entries"]
    log: Float[np.ndarray, " entries"]


def gathered(cases: Cases, grid: Float[np.ndarray, " grid"], prior: BetaMixture, enough: float) -> Evidence:
    """Bound log m from below, from where it exceeds 0 to where it is enough for every λ.

    log M is convex in the number of errors x (it is the logarithm of a mixture of e^(x·θ), less a linear function).
    So the tangent at the most errors of a bin bounds it from below at all of them: its slope is at most the last
    difference, which only counts against the bin where it is positive.

    Parameters
    ----------
    cases
        The kinds of outputs.
    grid
        Error probabilities, ascending.
    prior
        Of the error probabilities.
    enough
        Logarithm beyond which evidence is of no further use.

    Raises
    ------
    NumericalError
        If the evidence is not finite.
    """
    trials, kind = cases.trials.astype(np.float64), cases.kind
    most = np.minimum(cases.most, cases.trials).astype(np.float64)
    own = prior.evidence(most, trials, kind)
    width = np.maximum(most - 1 - cases.less, 0.0)
    before = prior.evidence(np.maximum(most - 1, 0), trials, kind)
    rise = np.where(width > 0, own.log - before.log + own.error + before.error, 0.0)
    if not bool(np.all(np.isfinite(own.log) & np.isfinite(rise))):
        raise NumericalError("the evidence of a count of votes is not finite; no bound can be given")
    log_u, log_v = np.log(grid), np.log1p(-grid)

    def log_m(case: Integer[np.ndarray, " entries"], at: Integer[np.ndarray, " entries"]) -> np.ndarray:
        errors, rights = most[case], trials[case] - most[case]
        first, second = errors * log_u[at], rights * log_v[at]
        slope = np.maximum(rise[case] - (log_u[at] - log_v[at]) * (1 + np.sign(log_u[at]) * 8 * _EPSILON), 0.0)
        value = own.log[case] - own.error[case] - (first + second) - width[case] * slope
        error = 16 * _EPSILON * (1 + np.abs(own.log[case]) + np.abs(first) + np.abs(second))
        error += 16 * _EPSILON * width[case] * (slope + np.abs(log_u[at]))
        return value - error

    every = np.arange(most.size)
    # m is 0 below the share of errors, where the likelihood still rises.
    lowest = np.searchsorted(grid, most / trials * (1 + 4 * _EPSILON))

    def first_above(target: float) -> Integer[np.ndarray, " cases"]:
        low, high = lowest.copy(), np.full(most.size, grid.size)
        while bool(np.any(low < high)):
            middle = (low + high) // 2
            open_ = low < high
            above = log_m(every, np.minimum(middle, grid.size - 1)) >= target
            high, low = np.where(open_ & above, middle, high), np.where(open_ & ~above, middle + 1, low)
        return low

    start, end = first_above(0.0), np.minimum(first_above(enough) + 1, grid.size)
    length = np.maximum(end - start, 0)
    case = np.repeat(every, length)
    at = np.arange(case.size) - np.repeat(np.cumsum(length) - length, length) + start[case]
    return Evidence(case, at, log_m(case, at))
