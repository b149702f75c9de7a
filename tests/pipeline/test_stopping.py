"""Early stopping saves samples, and what it certifies still holds with the probability asked for."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from scipy.stats import norm

from localsmooth.bounds import (
    Bonferroni,
    CandidateVotes,
    CandidateWeights,
    FixedThresholdHolm,
    JointAndBonferroni,
    KFamilywise,
    PaperHolm,
    VoteConfidenceSequence,
    WeightedBonferroni,
    clopper_pearson_lower,
    sequential_lower_bounds,
)
from localsmooth.certificates import GaussianScores, GaussianVotes, RenyiVotes
from localsmooth.certificates.combined import OutputVotes
from localsmooth.cli.summary import print_summary
from localsmooth.config import parse_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress, sample
from localsmooth.layout import GridLayout
from localsmooth.noise import Bernoulli, Gaussian
from localsmooth.results import RATIO, load, run_info
from localsmooth.runs import DirectoryStore, SamplingPlan, StoppingRule
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import StopWhenDecided
from localsmooth.tasks.arrays import Settings
from localsmooth.tasks.arrays.sampled import load_items
from localsmooth.tasks.record import load_record
from localsmooth.tasks.stopping import Goal, with_goals
from localsmooth.testing.chance import assert_level_kept
from tests.config.test_configuration import changed
from tests.flat import certify, recertify
from tests.pipeline.models import threshold_model

SHAPE = (4, 6)
ALPHA = 0.05
EASY = np.linspace(-1.2, -0.8, 24).reshape(SHAPE)
LAYOUT = GridLayout((2, 3), 0.3, 0.6)
PLAN = SamplingPlan(n_candidate=50, n_bound=3000, seed=3, chunk_size=100)
STOPPING = replace(PLAN, stop=StopWhenDecided())
OPTIONS = SamplingOptions(batch_size=64, check_model=False)


def run(plan: SamplingPlan = STOPPING, thresholds: np.ndarray = EASY, **changes: object):
    images = [np.zeros((1, *SHAPE), np.float32), np.full((1, *SHAPE), 0.1, np.float32)]
    arguments = {"alpha": ALPHA, "budgets": [0.0, 0.2, 0.4], "options": OPTIONS, "progress": NoProgress()}
    arguments |= {"simultaneous": Bonferroni()}  # the rule that needs the sequence
    return certify(threshold_model(thresholds), images, layout=LAYOUT, plan=plan, **(arguments | changes))  # type: ignore[arg-type]


def test_easy_model_is_certified_alike_with_far_fewer_samples(tmp_path: Path) -> None:
    full, early = run(PLAN), run(out=tmp_path)
    np.testing.assert_array_equal(early["certified"].values, full["certified"].values)
    saving = run_info(early).saving
    assert saving is not None
    assert saving.planned == (6 * 3000,) * 2
    assert all(share > 0.8 for share in saving.shares)
    assert run_info(load(tmp_path / "result.nc")).saving == saving
    assert run_info(full).saving is None
    assert any("confidence sequence" in line for line in json.loads(early.attrs["assumptions"]))
    text = StringIO()
    print_summary({"localized": early}, Console(file=text, width=200))
    assert f"{sum(saving.counted):,} of 36,000 samples counted" in text.getvalue()


def test_bounds_are_those_of_the_sequence_where_each_group_stopped() -> None:
    """Votes are prefixes of the plain run's, and q is the sequence's bound at α / 24."""
    # The groups on the right have outputs that stay undecided.
    thresholds = np.where(np.arange(6) < 4, EASY, np.linspace(-0.5, 0.5, 24).reshape(SHAPE))
    result = run(thresholds=thresholds)
    saving = run_info(result).saving
    assert saving is not None
    votes, lower = result["votes"].values[0], result["lower_probability"].values[0]
    group = result["output_partition"].values[0]
    found = set()
    for number in range(6):
        own = votes[group == number]
        candidates = [
            n
            for n in range(100, 3001, 100)
            if np.allclose(
                VoteConfidenceSequence().lower(np.minimum(own, n), n, ALPHA / 24),
                lower[group == number],
                rtol=1e-9,
                atol=1e-15,
            )
        ]
        assert len(candidates) == 1
        found.add(candidates[0])
    assert len(found) > 1


def test_target_is_what_the_largest_budget_takes() -> None:
    layout = LAYOUT.layout((1, *SHAPE), SHAPE)
    settings = Settings(ALPHA, (0.1, 0.4), (GaussianVotes(),), simultaneous=Bonferroni())
    goals = _goals(settings)
    smallest = layout.levels.min(axis=1)
    np.testing.assert_allclose([goal.target for goal in goals], norm.cdf(0.4 / smallest), atol=2e-4)
    assert all(goal.target >= norm.cdf(0.4 / s) for goal, s in zip(goals, smallest, strict=True))
    assert {goal.level for goal in goals} == {Bonferroni().levels(24, ALPHA)}
    out_of_reach = replace(settings, budgets=(50.0,))
    assert {goal.target for goal in _goals(out_of_reach)} == {1.0}
    given = with_goals(replace(PLAN, stop=StopWhenDecided(0.9)), [layout], Gaussian(), settings).stop
    assert isinstance(given, StopWhenDecided)
    assert {goal.target for goal in given.goals[0]} == {0.9}


def _goals(settings: Settings) -> tuple[Goal, ...]:
    plan = with_goals(STOPPING, [LAYOUT.layout((1, *SHAPE), SHAPE)], Gaussian(), settings)
    assert isinstance(plan.stop, StopWhenDecided)
    return plan.stop.goals[0]


def test_targets_of_several_orders_and_unequal_levels() -> None:
    layout = GridLayout((1, 1), 0.2, 0.2).layout((1, *SHAPE), SHAPE)
    weights = np.zeros(24)
    weights[3:] = 1.0
    settings = Settings(ALPHA, (3.0,), (RenyiVotes(),), simultaneous=WeightedBonferroni(weights))
    plan = with_goals(STOPPING, [layout], Bernoulli(), settings)
    assert isinstance(plan.stop, StopWhenDecided)
    (goal,) = plan.stop.goals[0]
    assert goal.level == pytest.approx(ALPHA / 21)

    def reach(q: float) -> float:
        made = RenyiVotes().certificates(Bernoulli(), layout.levels, np.array([q]), np.zeros(1, np.int64))
        return float((made.eta / made.weights.max(axis=(1, 2))[:, None]).max())

    assert reach(goal.target) > 3 > reach(goal.target - 1e-3)


# --- the promise ------------------------------------------------------------------------------------------------------


class RepeatedClopperPearson(VoteConfidenceSequence):
    """Bounds for a fixed number of votes, taken for a sequence."""

    def lower(self, votes, n, level):
        return clopper_pearson_lower(votes, n, level)

    def upper(self, votes, n, level):
        return 1 - clopper_pearson_lower(n - votes, n, level)


@dataclass(frozen=True)
class Luck(StoppingRule):
    """The rule that is worst for a lower bound: stop at the first prefix whose bound is wrong."""

    sequence: VoteConfidenceSequence
    level: float
    probability: float

    def decided(self, item: int, group: int, votes: np.ndarray, n: int) -> bool:
        return bool((self.sequence.lower(votes, n, self.level) > self.probability).all())

    def require_fit(self, groups) -> None: ...

    def configuration(self):
        return {"rule": "luck"}


LEVEL, COINS = 0.1, 3000


def misses(rule: StoppingRule, sequence: VoteConfidenceSequence, coins: int = COINS) -> int:
    """Outputs whose probability is 1/2 and whose bound says more, each stopped by the rule."""
    chunk, chunks = 50, 20
    votes = np.random.default_rng(5).binomial(chunk, 0.5, size=(coins, chunks)).cumsum(axis=1)

    @functools.cache
    def decided(count: int, n: int) -> bool:
        return rule.decided(0, 0, np.array([count]), n)

    stops = [next((t for t in range(chunks - 1) if decided(int(own[t]), chunk * (t + 1))), chunks - 1) for own in votes]
    assert len(set(stops)) > 3, "the outputs should stop at different times"
    counted = votes[np.arange(coins), stops]
    return int((sequence.lower(counted, chunk * (1 + np.array(stops)), LEVEL) > 0.5).sum())


def decided_rule(sequence: VoteConfidenceSequence) -> StopWhenDecided:
    return StopWhenDecided(sequence=sequence, goals=((Goal(LEVEL, 0.5),),))


def test_level_is_kept_where_groups_stop_when_decided() -> None:
    sequence = VoteConfidenceSequence(2.0, 2.0)
    assert_level_kept(misses(decided_rule(sequence), sequence), COINS, LEVEL)


def test_level_is_kept_under_the_worst_rule() -> None:
    sequence = VoteConfidenceSequence(2.0, 2.0)
    assert_level_kept(misses(Luck(sequence, LEVEL, 0.5), sequence), COINS, LEVEL)


def test_clopper_pearson_with_the_same_stopping_is_caught() -> None:
    wrong = RepeatedClopperPearson()
    for rule in (decided_rule(wrong), Luck(wrong, LEVEL, 0.5)):
        with pytest.raises(AssertionError, match="misses"):
            assert_level_kept(misses(rule, wrong, 300), 300, LEVEL)


# --- certified again, and refused -------------------------------------------------------------------------------------


def test_recertifying_uses_the_sequence(tmp_path: Path) -> None:
    result = run(out=tmp_path)
    again = recertify(tmp_path)
    assert again.drop_attrs(deep=False).equals(result.drop_attrs(deep=False))
    assert run_info(again).saving == run_info(result).saving
    stricter = recertify(tmp_path, alpha=0.001)
    assert (stricter["lower_probability"].values < result["lower_probability"].values).all()
    many = recertify(tmp_path, simultaneous=KFamilywise(2))
    assert (many["lower_probability"].values > result["lower_probability"].values).all()
    assert (many["certified"].sel(target=RATIO, budget=0.0).values == 23).all()
    for rule in (FixedThresholdHolm(0.8), PaperHolm()):
        with pytest.raises(InvalidInputError, match=r"simultaneous: .* gives no output a level of its own"):
            recertify(tmp_path, simultaneous=rule)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"simultaneous": FixedThresholdHolm(0.8)}, "simultaneous"),
        ({"simultaneous": PaperHolm()}, "simultaneous"),
        ({"simultaneous": JointAndBonferroni()}, "simultaneous: .* votes end sampling early"),
        ({"certificates": [GaussianScores()]}, "stop: there are certificates from scores"),
        ({"plan": replace(STOPPING, n_bound=8)}, "n_bound: with N₂ = 8 samples"),
        ({"plan": replace(PLAN, stop=Luck(VoteConfidenceSequence(), 0.1, 0.5))}, "stop: Luck"),
    ],
)
def test_what_cannot_be_stopped_early_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(**changes)  # type: ignore[arg-type]


def test_goals_are_not_set_for_counts_that_hold_at_one_number_of_samples() -> None:
    half = Settings(alpha=ALPHA, budgets=[0.0, 0.2], certificates=[GaussianVotes()], simultaneous=JointAndBonferroni())
    with pytest.raises(InvalidInputError, match=r"simultaneous: .* votes end sampling early"):
        with_goals(STOPPING, [LAYOUT.layout((1, *SHAPE), SHAPE)], Gaussian(), half)


def test_other_refusals() -> None:
    with pytest.raises(InvalidInputError, match="target"):
        StopWhenDecided(1.0)
    with pytest.raises(InvalidInputError, match="stop: it does not have one goal"):
        sample(
            threshold_model(EASY),
            [torch.zeros(1, *SHAPE)],
            [LAYOUT.layout((1, *SHAPE), SHAPE)],
            Gaussian(),
            STOPPING,
            options=OPTIONS,
        )
    votes = np.array([3, 4])
    with pytest.raises(InvalidInputError, match="confidence sequence"):
        OutputVotes(votes, votes, np.array([5, 6]))
    with pytest.raises(InvalidInputError, match="planned"):
        OutputVotes(votes, votes, np.array([5, 6]), sequence=VoteConfidenceSequence())


def test_weights_of_the_candidate_stage_do_not_follow_the_votes_that_are_bounded() -> None:
    """Where a group stopped depends on its votes, and shares of alpha must not: they go by the plan."""
    candidates = CandidateVotes(np.array([50, 49, 45, 30]), 50)
    levels: list[np.ndarray] = []
    for n in (np.full(4, 100), np.array([3000, 3000, 100, 200]), 3000):
        observed = OutputVotes(
            np.zeros(4, np.int64),
            np.full(4, 90),
            n,
            sequence=VoteConfidenceSequence(),
            candidate_votes=candidates,
            planned=3000,
        )
        rule = observed.rule(CandidateWeights(), ALPHA)
        assert isinstance(rule, WeightedBonferroni)
        levels.append(rule.levels(4, ALPHA))
    np.testing.assert_array_equal(levels[0], levels[1])
    np.testing.assert_array_equal(levels[0], levels[2])
    short = CandidateWeights().from_candidates(candidates, 100, ALPHA).levels(4, ALPHA)
    assert not np.array_equal(levels[0], short)


def test_an_early_stopped_run_is_weighted_by_its_plan(tmp_path: Path) -> None:
    """Every group stops before the plan's end, in memory and on disk, and the weights are those of the plan."""
    result = run(out=tmp_path)
    items = load_items(load_record(tmp_path), DirectoryStore(tmp_path, read_only=True))
    for index, item in enumerate(items):
        votes = item.votes
        assert np.max(votes.n) < PLAN.n_bound
        assert votes.candidate_votes is not None
        rule = CandidateWeights().from_candidates(votes.candidate_votes, PLAN.n_bound, ALPHA)
        again = recertify(tmp_path, simultaneous=CandidateWeights())
        assert votes.sequence is not None
        by_hand = sequential_lower_bounds(votes.sequence, rule, votes.votes, votes.n, ALPHA).lower
        np.testing.assert_array_equal(again["lower_probability"].values[index].ravel(), by_hand)
    assert result.sizes["item"] == len(items)


def test_outputs_between_a_half_and_the_target_are_decided_for_the_largest_budget_only() -> None:
    # Φ(-threshold / σ) lies between 1/2 and what the largest budget takes.
    middling = np.full(SHAPE, -0.1)
    budgets = [0.0, 0.05, 0.5]
    every = run(thresholds=middling, budgets=budgets)
    stop = StopWhenDecided(largest_budget_only=True)
    largest = run(replace(PLAN, stop=stop), middling, budgets=budgets)
    saved = [run_info(result).saving for result in (every, largest)]
    assert saved[0] is not None
    assert saved[1] is not None
    assert saved[0].total < 0.3
    assert saved[1].total > 0.8
    counts = [
        result["certified"].sel(target=RATIO, bound="envelope").transpose("budget", ...).values
        for result in (every, largest)
    ]
    assert (counts[1] <= counts[0]).all()
    assert (counts[1][-1] == counts[0][-1]).all()
    # Out of reach of everything: what cannot be certified at all decides.
    far = run(replace(PLAN, stop=stop), middling, budgets=[50.0])
    saving = run_info(far).saving
    assert saving is not None
    assert saving.total < 0.5


def test_level_is_kept_where_the_largest_budget_alone_decides() -> None:
    sequence = VoteConfidenceSequence(2.0, 2.0)
    rule = StopWhenDecided(sequence=sequence, goals=((Goal(LEVEL, 0.55),),), largest_budget_only=True)
    assert_level_kept(misses(rule, sequence), COINS, LEVEL)


def test_configuration_file_turns_it_on() -> None:
    values = changed("sampling.stop_early", True)
    values["sampling"]["stop_for"] = "largest-budget"  # type: ignore[index]
    assert parse_configuration(values).sampling.build().stop == StopWhenDecided(largest_budget_only=True)
    assert parse_configuration(changed("sampling.stop_early", True)).sampling.build().stop == StopWhenDecided()
    assert parse_configuration(changed("sampling.stop_early", False)).sampling.build().stop is None
