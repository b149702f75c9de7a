"""Positive numbers m · 2^e in whole numbers m and e, rounded up or down on purpose after every step."""

from __future__ import annotations

import math

__all__ = [
    "Big",
    "at_most",
    "divided_down",
    "divided_up",
    "dyadic",
    "float_below",
    "power_up",
    "sum_down",
    "sum_up",
    "times_down",
    "times_up",
]

Big = tuple[int, int]
"""(m, e), which stands for m · 2^e; m ≥ 0."""

_BITS = 192
_LARGEST = 1e200  # more than any count of outputs divided by any α


def dyadic(value: float) -> Big:
    """Return a finite float ≥ 0 exactly."""
    top, bottom = value.as_integer_ratio()
    return top, 1 - bottom.bit_length()


def _down(m: int, e: int) -> Big:
    spare = m.bit_length() - _BITS
    return (m >> spare, e + spare) if spare > 0 else (m, e)


def _up(m: int, e: int) -> Big:
    spare = m.bit_length() - _BITS
    return (-(-m >> spare), e + spare) if spare > 0 else (m, e)


def times_up(a: Big, b: Big) -> Big:
    """Return a · b, rounded up."""
    return _up(a[0] * b[0], a[1] + b[1])


def times_down(a: Big, b: Big) -> Big:
    """Return a · b, rounded down."""
    return _down(a[0] * b[0], a[1] + b[1])


def divided_up(a: Big, b: Big) -> Big:
    """Return a / b, rounded up."""
    shift = max(0, 2 * _BITS + b[0].bit_length() - a[0].bit_length())
    return _up(-(-(a[0] << shift) // b[0]), a[1] - b[1] - shift)


def divided_down(a: Big, b: Big) -> Big:
    """Return a / b, rounded down."""
    shift = max(0, 2 * _BITS + b[0].bit_length() - a[0].bit_length())
    return _down((a[0] << shift) // b[0], a[1] - b[1] - shift)


def _aligned(a: Big, b: Big) -> tuple[int, int, int]:
    e = min(a[1], b[1])
    return a[0] << (a[1] - e), b[0] << (b[1] - e), e


def sum_up(a: Big, b: Big) -> Big:
    """Return a + b, rounded up."""
    # What lies far below the other counts as one unit of it.
    if a[0] and b[0]:
        a, b = (a, b) if a[0].bit_length() + a[1] >= b[0].bit_length() + b[1] else (b, a)
        floor = a[0].bit_length() + a[1] - 2 * _BITS
        if b[0].bit_length() + b[1] < floor:
            b = (1, floor)
    first, second, e = _aligned(a, b)
    return _up(first + second, e)


def sum_down(a: Big, b: Big) -> Big:
    """Return a + b, rounded down."""
    if a[0] and b[0]:
        a, b = (a, b) if a[0].bit_length() + a[1] >= b[0].bit_length() + b[1] else (b, a)
        if b[0].bit_length() + b[1] < a[0].bit_length() + a[1] - 2 * _BITS:
            return a
    first, second, e = _aligned(a, b)
    return _down(first + second, e)


def power_up(base: Big, exponent: int) -> Big:
    """Return base ** exponent, rounded up."""
    made: Big = (1, 0)
    while exponent:
        if exponent & 1:
            made = times_up(made, base)
        base, exponent = times_up(base, base), exponent >> 1
    return made


def at_most(a: Big, b: Big) -> bool:
    """Say whether a ≤ b."""
    if not a[0] or not b[0]:
        return not a[0]
    highest, other = a[0].bit_length() + a[1], b[0].bit_length() + b[1]
    if highest != other:
        return highest < other
    first, second, _ = _aligned(a, b)
    return first <= second


def float_below(a: Big) -> float:
    """Return a float that is not above a: 10²⁰⁰ for what is larger, 0 for what is minute."""
    spare = a[0].bit_length() - 53
    m, e = (a[0] >> spare, a[1] + spare) if spare > 0 else a
    if m and m.bit_length() + e > 664:
        return _LARGEST
    return math.ldexp(m, e) if m and m.bit_length() + e > -900 else 0.0
