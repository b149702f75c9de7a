"""Clopper–Pearson bounds against exact tails, another implementation and their own invariants."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from localsmooth.bounds import NumericalError, clopper_pearson_lower
from localsmooth.bounds.binomial import binomial_tail
from localsmooth.errors import InvalidInputError

LEVELS = (0.5, 0.05, 1e-3, 1e-9, 1e-12, 1e-20)


def exact_tail(k: int, n: int, p: float) -> Fraction:
    success = Fraction(p)
    return sum((math.comb(n, j) * success**j * (1 - success) ** (n - j) for j in range(k, n + 1)), Fraction(0))


def log_tail(k: int, n: int, p: float) -> float:
    """Sum the tail term by term with 50 digits."""
    with mpmath.workdps(50):
        odds = mpmath.mpf(p) / (1 - mpmath.mpf(p))
        term = total = mpmath.binomial(n, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k)
        for j in range(k, n):
            term *= odds * (n - j) / (j + 1)
            total += term
            if term < total * mpmath.mpf(10) ** -40:
                break
        return float(mpmath.log(total))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("level", LEVELS)
def test_no_bound_exceeds_the_exact_one_and_none_is_far_below(n: int, level: float) -> None:
    lower = clopper_pearson_lower(np.arange(n + 1), n, level)
    assert lower[0] == 0
    for k in range(1, n + 1):
        assert exact_tail(k, n, float(lower[k])) <= Fraction(level)
        assert exact_tail(k, n, float(lower[k]) * (1 + 1e-12)) > Fraction(level)


@pytest.mark.parametrize("n", [300, 1000, 10_240])
@pytest.mark.parametrize("level", [0.05, 1e-9, 1e-12])
def test_large_counts_against_high_precision(n: int, level: float) -> None:
    for k in (1, 2, n // 3, n // 2, n - 20, n - 1, n):
        lower = float(clopper_pearson_lower(k, n, level))
        gap = math.log(level) - log_tail(k, n, lower)
        assert 0 <= gap < 1e-8, (k, gap)


@pytest.mark.parametrize("n", [1, 10, 1000, 10_240, 1_000_000])
@pytest.mark.parametrize("level", LEVELS)
def test_unanimous_and_empty_votes_have_closed_forms(n: int, level: float) -> None:
    with mpmath.workdps(50):
        root = mpmath.mpf(level) ** (mpmath.mpf(1) / n)
    lower = float(clopper_pearson_lower(n, n, level))
    assert 0 <= (root - lower) / root < 1e-12
    assert float(clopper_pearson_lower(0, n, level)) == 0


@given(st.integers(1, 400), st.data(), st.floats(1e-4, 0.9))
@settings(max_examples=60, deadline=None)
def test_agrees_with_another_implementation(n: int, data: st.DataObject, level: float) -> None:
    k = data.draw(st.integers(0, n))
    lower = stats.binomtest(k, n, alternative="greater").proportion_ci(1 - level).low
    # It searches to 2e-12.
    assert float(clopper_pearson_lower(k, n, level)) == pytest.approx(lower, abs=1e-10)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [1, 5, 137, 4000])
def test_strictly_monotone_in_votes(n: int, level: float) -> None:
    lower = clopper_pearson_lower(np.arange(n + 1), n, level)
    assert np.all(np.diff(lower) > 0)
    assert np.all(lower < np.arange(n + 1) / n + (level >= 0.5) + 1e-300)


@given(st.integers(1, 3000), st.data(), st.floats(1e-12, 0.5), st.floats(1e-6, 1))
@settings(max_examples=60, deadline=None)
def test_monotone_in_trials_and_level(n: int, data: st.DataObject, level: float, more: float) -> None:
    k = data.draw(st.integers(1, n))
    lower = float(clopper_pearson_lower(k, n, level))
    assert float(clopper_pearson_lower(k, n + 1, level)) < lower
    assert float(clopper_pearson_lower(k, n, level + (0.9 - level) * more)) > lower


def test_the_smallest_levels_and_the_largest_counts_are_never_nan() -> None:
    for n in (10, 10**6, 10**8):
        for level in (1e-30, 1e-80, 0.9):
            lower = clopper_pearson_lower(np.array([0, 1, n // 2, n - 1, n]), n, level)
            assert np.all(np.isfinite(lower))
            assert np.all(np.diff(lower) > 0)


@pytest.mark.parametrize("disturbance", [1e-9, -1e-9, 1e-3, -1e-3, 0.2, 5.0, -0.9])
def test_an_error_of_the_special_function_does_no_harm(monkeypatch: pytest.MonkeyPatch, disturbance: float) -> None:
    right = clopper_pearson_lower(np.arange(201), 200, 1e-5)
    inverse = special.betaincinv
    monkeypatch.setattr(special, "betaincinv", lambda a, b, y: np.minimum(inverse(a, b, y) * (1 + disturbance), 1.0))
    np.testing.assert_allclose(clopper_pearson_lower(np.arange(201), 200, 1e-5), right, rtol=1e-11)


def test_a_special_function_without_an_answer_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(special, "betaincinv", lambda a, b, y: np.full_like(a, np.nan))
    with pytest.raises(NumericalError, match="incomplete beta"):
        clopper_pearson_lower(np.array([3, 9]), 10, 0.01)


def test_each_case_may_have_its_own_trials_and_level() -> None:
    rng = np.random.default_rng(0)
    n = rng.choice([10, 20, 50], size=(4, 60))
    level = rng.choice([1e-2, 1e-4], size=(4, 60))
    votes = rng.integers(0, n + 1)
    mixed = clopper_pearson_lower(votes, n, level)
    cases = zip(votes.flat, n.flat, level.flat, strict=True)
    single = [float(clopper_pearson_lower(int(k), int(t), float(a))) for k, t, a in cases]
    np.testing.assert_array_equal(mixed.ravel(), single)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.uint32, np.int64, np.uint64])
def test_every_integer_type_gives_the_same(dtype: type) -> None:
    votes = np.array([0, 3, 99, 100], dtype=dtype)
    expected = clopper_pearson_lower(np.array([0, 3, 99, 100]), 100, 1e-3)
    np.testing.assert_array_equal(clopper_pearson_lower(votes, 100, 1e-3), expected)


def test_a_large_field_of_outputs_keeps_its_shape() -> None:
    votes = np.random.default_rng(1).binomial(1000, 0.99, size=(1000, 2000)).astype(np.uint16)
    lower = clopper_pearson_lower(votes, 1000, 1e-9)
    assert lower.shape == votes.shape
    assert lower[3, 5] == float(clopper_pearson_lower(int(votes[3, 5]), 1000, 1e-9))
    assert clopper_pearson_lower(np.empty(0, dtype=np.int64), 10, 0.1).shape == (0,)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("votes", (np.array([1.0]), 10, 0.1)),
        ("votes", (np.array([11]), 10, 0.1)),
        ("votes", (np.array([-1]), 10, 0.1)),
        ("n", (np.array([0]), 0, 0.1)),
        ("level", (np.array([1]), 10, 0.0)),
        ("level", (np.array([1]), 10, 1.0)),
        ("level", (np.array([1]), 10, math.nan)),
        ("level", (np.array([1, 1]), 10, np.array([0.1, math.nan]))),
    ],
)
def test_bad_input_names_its_field(field: str, arguments: tuple) -> None:
    bound = inspect.unwrap(clopper_pearson_lower)
    with pytest.raises(InvalidInputError) as caught:
        bound(*arguments)
    assert caught.value.field == field


@given(st.integers(1, 60), st.data(), st.floats(1e-9, 1 - 1e-9))
@settings(max_examples=200, deadline=None)
def test_the_tail_bound_is_above_the_tail_by_no_more_than_it_says(n: int, data: st.DataObject, p: float) -> None:
    k = data.draw(st.integers(0, n))
    tail = binomial_tail(np.array([float(k)]), np.array([float(n)]), np.array([p]))
    exact = exact_tail(k, n, p)
    with mpmath.workdps(60):
        logarithm = mpmath.log(mpmath.mpf(exact.numerator)) - mpmath.log(mpmath.mpf(exact.denominator))
        excess = float(mpmath.mpf(float(tail.log_upper[0])) - logarithm)
    assert 0 <= excess <= 2 * float(tail.error[0]) + 2e-14
    assert float(tail.error[0]) < 1e-11


def test_the_tail_bound_at_its_ends() -> None:
    tail = binomial_tail(np.array([0.0, 1.0, 1.0, 5.0]), np.full(4, 5.0), np.array([0.3, 0.0, 1.0, 1.0]))
    np.testing.assert_array_equal(tail.log_upper, [0.0, -np.inf, 0.0, 0.0])


def test_the_tail_bound_far_from_the_mean() -> None:
    # The series climbs over many orders of magnitude before it falls; the bound may only become trivial.
    tail = binomial_tail(np.array([10.0]), np.array([1e6]), np.array([0.9]))
    assert float(tail.log_upper[0]) == 0.0
