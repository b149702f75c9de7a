"""What a sampling plan can certify, known before sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from localsmooth.bounds import (
    Bonferroni,
    FixedThresholdHolm,
    KFamilywise,
    PaperHolm,
    WeightedBonferroni,
    clopper_pearson_lower,
    pick_k,
    require_certifiable,
    smallest_sample_count,
)
from localsmooth.errors import InvalidInputError


@given(st.floats(1e-6, 0.5), st.integers(1, 10**7), st.floats(0.3, 0.99))
@settings(max_examples=60, deadline=None)
def test_smallest_count_is_smallest(alpha: float, n_outputs: int, threshold: float) -> None:
    n = smallest_sample_count(alpha, n_outputs, threshold)
    level = Bonferroni().levels(n_outputs, alpha)
    assert float(clopper_pearson_lower(n, n, level)) > threshold
    assert n == 1 or not float(clopper_pearson_lower(n - 1, n - 1, level)) > threshold


def test_ten_bound_at_a_thousandth_are_just_enough() -> None:
    assert smallest_sample_count(0.001, 1) == 10
    assert smallest_sample_count(0.001, 2) == 11
    # Equality is not enough: at level 2^-k, k unanimous votes give a bound of 1/2, which abstains.
    assert smallest_sample_count(2.0**-8, 1) == 9


@pytest.mark.parametrize(
    ("strategy", "level"),
    [
        (Bonferroni(), 0.01 / 1000),
        (KFamilywise(20), 0.2 / 1000),
        (WeightedBonferroni(np.arange(1000.0)), 0.01 * 999 / 499500),
        (FixedThresholdHolm(0.75), 0.01 / 1000),
        (PaperHolm(), 0.01),
    ],
)
def test_each_strategy_has_its_own_smallest_count(strategy, level: float) -> None:
    assert smallest_sample_count(0.01, 1000, 0.75, strategy) == math.ceil(math.log(level) / math.log(0.75))


def test_a_hopeless_plan_is_refused_and_a_sufficient_one_named() -> None:
    needed = smallest_sample_count(0.001, 41_500)
    require_certifiable(needed, 0.001, 41_500)
    with pytest.raises(InvalidInputError, match=f"at least {needed} of each output group") as caught:
        require_certifiable(10, 0.001, 41_500)
    assert caught.value.field == "n_bound"
    assert "with N₂ = 10 samples of each output group, alpha = 0.001 and 41,500 outputs, not even" in str(caught.value)
    with pytest.raises(InvalidInputError):
        require_certifiable(needed, 0.001, 41_500, threshold=0.9)
    with pytest.raises(InvalidInputError):
        require_certifiable(needed, 0.001, 41_500, threshold=math.nan)


def test_k_is_one_where_a_single_output_matters_and_larger_among_many() -> None:
    assert pick_k(1, 1000, 0.01) == KFamilywise(1)
    assert pick_k(5, 100_000, 0.01).k == 1
    assert 1 < pick_k(1_000_000, 1000, 0.01).k < 50_000


def test_k_makes_a_small_plan_possible() -> None:
    # With 20 votes Bonferroni over 10^5 outputs certifies nothing at all.
    with pytest.raises(InvalidInputError):
        require_certifiable(20, 0.01, 100_000)
    require_certifiable(20, 0.01, 100_000, strategy=pick_k(100_000, 20, 0.01))


def test_k_is_about_the_best_by_simulation() -> None:
    n_outputs, n_bound, alpha, thresholds = 20_000, 1000, 0.01, (0.9, 0.99)
    rng = np.random.default_rng(0)
    votes = rng.binomial(n_bound, rng.beta(1.0, 0.1, size=200_000))

    def share(k: int) -> float:
        lower = clopper_pearson_lower(votes, n_bound, k * alpha / n_outputs)
        return float(np.mean([np.mean(lower >= t) for t in thresholds])) - (k - 1) / n_outputs

    chosen = pick_k(n_outputs, n_bound, alpha, thresholds=thresholds).k
    assert share(chosen) >= max(share(k) for k in (1, 3, 10, 30, 100, 300, 1000)) - 2e-3
    assert share(chosen) > share(1)


def test_critical_counts_match_the_bound() -> None:
    level = 1e-5
    for threshold in (0.5, 0.9, 0.99):
        critical = int(stats.binom.isf(level, 2000, threshold)) + 1
        assert float(clopper_pearson_lower(critical, 2000, level)) >= threshold
        assert float(clopper_pearson_lower(critical - 1, 2000, level)) < threshold


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("n_bound", {"n_bound": 0}),
        ("thresholds", {"thresholds": ()}),
        ("thresholds", {"thresholds": (0.5, 1.0)}),
        ("prior", {"prior": (0.0, 1.0)}),
        ("n_outputs", {"n_outputs": 0}),
        ("alpha", {"alpha": 2.0}),
    ],
)
def test_bad_plans_name_their_field(field: str, arguments: dict) -> None:
    with pytest.raises(InvalidInputError) as caught:
        pick_k(**{"n_outputs": 100, "n_bound": 100, "alpha": 0.01} | arguments)
    assert caught.value.field == field
