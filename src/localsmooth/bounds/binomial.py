"""Upper bounds on binomial tail probabilities that hold in floating point.

A special function has an error that its documentation at best estimates. The tail is therefore summed here from
elementary operations, every rounding error and the remainder of the series is bounded, and the sum of these bounds is
added to the result. Everything that is certified from votes rests on this one function.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["BinomialTail", "binomial_tail", "log_factorial"]

_EPSILON = float(np.finfo(np.float64).eps)
_REMAINDER = 1e-14
_CHUNK = 1 << 15

# log k! for small k, where the Stirling series has not converged.
_LOG_FACTORIALS = np.array([math.log(math.factorial(k)) for k in range(256)])


class BinomialTail(NamedTuple):
    """An upper bound on log Pr[X >= k] and what is known about it.

    Attributes
    ----------
    log_upper
        Upper bound on the logarithm of the tail, at most 0.
    error
        Bound on the amount by which ``log_upper`` may exceed the true logarithm through rounding, doubled at most.
    mass_ratio
        Pr[X >= k] / Pr[X = k]; the derivative of the log tail by log p is k divided by this.
    """

    log_upper: Float[np.ndarray, " cases"]
    error: Float[np.ndarray, " cases"]
    mass_ratio: Float[np.ndarray, " cases"]


def binomial_tail(
    successes: Float[np.ndarray, " cases"],
    trials: Float[np.ndarray, " cases"],
    probability: Float[np.ndarray, " cases"],
) -> BinomialTail:
    """Bound log Pr[X >= successes] for X ~ Binomial(trials, probability) from above.

    Parameters
    ----------
    successes, trials
        Integers held in floats, 0 <= successes <= trials < 2^53.
    probability
        Success probabilities in [0, 1].

    Returns
    -------
    BinomialTail
        Bounds that account for every rounding error made while computing them.
    """
    parts = [
        _tail_of_chunk(successes[i : i + _CHUNK], trials[i : i + _CHUNK], probability[i : i + _CHUNK])
        for i in range(0, successes.size, _CHUNK)
    ]
    if not parts:
        nothing = np.empty(0)
        return BinomialTail(nothing, nothing, nothing)
    return BinomialTail(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _tail_of_chunk(
    k: Float[np.ndarray, " cases"], n: Float[np.ndarray, " cases"], p: Float[np.ndarray, " cases"]
) -> BinomialTail:
    # log 0 is expected here: p = 0 has no tail and p = 1 nothing but tail.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        mass, mass_error = _log_mass(k, n, p)
        ratio, ratio_error = _mass_ratio(k, n, p)
        error = mass_error + ratio_error + 4 * _EPSILON * (1 + np.abs(np.log(ratio)))
        log_upper = np.minimum(mass + np.log(ratio) + error, 0.0)
    certain = (k <= 0) | (p >= 1) | ~np.isfinite(ratio)
    impossible = (p <= 0) & (k > 0)
    log_upper = np.where(certain, 0.0, np.where(impossible, -np.inf, log_upper))
    error = np.where(certain | impossible, 0.0, error)
    return BinomialTail(log_upper, error, np.where(impossible, 1.0, ratio))


def log_factorial(k: Float[np.ndarray, " cases"]) -> tuple[Float[np.ndarray, " cases"], Float[np.ndarray, " cases"]]:
    """Return log k! and a bound on its absolute error (Stirling's series, which brackets the value)."""
    table = _LOG_FACTORIALS[np.minimum(k, _LOG_FACTORIALS.size - 1).astype(np.intp)]
    large = np.maximum(k, float(_LOG_FACTORIALS.size))
    head = (large + 0.5) * np.log(large)
    series = head - large + 0.5 * math.log(2 * math.pi) + 1 / (12 * large) - 1 / (360 * large**3)
    series_error = 4 * _EPSILON * (head + large) + 1 / (1260 * large**5)
    small = k < _LOG_FACTORIALS.size
    return np.where(small, table, series), np.where(small, 4 * _EPSILON * table, series_error)


def _log_mass(
    k: Float[np.ndarray, " cases"], n: Float[np.ndarray, " cases"], p: Float[np.ndarray, " cases"]
) -> tuple[Float[np.ndarray, " cases"], Float[np.ndarray, " cases"]]:
    """Return log Pr[X = k] and a bound on its absolute error."""
    all_, all_error = log_factorial(n)
    hits, hits_error = log_factorial(k)
    misses, misses_error = log_factorial(n - k)
    hit_term = k * np.log(p)
    # 0 * log(0) is 0 here: no failure is needed when every trial succeeds.
    miss_term = np.where(n > k, (n - k) * np.log1p(-p), 0.0)
    unanimous = k == n
    coefficient = np.where(unanimous, 0.0, all_ - hits - misses)
    magnitude = np.where(unanimous, 0.0, all_ + hits + misses) + np.abs(hit_term) + np.abs(miss_term)
    error = np.where(unanimous, 0.0, all_error + hits_error + misses_error) + 4 * _EPSILON * magnitude
    return coefficient + hit_term + miss_term, error


def _mass_ratio(
    k: Float[np.ndarray, " cases"], n: Float[np.ndarray, " cases"], p: Float[np.ndarray, " cases"]
) -> tuple[Float[np.ndarray, " cases"], Float[np.ndarray, " cases"]]:
    """Return an upper bound on Pr[X >= k] / Pr[X = k] and its relative error.

    Successive masses have the ratio r_j = (n − k − j)/(k + 1 + j) · p/(1 − p), which falls with j, so what is left
    after any term is at most a geometric series.
    """
    total = np.ones_like(p)
    steps = np.zeros_like(p)
    active = np.flatnonzero((n > k) & (p > 0) & (p < 1))
    odds = p[active] / (1 - p[active])
    left, next_ = n[active] - k[active], k[active] + 1
    term, partial = np.ones(active.size), np.ones(active.size)
    step = 0
    while active.size:
        for _ in range(16):
            term = term * (np.maximum(left - step, 0.0) / (next_ + step) * odds)
            partial = partial + term
            step += 1
        ratio = np.maximum(left - step, 0.0) / (next_ + step) * odds
        remainder = np.where(ratio < 1, term * ratio / (1 - ratio), np.inf)
        hopeless = ~(partial < 1e300)
        done = hopeless | (remainder <= _REMAINDER * partial)
        if done.any():
            total[active[done]] = np.where(hopeless[done], np.inf, partial[done] + 2 * remainder[done])
            steps[active[done]] = step
            keep = ~done
            active, odds, left, next_ = active[keep], odds[keep], left[keep], next_[keep]
            term, partial = term[keep], partial[keep]
    return total, 4 * _EPSILON * (steps + 1)
