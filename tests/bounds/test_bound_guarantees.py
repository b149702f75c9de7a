"""Miss rates of every bound against the level it promises, and of wrong bounds, which must be caught."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from localsmooth.bounds import (
    Betting,
    Bonferroni,
    CdfBand,
    EmpiricalBernstein,
    FixedThresholdHolm,
    KFamilywise,
    PaperHolm,
    ScoreBounds,
    ScoreHistogram,
    VoteBounds,
    VoteConfidenceSequence,
    WeightedBonferroni,
    clopper_pearson_lower,
)
from localsmooth.testing import ScoreBoundContract, SimultaneousContract, VoteBoundContract
from localsmooth.testing.chance import assert_level_kept, normal_margin
from localsmooth.testing.confidence import BELOW_THRESHOLD, SCORE_LAWS, VOTE_FIELDS, VoteField


class TestClopperPearsonLower(VoteBoundContract):
    bound = staticmethod(clopper_pearson_lower)

    def test_the_level_is_used_up(self) -> None:
        """A bound that never fails would be too weak: directly below a bound the miss probability is the level."""
        for votes in (3, 20, 40):
            q = float(clopper_pearson_lower(votes, 40, 0.05)) * (1 - 1e-9)
            assert self.miss_probability(q, 40, 0.05) == pytest.approx(0.05, rel=1e-6)


class TestVoteSequenceAtOneCount(VoteBoundContract):
    bound = staticmethod(lambda votes, n, level: VoteConfidenceSequence().lower(votes, n, level))


class TestBonferroni(SimultaneousContract):
    strategy = Bonferroni()


class TestKFamilywise(SimultaneousContract):
    strategy = KFamilywise(5)


class TestWeightedBonferroni(SimultaneousContract):
    strategy = WeightedBonferroni(np.linspace(0, 3, 20))


class TestFixedThresholdHolm(SimultaneousContract):
    strategy = FixedThresholdHolm(0.75)


class TestEmpiricalBernstein(ScoreBoundContract):
    bound = EmpiricalBernstein()


class TestCdfBand(ScoreBoundContract):
    bound = CdfBand()


class TestBetting(ScoreBoundContract):
    bound = Betting()


class TestBettingWithTwoStakes(ScoreBoundContract):
    bound = Betting(stakes=2)


# --- the harness can fail ---------------------------------------------------------------------------------------------


def normal_lower(votes: np.ndarray, n: int, level: float) -> np.ndarray:
    share = votes / n
    return share - stats.norm.isf(level) * np.sqrt(share * (1 - share) / n)


class WrongVotes(VoteBoundContract):
    bound = staticmethod(normal_lower)


def test_the_normal_approximation_is_caught() -> None:
    with pytest.raises(AssertionError):
        WrongVotes().test_level_holds_for_every_probability()
    with pytest.raises(AssertionError):
        WrongVotes().test_level_holds_just_below_each_bound()


class PublishedHolm(SimultaneousContract):
    strategy = PaperHolm()


def test_ranked_clopper_pearson_is_caught() -> None:
    with pytest.raises(AssertionError, match="misses"):
        PublishedHolm().test_well_separated()


@dataclass(frozen=True)
class WithoutDiscount:
    """A k-family-wise bound whose failures are not paid for."""

    name: ClassVar[str] = "wrong"
    simultaneous: ClassVar[bool] = True
    discount: int = 0

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        return KFamilywise(5).levels(n_outputs, alpha)

    def lower_bounds(self, votes: np.ndarray, n: int, alpha: float) -> VoteBounds:
        return VoteBounds(KFamilywise(5).lower_bounds(votes, n, alpha).lower, 0)


class UnpaidFailures(SimultaneousContract):
    strategy = WithoutDiscount()


def test_a_forgotten_discount_is_caught() -> None:
    with pytest.raises(AssertionError, match="misses"):
        UnpaidFailures().test_well_separated()


@dataclass(frozen=True)
class Uncorrected:
    """Tests τ for every output at level α."""

    name: ClassVar[str] = "wrong"
    simultaneous: ClassVar[bool] = True
    discount: int = 0

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        return alpha

    def lower_bounds(self, votes: np.ndarray, n: int, alpha: float) -> VoteBounds:
        return VoteBounds(np.where(clopper_pearson_lower(votes, n, alpha) >= 0.75, 0.75, 0.0), 0)


class UncorrectedTests(SimultaneousContract):
    strategy = Uncorrected()


def test_a_missing_correction_is_caught() -> None:
    with pytest.raises(AssertionError, match="misses"):
        UncorrectedTests().check(BELOW_THRESHOLD)


@dataclass(frozen=True)
class NormalScores:
    """The central limit theorem, as if it held at every N."""

    name: ClassVar[str] = "wrong"
    needs_histogram: ClassVar[bool] = True

    def bounds(self, tally: ScoreHistogram, level: float, reference: float) -> ScoreBounds:
        centre = tally.snap(reference)
        (mean, variance), (deviation, spread) = tally.scores(), tally.deviations(centre)
        width = stats.norm.isf(level / 2) / np.sqrt(tally.count)
        return ScoreBounds(mean - width * np.sqrt(variance), deviation + width * np.sqrt(spread), centre)


@dataclass(frozen=True)
class PrintedBand:
    """The band's formulas as published: a plus for a minus in μ, a sum that stops early in ζ."""

    name: ClassVar[str] = "wrong"
    needs_histogram: ClassVar[bool] = True
    wrong_mean: bool = True
    wrong_deviation: bool = True

    def bounds(self, tally: ScoreHistogram, level: float, reference: float) -> ScoreBounds:
        right = CdfBand().bounds(tally, level, reference)
        band = np.sqrt(np.log(2 / level) / (2 * tally.count))
        above = np.minimum(np.cumsum(tally.counts, axis=1) / tally.count + band, 1)
        below = np.maximum(np.cumsum(tally.counts, axis=1) / tally.count - band, 0)
        tau = tally.thresholds[1:]
        mean = tau[-1] - tau[0] * above[:, 0] + above[:, :-2] @ np.diff(tau)
        squares = (tally.thresholds - right.reference[:, None]) ** 2
        falls = -np.diff(squares, axis=1)[:, :-1]
        parts = falls * np.where(falls >= 0, above[:, :-2], below[:, :-2])
        return ScoreBounds(
            np.minimum(mean, 1.0) if self.wrong_mean else right.mean_lower,
            np.maximum(squares[:, -1] + parts.sum(axis=1), 1e-9) if self.wrong_deviation else right.deviation_upper,
            right.reference,
        )


class NormalScoresTests(ScoreBoundContract):
    bound = NormalScores()


class PrintedMeanTests(ScoreBoundContract):
    bound = PrintedBand(wrong_deviation=False)


def test_the_normal_approximation_of_scores_is_caught() -> None:
    with pytest.raises(AssertionError, match="misses"):
        NormalScoresTests().test_level_holds_for_hard_laws()


def test_the_printed_mean_is_caught() -> None:
    with pytest.raises(AssertionError, match="misses"):
        PrintedMeanTests().test_level_holds_for_hard_laws()


# --- sequences --------------------------------------------------------------------------------------------------------


def misses_at_any_time(lower, upper, q: float, level: float, paths: int, length: int) -> int:
    """Count the paths on which a bound is wrong at some number of samples."""
    rng = np.random.default_rng(11)
    votes = np.cumsum(rng.random((paths, length)) < q, axis=1)
    n = np.broadcast_to(np.arange(1, length + 1), votes.shape)
    low, high = (bound(votes.ravel(), n.ravel(), level).reshape(votes.shape) for bound in (lower, upper))
    return int(((low > q) | (high < q)).any(axis=1).sum())


@pytest.mark.parametrize("q", [0.02, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("sequence", [VoteConfidenceSequence(), VoteConfidenceSequence(2.0, 3.0)])
def test_sequences_hold_at_every_sample_count(sequence: VoteConfidenceSequence, q: float) -> None:
    misses = misses_at_any_time(sequence.lower, sequence.upper, q, 0.1, paths=400, length=600)
    assert_level_kept(misses, 400, 0.1)


def test_looking_repeatedly_at_a_fixed_sample_bound_is_caught() -> None:
    def upper(votes, n, level):
        return 1 - clopper_pearson_lower(n - votes, n, level)

    misses = misses_at_any_time(clopper_pearson_lower, upper, 0.5, 0.1, paths=200, length=300)
    with pytest.raises(AssertionError, match="misses"):
        assert_level_kept(misses, 200, 0.1)


# --- the same with more repeats ---------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("contract", [TestBonferroni, TestKFamilywise, TestWeightedBonferroni, TestFixedThresholdHolm])
@pytest.mark.parametrize("field", VOTE_FIELDS)
def test_simultaneous_bounds_at_length(contract: type[SimultaneousContract], field) -> None:
    contract().check(field, repeats=10_000)


@pytest.mark.long
@pytest.mark.parametrize("contract", [TestEmpiricalBernstein, TestCdfBand, TestBetting])
@pytest.mark.parametrize("law", SCORE_LAWS, ids=lambda law: law.name)
def test_score_bounds_at_length(contract: type[ScoreBoundContract], law) -> None:
    contract().check(law, repeats=30_000)


@pytest.mark.long
def test_published_holm_misses_as_often_as_theory_says() -> None:
    rng = np.random.default_rng(5)
    repeats, alpha = 4000, 0.01
    field = VoteField(np.linspace(0.05, 0.95, 50), 10_000)
    misses = 0
    for _ in range(repeats):
        with pytest.warns(UserWarning, match="not a simultaneous bound"):
            lower = PaperHolm().lower_bounds(field.draw(rng), field.samples, alpha).lower
        misses += bool(np.any(lower > field.probabilities))
    theory = 1 - np.prod(1 - alpha / np.arange(1, 51))
    # Levels are not used up entirely, votes being whole numbers.
    margin = normal_margin() * np.sqrt(theory * (1 - theory) / repeats)
    assert theory - margin - 0.003 < misses / repeats < theory + margin
    assert misses / repeats > 2.5 * alpha
