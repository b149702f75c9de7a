"""Strategies for many outputs: levels, discounts, step-down, and what the unsound one says about itself."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from localsmooth.bounds import (
    SIMULTANEOUS,
    Bonferroni,
    FixedThresholdHolm,
    KFamilywise,
    LevelStrategy,
    NotSimultaneousWarning,
    PaperHolm,
    Simultaneous,
    WeightedBonferroni,
    clopper_pearson_lower,
)
from localsmooth.errors import InvalidInputError

VOTES = np.array([100, 97, 60, 100, 0, 88, 97])
STRATEGIES: list[Simultaneous] = [
    Bonferroni(),
    KFamilywise(3),
    WeightedBonferroni(np.array([1.0, 2.0, 0.0, 1.0, 1.0, 0.5, 3.0])),
    FixedThresholdHolm(0.75),
    PaperHolm(),
]


def bounds(strategy: Simultaneous, votes: np.ndarray = VOTES, n: int = 100, alpha: float = 0.01) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotSimultaneousWarning)
        return strategy.lower_bounds(votes, n, alpha).lower


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
class TestContract:
    def test_has_its_registry_line(self, strategy: Simultaneous) -> None:
        assert SIMULTANEOUS[strategy.name] is type(strategy)
        assert isinstance(strategy, Simultaneous)

    def test_bounds_lie_below_the_share_of_votes(self, strategy: Simultaneous) -> None:
        lower = bounds(strategy)
        assert lower.shape == VOTES.shape
        assert np.all((lower >= 0) & (lower <= VOTES / 100))
        assert lower[4] == 0

    def test_equal_votes_and_order(self, strategy: Simultaneous) -> None:
        order = np.argsort(VOTES, kind="stable")
        lower = bounds(strategy)
        if isinstance(strategy, WeightedBonferroni):
            assert lower[0] == lower[3]  # equal votes, equal weights
        elif isinstance(strategy, PaperHolm):
            assert lower[0] < lower[3]  # equal votes, but ranked one after the other
        else:
            assert np.all(np.diff(lower[order]) >= 0)
            np.testing.assert_array_equal(bounds(strategy, VOTES[::-1].copy()), lower[::-1])

    def test_falls_with_alpha(self, strategy: Simultaneous) -> None:
        assert np.all(bounds(strategy, alpha=1e-5) <= bounds(strategy, alpha=0.01))

    def test_samples_may_differ_between_outputs(self, strategy: Simultaneous) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotSimultaneousWarning)
            lower = strategy.lower_bounds(VOTES, np.full(VOTES.size, 100), 0.01).lower
        np.testing.assert_array_equal(lower, bounds(strategy))

    @pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
    def test_bad_alpha_is_refused(self, strategy: Simultaneous, alpha: float) -> None:
        with pytest.raises(InvalidInputError) as caught:
            strategy.lower_bounds(VOTES, 100, alpha)
        assert caught.value.field == "alpha"

    def test_impossible_counts_and_empty_outputs_are_refused(self, strategy: Simultaneous) -> None:
        with pytest.raises(InvalidInputError) as caught:
            bounds(strategy, n=99)
        assert caught.value.field == "votes"
        with pytest.raises(InvalidInputError):
            strategy.lower_bounds(np.empty(0, dtype=np.int64), 99, 0.01)

    def test_lenient_level_is_what_unanimous_votes_get(self, strategy: Simultaneous) -> None:
        level = strategy.most_lenient_level(VOTES.size, 0.01)
        if isinstance(strategy, FixedThresholdHolm):
            n = math.ceil(math.log(level) / math.log(0.75))
            assert bounds(strategy, np.full(VOTES.size, n), n).max() == 0.75
            assert bounds(strategy, np.full(VOTES.size, n - 1), n - 1).max() == 0
        else:
            unanimous = bounds(strategy, np.full(VOTES.size, 50), 50)
            assert float(unanimous.max()) == float(clopper_pearson_lower(50, 50, level))


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if isinstance(s, LevelStrategy)], ids=lambda s: s.name)
@pytest.mark.parametrize("alpha", [0.01, 0.05, 1 / 3])
def test_levels_sum_to_no_more_than_they_may(strategy: LevelStrategy, alpha: float) -> None:
    levels = np.broadcast_to(strategy.levels(7, alpha), 7)
    total = math.fsum(levels)
    allowed = (strategy.discount + 1) * alpha
    assert total <= allowed
    assert total == pytest.approx(allowed, rel=1e-12)


def test_only_the_unsound_one_calls_itself_so() -> None:
    for strategy in STRATEGIES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = strategy.lower_bounds(VOTES, 100, 0.01)
        assert result.simultaneous == strategy.simultaneous == (strategy.name != "paper_holm")
        assert [w.category for w in caught] == ([] if strategy.simultaneous else [NotSimultaneousWarning])
        assert result.discount == (2 if isinstance(strategy, KFamilywise) else 0)


def test_one_failure_allowed_is_bonferroni() -> None:
    np.testing.assert_allclose(bounds(KFamilywise(1)), bounds(Bonferroni()), rtol=1e-12)
    np.testing.assert_allclose(bounds(WeightedBonferroni(np.full(7, 2.5))), bounds(Bonferroni()), rtol=1e-12)


def test_an_output_of_no_weight_gives_up() -> None:
    assert bounds(STRATEGIES[2])[2] == 0
    assert bounds(WeightedBonferroni(np.array([1, 1e-250, 1, 1, 1, 1, 1.0])))[1] == 0


def slow_holm(votes: np.ndarray, n: int, tau: float, alpha: float) -> np.ndarray:
    p_values = np.array([stats.binomtest(int(k), n, tau, alternative="greater").pvalue for k in votes])
    accepted = np.zeros(votes.size, dtype=bool)
    for rank, index in enumerate(np.argsort(p_values)):
        if p_values[index] > alpha / (votes.size - rank):
            break
        accepted[index] = True
    return accepted


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.floats(0.51, 0.95), st.floats(1e-4, 0.5))
@settings(max_examples=80, deadline=None)
def test_holm_steps_down_as_the_textbook_does(counts: list[int], tau: float, alpha: float) -> None:
    votes = np.array(counts)
    lower = bounds(FixedThresholdHolm(tau), votes, 40, alpha)
    np.testing.assert_array_equal(lower, np.where(slow_holm(votes, 40, tau, alpha), tau, 0.0))


def test_holm_accepts_what_bonferroni_does_and_more() -> None:
    votes = np.array([100] * 9 + [84])
    lower = bounds(FixedThresholdHolm(0.75), votes, 100, 0.05)
    assert np.all(lower == 0.75)
    assert float(clopper_pearson_lower(84, 100, 0.05 / 10)) < 0.75


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("k", lambda: KFamilywise(0)),
        ("k", lambda: KFamilywise(8).levels(7, 0.01)),
        ("tau", lambda: FixedThresholdHolm(0.5)),
        ("tau", lambda: FixedThresholdHolm(1.0)),
        ("tau", lambda: FixedThresholdHolm(math.nan)),
        ("weights", lambda: WeightedBonferroni(np.zeros(3))),
        ("weights", lambda: WeightedBonferroni(np.array([1.0, -1.0, 2.0]))),
        ("weights", lambda: WeightedBonferroni(np.array([1.0, math.nan]))),
        ("weights", lambda: WeightedBonferroni(np.array([1.0, math.inf]))),
        ("weights", lambda: WeightedBonferroni(np.ones(3)).levels(4, 0.1)),
    ],
)
def test_bad_parameters_name_their_field(field: str, make) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert caught.value.field == field
