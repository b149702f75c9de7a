"""Logarithms and exponentials between two whole numbers, from power series with a bound on what is left out."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from localsmooth.evidence.exact.big import Big

__all__ = ["Between", "added", "exactly", "exponential_down", "exponential_up", "logarithm", "times"]

Between = tuple[int, int]
"""A real number from below and from above, in units of 2^−256."""

_BITS = 256
_ONE = 1 << _BITS


def _twice_artanh(top: int, bottom: int) -> Between:
    """Return 2 artanh(t) = 2 Σ_k t^(2k+1) / (2k + 1), t = top/bottom in [0, 1/3]."""
    low, high = (top << _BITS) // bottom, -(-(top << _BITS) // bottom)
    squares = low * low >> _BITS, -(-high * high >> _BITS)
    least = most = 0
    k = 1
    while high > 1:
        least, most = least + low // k, most - (-high // k)
        low, high = low * squares[0] >> _BITS, -(-high * squares[1] >> _BITS)
        k += 2
    # All further terms together are at most 9/8 of the first of them.
    return 2 * least, 2 * (most + 2 * high)


@cache
def _of_two() -> Between:
    return _twice_artanh(1, 3)


def logarithm(value: Fraction) -> Between:
    """Return ln x, for x > 0."""
    top, bottom = value.numerator, value.denominator
    if top < bottom:
        low, high = logarithm(1 / value)
        return -high, -low
    twos = top.bit_length() - bottom.bit_length()
    twos -= top < bottom << twos
    scaled = bottom << twos  # 1 ≤ top/scaled < 2
    rest, two = _twice_artanh(top - scaled, top + scaled), _of_two()
    return rest[0] + twos * two[0], rest[1] + twos * two[1]


def exactly(value: Fraction) -> Between:
    """Return a fraction."""
    return times((_ONE, _ONE), value)


def times(value: Between, factor: Fraction) -> Between:
    """Return value · factor."""
    ends = [end * factor.numerator for end in (value if factor >= 0 else value[::-1])]
    return ends[0] // factor.denominator, -(-ends[1] // factor.denominator)


def added(a: Between, b: Between) -> Between:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1]


def _without_twos(value: int) -> tuple[int, Between]:
    """Return k and r with value = k ln 2 + r, r in [0, 1] but for rounding."""
    two = _of_two()
    twos = value // two[1]
    ends = value - twos * two[0], value - twos * two[1]
    return twos, (min(ends), max(ends))


def exponential_down(value: Between) -> Big:
    """Return e^x, rounded down."""
    twos, (rest, _) = _without_twos(value[0])
    if rest < 0:
        return _ONE + rest, twos - _BITS  # e^r ≥ 1 + r
    total, term, n = 0, _ONE, 1
    while term:
        total += term
        term = term * rest // (n << _BITS)
        n += 1
    return total, twos - _BITS


def exponential_up(value: Between) -> Big:
    """Return e^x, rounded up."""
    twos, (_, rest) = _without_twos(value[1])
    rest = max(rest, 0)
    total, term, n = 0, _ONE, 1
    while term > 1:
        total += term
        term = -(-term * rest // (n << _BITS))
        n += 1
    # The terms fall by half and more from here on.
    return total + 2 * term, twos - _BITS
