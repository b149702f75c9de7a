"""Weights, thresholds, radii and budgets of base certificates, compared as rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = [
    "gaussian_threshold_holds",
    "power_covers",
    "radius_holds",
    "uniform_threshold_holds",
    "weight_covers",
]

_BITS = 256
_PI = Fraction(31415926535897932384626433832795028841971693993751, 10**49)  # cut off: smaller than π


def gaussian_threshold_holds(probability: float, eta: float) -> bool:
    """Say whether η ≤ Φ⁻¹(q)² is proven, for η ≥ 0.

    With S = Σ_k η^k / (1 · 3 · … · (2k + 1)) is Φ(√η) = 1/2 + √η · S · e^(−η/2) / √(2π), so that the claim is
    η S² ≤ 2π (q − 1/2)² e^η. S is rounded up, and π and e^η down, as sums of positive terms.
    """
    if eta == 0.0:
        return True
    if not (0.5 < probability < 1.0 and 0.0 < eta < 1e4):
        return False
    exact = Fraction(eta)
    top, bottom = exact.numerator, exact.denominator
    one = 1 << _BITS
    total, term, k = 0, one, 0
    while True:
        total += term
        # The quotients of the terms fall; from 1/2 on, all that follow sum to at most this one.
        term, k = -(-term * top // (bottom * (2 * k + 3))), k + 1
        if 2 * top <= bottom * (2 * k + 1) and term <= total >> (_BITS - 40):
            total += 2 * term + 2
            break
    growth, term, k = 0, one, 0
    while term:
        growth += term
        k += 1
        term = term * top // (bottom * k)
    left = exact * Fraction(total, one) ** 2
    return left <= 2 * _PI * (Fraction(probability) - Fraction(1, 2)) ** 2 * Fraction(growth, one)


def uniform_threshold_holds(probability: float, eta: float) -> bool:
    """Say whether η ≤ 2q − 1, for η ≥ 0."""
    return eta == 0.0 or (0.5 < probability <= 1.0 and Fraction(eta) <= 2 * Fraction(probability) - 1)


def weight_covers(weight: float, level: float, exponent: int) -> bool:
    """Say whether a weight is at least level^(−exponent), where 0 is enough for a level of infinity."""
    if math.isinf(level) and level > 0:
        return weight >= 0
    if not (level > 0 and math.isfinite(weight)):
        return False
    return Fraction(weight) * Fraction(level) ** exponent >= 1


def radius_holds(radius: float, heaviest: float, eta: float, exponent: int) -> bool:
    """Say whether radius^exponent · W ≤ η, W the largest weight: alone the output tolerates what is smaller."""
    if radius == 0.0:
        return True
    if heaviest == 0.0:
        return eta > 0
    if not math.isfinite(radius):
        return False
    return radius > 0 and Fraction(radius) ** exponent * Fraction(heaviest) <= Fraction(eta)


def power_covers(limit: float, budget: float, exponent: int) -> bool:
    """Say whether a limit of the threat is at least budget^exponent."""
    return limit == math.inf or Fraction(limit) >= Fraction(budget) ** exponent
