"""The rule that is chosen from the candidate stage: it promises about as much as the better one, and holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from localsmooth.bounds import (
    Automatic,
    Bonferroni,
    CandidateVotes,
    CountRule,
    JointAndBonferroni,
    JointCount,
    VoteBounds,
)
from localsmooth.bounds.beta_mixture import candidate_prior
from localsmooth.errors import InvalidInputError
from localsmooth.tasks.arrays import Settings
from localsmooth.testing.chance import assert_level_kept, likely

ALPHA = 0.01
ASKED = special.ndtr(np.arange(0, 3.5, 0.05))


def mixed(rng: np.random.Generator, outputs: int) -> np.ndarray:
    """Few unanimous outputs, and a tenth that is hopeless."""
    return np.where(rng.random(outputs) < 0.1, rng.uniform(0.4, 0.8, outputs), rng.beta(1, 12, outputs))


def sure(rng: np.random.Generator, outputs: int) -> np.ndarray:
    """Nearly all unanimous."""
    return np.where(rng.random(outputs) < 0.05, rng.uniform(0, 0.6, outputs), 1e-7)


def steep(rng: np.random.Generator, outputs: int) -> np.ndarray:
    """Error probabilities of all sizes."""
    return 10 ** rng.uniform(-6, -0.3, outputs)


MODELS = {"mixed": mixed, "sure": sure, "steep": steep}


def promised(*ways: VoteBounds) -> float:
    """The better of several ways to count, whatever is asked."""
    return float(
        np.mean([max([0, *(int((each.lower > asked).sum()) - each.discount for each in ways)]) for asked in ASKED])
    )


@pytest.mark.parametrize("samples", [128, 1_024, 100_000])
@pytest.mark.parametrize("outputs", [30, 100, 1_000, 4_000])
@pytest.mark.parametrize("model", MODELS)
def test_hardly_less_is_promised_than_by_the_better_rule(model: str, outputs: int, samples: int) -> None:
    rng = np.random.default_rng([outputs, samples])
    u, group = MODELS[model](rng, outputs), np.arange(outputs) % 4
    first = CandidateVotes(rng.binomial(100, 1 - u), 100)
    votes = rng.binomial(samples, 1 - u)

    def ways(alpha: float) -> tuple[list[VoteBounds], VoteBounds]:
        rules = (JointCount(), JointCount(spare=0))
        counts = [rule.count_bounds(votes, samples, alpha, group, first) for rule in rules]
        return counts, Bonferroni().lower_bounds(votes, samples, alpha)

    (joint, single), (half, other) = ways(ALPHA), ways(ALPHA / 2)
    made = {JointCount(): promised(*joint), Bonferroni(): promised(single)}
    chosen = Automatic().choose(first, samples, ALPHA, group, divide=False)
    assert made[chosen] >= 0.98 * max(made.values()) - 1
    made = {JointAndBonferroni(): promised(*half, other), Bonferroni(): promised(single)}
    chosen = Automatic().choose(first, samples, ALPHA, group)
    assert made[chosen] >= 0.985 * made[Bonferroni()] - 1
    assert made[chosen] >= 0.96 * promised(*joint) - 1


def test_either_rule_is_chosen_somewhere() -> None:
    rng, group = np.random.default_rng(1), np.zeros(100, np.int64)
    few = CandidateVotes(rng.binomial(100, 1 - mixed(rng, 12)), 100)
    assert Automatic().choose(few, 1_024, ALPHA, group[:12]) == Bonferroni()
    few = CandidateVotes(rng.binomial(100, 1 - mixed(rng, 100)), 100)
    assert Automatic().choose(few, 1_024, ALPHA, group, divide=False) == Bonferroni()
    many = CandidateVotes(rng.binomial(100, 1 - sure(rng, 4_000)), 100)
    assert Automatic().choose(many, 1_024, ALPHA, np.zeros(4_000, np.int64)) == JointAndBonferroni()
    assert Automatic().choose(many, 1_024, ALPHA, np.zeros(4_000, np.int64), divide=False) == JointCount()
    assert Automatic().choose(None, 1_024, ALPHA, group) == Bonferroni()
    assert Automatic().choose(CandidateVotes(np.zeros(30_000, np.int64), 9), 99, ALPHA, np.zeros(30_000, np.int64)) == (
        JointAndBonferroni()
    )


@pytest.mark.parametrize("repeats", [100, pytest.param(2_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("outputs", [12, 48])
def test_miss_rate_of_what_is_chosen(outputs: int, repeats: int) -> None:
    """All outputs err together, so that Bonferroni's rule misses seldom and the joint count as often as it may."""
    rng, n, missed, chosen = np.random.default_rng(outputs), 60, 0, set[str]()
    u = np.geomspace(0.005, 0.4, outputs)
    group = np.zeros(outputs, np.int64)
    for _ in range(repeats):
        first = CandidateVotes(20 - (rng.random((20, 1)) < u).sum(axis=0), 20)
        votes = n - (rng.random((n, 1)) < u).sum(axis=0)
        settings = Settings(0.1, (0.0,), simultaneous=Automatic().choose(first, n, 0.1, group))
        chosen.add(settings.sharing.name)
        wrong = False
        for way in settings.ways():  # all of them at once
            rule = way.sharing
            made = (
                rule.count_bounds(votes, n, way.alpha, group, first)
                if isinstance(rule, CountRule)
                else rule.lower_bounds(votes, n, way.alpha)
            )
            worst = max(int((made.lower >= x).sum() - (1 - u >= x).sum()) for x in made.lower)
            wrong |= worst > made.discount
        missed += wrong
    assert_level_kept(missed, repeats, 0.1)
    assert len(chosen) == 2 or repeats < 1_000  # the choice is put to the test


def test_errors_are_drawn_from_the_updated_prior() -> None:
    first = CandidateVotes(np.repeat([40, 38], [30_000, 20_000]), 40)
    prior, kind = candidate_prior(first)
    drawn = prior.draw_errors(kind, 25, np.random.default_rng(5))
    for one, votes in enumerate(np.unique(first.votes)[::-1]):
        some = drawn[first.votes == votes]
        expected = np.exp(
            prior.evidence(np.arange(26.0), np.full(26, 25.0), np.full(26, kind[first.votes == votes][0])).log
        ) * special.comb(25, np.arange(26))
        assert expected.sum() == pytest.approx(1, abs=1e-9)
        shown = expected * some.size > 5
        counts = np.append(np.bincount(some, minlength=26)[shown], np.bincount(some, minlength=26)[~shown].sum())
        p = stats.chisquare(counts, np.append(expected[shown], expected[~shown].sum()) * some.size).pvalue
        assert likely(p), one


def test_half_of_alpha_each_needs_a_fixed_number_of_samples() -> None:
    votes, group = np.full(5, 90), np.zeros(5, np.int64)
    with pytest.raises(InvalidInputError, match="JointCount"):
        JointAndBonferroni().count_bounds(votes, np.full(5, 100), 0.1, group)
    made = JointAndBonferroni().count_bounds(votes, 100, 0.1, group)
    half = JointCount().count_bounds(votes, 100, 0.05, group)
    np.testing.assert_array_equal(made.lower, half.lower)
    single = Bonferroni().lower_bounds(votes, 100, 0.05).lower
    np.testing.assert_array_equal(made.shown, np.maximum(half.shown, single))
