"""Weights from the candidate stage: they keep the level, certify more, and depend on nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.bounds import (
    Bonferroni,
    CandidateRule,
    CandidateVotes,
    CandidateWeights,
    Simultaneous,
    VoteBounds,
    WeightedBonferroni,
    complete,
    require_certifiable,
    smallest_sample_count,
)
from localsmooth.errors import InvalidInputError
from localsmooth.testing.confidence import VOTE_FIELDS, SimultaneousContract, VoteField

# Every bound is refused by a hair: the worst case for whoever looks before choosing the levels.
JUST_REFUSED = VoteField(np.full(20, 0.75 - 1e-9), 400)
RULE = CandidateWeights(thresholds=(0.75,))


class TwoStages(SimultaneousContract):
    """The candidate stage is drawn anew each time, and with it the weights."""

    rule = CandidateWeights()
    n_candidate = 40
    repeats = 50

    def bounds(self, field: VoteField, rng: np.random.Generator) -> VoteBounds:
        first = rng.binomial(self.n_candidate, field.probabilities)
        strategy = self.rule.from_candidates(CandidateVotes(first, self.n_candidate), field.samples, self.alpha)
        return strategy.lower_bounds(field.draw(rng), field.samples, self.alpha)

    def test_just_refused(self) -> None:
        self.check(JUST_REFUSED)


class TestDefaultThresholds(TwoStages):
    pass


class TestOneThreshold(TwoStages):
    rule = RULE


class OneStage(SimultaneousContract):
    """Wrong: the weights come from the votes that are bounded."""

    def bounds(self, field: VoteField, rng: np.random.Generator) -> VoteBounds:
        votes = field.draw(rng)
        strategy = RULE.from_candidates(CandidateVotes(votes, field.samples), field.samples, self.alpha)
        return strategy.lower_bounds(votes, field.samples, self.alpha)


def test_weights_from_the_bounded_votes_are_caught() -> None:
    with pytest.raises(AssertionError, match="misses"):
        OneStage().check(JUST_REFUSED)


@pytest.mark.long
@pytest.mark.parametrize("contract", [TestDefaultThresholds, TestOneThreshold])
@pytest.mark.parametrize("field", [*VOTE_FIELDS, JUST_REFUSED])
def test_two_stages_at_length(contract: type[TwoStages], field: VoteField) -> None:
    contract().check(field, repeats=1_000)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=60),
    st.integers(1, 3000),
    st.floats(1e-9, 0.5),
    st.lists(st.floats(0.4, 0.9999), min_size=1, max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_levels_are_a_division_of_alpha(votes: list[int], n_bound: int, alpha: float, thresholds: list[float]) -> None:
    candidates = CandidateVotes(np.array(votes), 30)
    strategy = CandidateWeights(thresholds).from_candidates(candidates, n_bound, alpha)
    levels = np.asarray(strategy.levels(len(votes), alpha))
    assert (levels >= 0).all()
    assert alpha * (1 - 1e-9) < math.fsum(levels) <= alpha


def certified(strategy: Simultaneous, votes: np.ndarray, n: int, threshold: float, alpha: float = 0.01) -> int:
    return int((strategy.lower_bounds(votes, n, alpha).lower > threshold).sum())


def test_few_samples_are_spent_on_the_outputs_that_can_use_them() -> None:
    """With 20 votes and equal levels nothing is certified among 40 000 outputs."""
    rng = np.random.default_rng(0)
    p = rng.beta(2, 0.3, 40_000)
    first, votes = rng.binomial(100, p), rng.binomial(20, p)
    weighted = CandidateWeights().from_candidates(CandidateVotes(first, 100), 20, 0.01)
    assert certified(Bonferroni(), votes, 20, 0.5) == 0
    # Unanimous votes need the level 2^-20 each, which can be paid 10 485 times.
    assert 9_000 < certified(weighted, votes, 20, 0.5) <= 10_485


def test_more_outputs_are_certified_where_many_are_hopeless() -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(1, 1, 40_000)
    first, votes = rng.binomial(100, p), rng.binomial(1000, p)
    weighted = CandidateWeights().from_candidates(CandidateVotes(first, 100), 1000, 0.01)
    counts = np.array(
        [[certified(s, votes, 1000, t) for t in (0.85, 0.9, 0.95)] for s in (Bonferroni(), weighted)], dtype=np.int64
    )
    assert (counts[1] >= counts[0] * [1.01, 1.01, 1.05]).all(), counts


def test_a_single_threshold_gets_everything() -> None:
    rng = np.random.default_rng(2)
    p = rng.beta(2, 0.3, 40_000)
    first, votes = rng.binomial(100, p), rng.binomial(1000, p)
    focused = CandidateWeights(thresholds=(0.99,)).from_candidates(CandidateVotes(first, 100), 1000, 0.01)
    assert certified(Bonferroni(), votes, 1000, 0.99) == 0
    assert certified(focused, votes, 1000, 0.99) > 50


def test_equal_levels_where_nothing_can_be_reached() -> None:
    hopeless = CandidateWeights((0.9999,)).from_candidates(CandidateVotes(np.full(24, 40), 40), 5, 0.05)
    np.testing.assert_allclose(hopeless.levels(24, 0.05), Bonferroni().levels(24, 0.05), rtol=1e-12)


def test_rule_waits_for_the_candidate_stage() -> None:
    rule = CandidateWeights()
    assert isinstance(rule, CandidateRule)
    assert not isinstance(rule, Simultaneous)
    candidates = CandidateVotes(np.array([9, 10]), 10)
    assert isinstance(complete(rule, candidates, 100, 0.1), WeightedBonferroni)
    assert complete(Bonferroni(), None, 100, 0.1) == Bonferroni()
    with pytest.raises(InvalidInputError, match="again, which samples nothing"):
        complete(rule, None, 100, 0.1)


def test_a_plan_is_refused_only_if_no_output_could_be_certified_alone() -> None:
    assert smallest_sample_count(0.01, 40_000, strategy=CandidateWeights()) == 7
    with pytest.raises(InvalidInputError, match="n_bound"):
        require_certifiable(6, 0.01, 40_000, strategy=CandidateWeights())


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("thresholds", lambda: CandidateWeights(())),
        ("thresholds", lambda: CandidateWeights((1.0,))),
        ("thresholds", lambda: CandidateWeights((math.nan,))),
        ("prior", lambda: CandidateWeights(prior=(0.0, 1.0))),
        ("candidate_votes", lambda: CandidateVotes(np.array([3]), 2)),
        ("candidate_votes", lambda: CandidateVotes(np.array([-1]), 2)),
        ("n_bound", lambda: CandidateWeights().from_candidates(CandidateVotes(np.array([1]), 2), 0, 0.1)),
        ("alpha", lambda: CandidateWeights().from_candidates(CandidateVotes(np.array([1]), 2), 9, 1.0)),
        ("n_outputs", lambda: CandidateWeights().from_candidates(CandidateVotes(np.array([], np.int64), 2), 9, 0.1)),
    ],
)
def test_what_cannot_be_used_is_named(field: str, make) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert caught.value.field == field
