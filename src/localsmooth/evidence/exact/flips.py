"""Base certificates of flipped bits, from the definition of Rényi's divergence (MATH.md section 2)."""

from __future__ import annotations

import math
from fractions import Fraction

from localsmooth.evidence.exact.big import at_most, sum_down, sum_up
from localsmooth.evidence.exact.logarithms import added, exactly, exponential_down, exponential_up, logarithm, times

__all__ = ["drawn_probability", "flips_cover", "renyi_threshold_holds", "renyi_weight_covers"]

_STEPS = 1 << 24


def drawn_probability(level: float) -> Fraction:
    """Return the probability with which a sampler flips: the nearest multiple of 2⁻²⁴, the even one of two."""
    return Fraction(round(Fraction(level) * _STEPS), _STEPS)


def renyi_threshold_holds(probability: float, eta: float, order: float) -> bool:
    """Say whether η ≤ ln(2^(−α) (q^(1−α) + (1−q)^(1−α))) / (α − 1) is proven, for η ≥ 0.

    That is the divergence of order α from a vote of q to one of 1/2: by data processing, no flips of a smaller one
    take a majority away. It is compared as e^((α−1)η) 2^α ≤ q^(1−α) + (1−q)^(1−α).
    """
    if eta == 0.0:
        return True
    if not (0.5 < probability < 1.0 and 0.0 < eta < math.inf and 1.0 < order < math.inf):
        return False
    q, a = Fraction(probability), Fraction(order)
    left = exponential_up(added(exactly(Fraction(eta) * (a - 1)), times(logarithm(Fraction(2)), a)))
    right = sum_down(*(exponential_down(times(logarithm(part), 1 - a)) for part in (q, 1 - q)))
    return at_most(left, right)


def renyi_weight_covers(weight: float, clean: Fraction, perturbed: Fraction, order: float) -> bool:
    """Say whether W ≥ D_α(perturbed ‖ clean) = ln(p^α c^(1−α) + (1−p)^α (1−c)^(1−α)) / (α − 1) is proven, for W ≥ 0.

    Parameters
    ----------
    weight
        W.
    clean, perturbed
        Probability of a one, c and p.
    order
        α > 1.
    """
    if not (weight >= 0 and 1.0 < order < math.inf):
        return False
    if clean == perturbed or weight == math.inf:
        return True
    a, most = Fraction(order), (0, 0)
    for p, c in ((perturbed, clean), (1 - perturbed, 1 - clean)):
        if p > 0:
            if c == 0:
                return False
            most = sum_up(most, exponential_up(added(times(logarithm(p), a), times(logarithm(c), 1 - a))))
    return at_most(most, exponential_down(exactly(Fraction(weight) * (a - 1))))


def flips_cover(threshold: float, weight: float, flips: float) -> bool:
    """Say whether fewer than so many flips of at most this weight stay below a threshold: (m − 1) · W < η.

    Parameters
    ----------
    threshold, weight
        η and W.
    flips
        m, a whole number, or infinity where no number of flips is enough.
    """
    if threshold <= 0:
        return False
    if flips == math.inf:
        return weight == 0
    return float(flips).is_integer() and (int(flips) - 1) * Fraction(weight) < Fraction(threshold)
