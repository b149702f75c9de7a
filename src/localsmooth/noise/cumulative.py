"""Cumulative distributions of rounded noise in integer arithmetic, with proven errors.

Everything is a whole number of units of 2⁻²⁵⁶ (`UNIT`), and Python's integers do not overflow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

__all__ = ["UNIT", "RoundedLaw", "rounded_gaussian", "rounded_uniform"]

_BITS = 256
UNIT = 1 << _BITS
"""One, in the units of this module."""
_REACH = Fraction(37, 4)  # Φ(−9.25) < 2⁻⁶⁶
_OUTSIDE = UNIT >> 65
_SLACK = UNIT >> 100
_STEP = Fraction(1, 8)
_REMAINDER = UNIT >> 112


class RoundedLaw(NamedTuple):
    """The law of noise in steps of a grid, rounded to whole numbers K; it is symmetric.

    Parameters
    ----------
    first
        The smallest whole number that is told apart from those below it; −`first` is the largest.
    cumulative
        Pr[K ≤ k] for k = first, …, −first − 1, in units of 2⁻²⁵⁶.
    slack
        How far each of them may be off.
    outside
        Bound on Pr[|K| > −first].
    """

    first: int
    cumulative: list[int]
    slack: int
    outside: int


def rounded_uniform(step: Fraction) -> RoundedLaw:
    """The law of round(Z / step), Z uniform on [−1, 1]: Pr[K ≤ k] = ½ + (k + ½)·step/2, rounded down to a unit.

    Parameters
    ----------
    step
        Of the grid, in half-widths.
    """
    last = _last(step, Fraction(1))
    upper = [math.floor((1 + (k + Fraction(1, 2)) * step) / 2 * UNIT) for k in range(last)]
    return RoundedLaw(-last, _symmetric(upper), 1, 0)


def rounded_gaussian(step: Fraction) -> RoundedLaw:
    """The law of round(Z / step), Z standard normal: Pr[K ≤ k] = Φ((k + ½)·step).

    The grid is refined to cells of width d = step/s ≤ 1/8, s odd, centred at j·d. With Hermite polynomials He_n,

      ∫ over cell j of φ = φ(c) Σ_m He_2m(c) w_m,   c = j·d,   w_m = d (d/2)^(2m) / (2m+1)!,

    since φ(c + t) = φ(c) Σ_n He_n(c) (−t)^n / n!. Cells are summed from the middle, where Φ(0) = ½.

    *Error.* Write u = 2⁻²⁵⁶; a product that is rounded down is off by at most u.

    1. Cramér's inequality, φ(c)|He_n(c)| ≤ 0.44 √n!, bounds what is left out beyond m = M by 0.45 d (d/2)^(2M+2) ≤
       d 2⁻¹¹² for a cell, thus by 2⁻¹⁰⁸ for all, which cover less than [−9.5, 9.5].
    2. φ(jd) follows by φ((j+1)d) = φ(jd) r_j and r_(j+1) = r_j e^(−d²), all factors below 1: errors add up to at
       most (j+4)² u ≤ 2⁴⁶ u for the at most 2²² cells.
    3. He_(n+1) = c He_n − n He_(n−1) with |c| ≤ 9.5 and n ≤ 26 amplifies errors by at most 37 a step; those of
       He_2m are below 37^(2m) u, and Σ_m 37^(2m) w_m < 3d.
    4. w_m is off by at most 2u, times |φ(c) He_2m(c)| ≤ 2⁴³.
    5. d is off by at most u, c by j·u.

    By 2 to 5 a cell is off by less than 2⁶⁰ u, and all cells together by less than 2⁸² u. With 1 this is far below
    2⁻¹⁰⁰, which is what is said.

    Parameters
    ----------
    step
        Of the grid, in standard deviations; at least 2⁻¹⁶.
    """
    last = _last(step, _REACH)
    split = 2 * math.ceil((step / _STEP - 1) / 2) + 1 if step > _STEP else 1
    width = math.floor(step / split * UNIT)
    square = width * width >> _BITS
    weights, quarter = [width], square >> 2
    power = width  # d (d/2)^(2m)
    while (power * quarter >> _BITS) * UNIT > _REMAINDER * width:
        power = power * quarter >> _BITS
        weights.append(power // math.factorial(2 * len(weights) + 1))
    density, ratio, shrink = _density_at_0(), _exponential(square >> 1), _exponential(square)
    upper: list[int] = []
    total = UNIT // 2
    for j in range(((last - 1) * split + (split - 1) // 2 + 1) if last else 0):
        centre = j * width
        even, odd, cell = UNIT, centre, weights[0]
        for m in range(1, len(weights)):
            even = (centre * odd >> _BITS) - (2 * m - 1) * even
            cell += even * weights[m] >> _BITS
            odd = (centre * even >> _BITS) - 2 * m * odd
        mass = density * cell >> _BITS
        total += mass if j else mass >> 1
        if j % split == (split - 1) // 2:
            upper.append(total)
        density, ratio = density * ratio >> _BITS, ratio * shrink >> _BITS
    return RoundedLaw(-last, _symmetric(upper), _SLACK, _OUTSIDE)


def _last(step: Fraction, reach: Fraction) -> int:
    """The smallest k ≥ 0 with (k + ½)·step ≥ reach."""
    return max(0, math.ceil(reach / step - Fraction(1, 2)))


def _symmetric(upper: list[int]) -> list[int]:
    """Pr[K ≤ k] for all k, of Pr[K ≤ k] for k ≥ 0."""
    return [UNIT - value for value in reversed(upper)] + upper


def _exponential(x: int) -> int:
    """e^(−x) for 0 ≤ x ≤ 1/64 units, off by a few units."""
    total = term = UNIT
    n = 0
    while term:
        n += 1
        term = (term * x >> _BITS) // n
        total += -term if n % 2 else term
    return total


def _density_at_0() -> int:
    """1/√(2π), off by one unit or two: π by Machin's formula with 64 bits more than are kept."""
    one = UNIT << 64

    def arctangent_of_inverse(n: int) -> int:
        total = term = one // n
        k = 1
        while term:
            term //= -n * n
            k += 2
            total += term // k
        return total

    pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
    return math.isqrt(UNIT * UNIT * one // (2 * pi))
