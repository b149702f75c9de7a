"""Checks of flips' certificates against high precision; each must be able to say no."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.certificates.renyi_votes import renyi_eta
from localsmooth.evidence.exact import (
    drawn_probability,
    flips_cover,
    logarithms,
    renyi_threshold_holds,
    renyi_weight_covers,
)
from localsmooth.noise.divergence import renyi_divergence
from localsmooth.noise.precision import drawable_probabilities

ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 100.0)


def exactly(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@settings(max_examples=40, deadline=None)
@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**12, max_denominator=10**15))
def test_logarithms_and_exponentials_are_enclosed(value: Fraction) -> None:
    with mpmath.workdps(120):
        low, high = (mpmath.mpf(end) / 2**256 for end in logarithms.logarithm(value))
        true = mpmath.log(exactly(value))
        assert low <= true <= high
        assert high - low < mpmath.mpf(2) ** -235
        for x in (value / 10**10, -value / 10**10, value / 2**41):
            made = logarithms.exactly(x)
            true = mpmath.exp(exactly(x))
            ends = logarithms.exponential_down(made), logarithms.exponential_up(made)
            down, up = (mpmath.mpf(m) * mpmath.mpf(2) ** e for m, e in ends)
            assert down <= true <= up
            assert up - down < true * mpmath.mpf(2) ** -225


@pytest.mark.parametrize("order", ORDERS)
def test_thresholds_against_high_precision(order: float) -> None:
    q = np.concatenate([np.linspace(0.51, 0.999, 12), 1 - np.logspace(-5, -12, 5)])
    for probability, eta in zip(q.tolist(), renyi_eta(q, order).tolist(), strict=True):
        assert renyi_threshold_holds(probability, eta, order)
        with mpmath.workdps(60):
            a, p = mpmath.mpf(order), mpmath.mpf(probability)
            true = mpmath.log(mpmath.mpf(2) ** -a * (p ** (1 - a) + (1 - p) ** (1 - a))) / (a - 1)
        assert renyi_threshold_holds(probability, float(true) * (1 - 1e-15), order)
        assert not renyi_threshold_holds(probability, float(true) * (1 + 1e-15), order)
    assert renyi_threshold_holds(0.3, 0.0, order)
    assert not renyi_threshold_holds(0.5, 1e-300, order)


@pytest.mark.parametrize("order", ORDERS)
def test_weights_against_high_precision(order: float) -> None:
    chance = drawable_probabilities(np.array([1e-6, 0.01, 0.3, 0.6, 0.999]))
    for clean in chance.tolist():
        for perturbed in chance.tolist():
            c, p = Fraction(clean), Fraction(perturbed)
            weight = float(renyi_divergence(np.array(clean), np.array(perturbed), order))
            assert renyi_weight_covers(weight, c, p, order)
            if c != p:
                with mpmath.workdps(60):
                    a = mpmath.mpf(order)
                    parts = [exactly(x) ** a * exactly(y) ** (1 - a) for x, y in ((p, c), (1 - p, 1 - c))]
                    true = float(mpmath.log(sum(parts)) / (a - 1))
                assert renyi_weight_covers(true * (1 + 1e-15), c, p, order)
                assert not renyi_weight_covers(true * (1 - 1e-15), c, p, order)
    zero, one, half = Fraction(0), Fraction(1), Fraction(1, 2)
    assert renyi_weight_covers(0.0, half, half, order)
    assert not renyi_weight_covers(1e6, zero, half, order)
    assert not renyi_weight_covers(1e6, one, half, order)
    assert renyi_weight_covers(math.inf, zero, half, order)
    assert renyi_weight_covers(0.7, half, one, order)  # ln 2
    assert not renyi_weight_covers(0.69, half, one, order)


def test_levels_are_what_samplers_draw() -> None:
    levels = np.concatenate([np.random.default_rng(0).random(200), (np.arange(1, 9) + 0.5) / 2**24, [0.0, 1.0]])
    assert [float(drawn_probability(level)) for level in levels.tolist()] == drawable_probabilities(levels).tolist()


def test_counted_flips() -> None:
    assert flips_cover(1.0, 0.5, 2.0)
    assert not flips_cover(1.0, 0.5, 3.0)
    assert flips_cover(1.0, 0.0, math.inf)
    assert not flips_cover(1.0, 1e-300, math.inf)
    assert not flips_cover(0.0, 0.0, 1.0)
    assert not flips_cover(1.0, 0.1, 1.5)
