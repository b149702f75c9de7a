"""Early stopping saves samples, and what it certifies still holds with the probability asked for."""

from __future__ import annotations

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
    FixedThresholdHolm,
    KFamilywise,
    PaperHolm,
    VoteConfidenceSequence,
    WeightedBonferroni,
    clopper_pearson_lower,
    clopper_pearson_upper,
)
from localsmooth.certificates import GaussianScores, RenyiVotes
from localsmooth.certificates.combined import OutputVotes
from localsmooth.cli.summary import print_summary
from localsmooth.config import parse_configuration
from localsmooth.config.build import build_plan
from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout
from localsmooth.noise import Bernoulli, Gaussian
from localsmooth.pipeline import CertificationSettings, StopWhenDecided, certify, recertify
from localsmooth.pipeline.stopping import Goal, with_goals
from localsmooth.results import RATIO, load, run_info
from localsmooth.sampling import ItemTally, NoProgress, SamplingOptions, SamplingPlan, StoppingRule, sample
from tests.bounds.guarantee import assert_level_kept
from tests.config.test_configuration import changed
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
    # Some outputs are easy, some hopeless, some neither.
    thresholds = np.where(np.arange(24).reshape(SHAPE) % 12 < 6, EASY, np.linspace(-0.5, 0.5, 24).reshape(SHAPE))
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
            if np.array_equal(
                VoteConfidenceSequence().lower(np.minimum(own, n), n, np.nextafter(ALPHA / 24, 0)),
                lower[group == number],
            )
        ]
        assert len(candidates) == 1
        found.add(candidates[0])
    assert len(found) > 1


def test_target_is_what_the_largest_budget_takes() -> None:
    layout = LAYOUT.layout((1, *SHAPE), SHAPE)
    settings = CertificationSettings(ALPHA, (0.1, 0.4), (_votes(),))
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


def _votes():
    from localsmooth.certificates import GaussianVotes

    return GaussianVotes()


def _goals(settings: CertificationSettings, noise: object = None) -> tuple[Goal, ...]:
    plan = with_goals(STOPPING, [LAYOUT.layout((1, *SHAPE), SHAPE)], noise or Gaussian(), settings)  # type: ignore[arg-type]
    assert isinstance(plan.stop, StopWhenDecided)
    return plan.stop.goals[0]


def test_targets_of_several_orders_and_unequal_levels() -> None:
    layout = GridLayout((1, 1), 0.2, 0.2).layout((1, *SHAPE), SHAPE)
    weights = np.zeros(24)
    weights[3:] = 1.0
    settings = CertificationSettings(ALPHA, (3.0,), (RenyiVotes(),), simultaneous=WeightedBonferroni(weights))
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
        return clopper_pearson_upper(votes, n, level)


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


LEVEL, COINS = 0.1, (12, 25)


def coins(rule: StoppingRule) -> ItemTally:
    """Independent outputs, each a group of its own, whose candidate has probability 1/2 exactly."""
    model = threshold_model(np.zeros(COINS))
    layout = GridLayout(COINS, 1.0, 1.0, window_margin=0).layout((1, *COINS), COINS)
    plan = SamplingPlan(1, 800, seed=5, chunk_size=20, stop=rule)
    return sample(model, [torch.zeros(1, *COINS)], [layout], Gaussian(), plan, options=OPTIONS)[0]


def misses(tally: ItemTally, sequence: VoteConfidenceSequence) -> int:
    assert tally.n_per_output is not None
    assert len(set(tally.n_per_output.tolist())) > 5, "the outputs should stop at many different times"
    return int((sequence.lower(tally.votes.astype(np.int64), tally.n_per_output, LEVEL) > 0.5).sum())


def decided_rule(sequence: VoteConfidenceSequence) -> StopWhenDecided:
    outputs = COINS[0] * COINS[1]
    return StopWhenDecided(sequence=sequence, goals=((Goal(LEVEL, 0.5),) * outputs,))


def test_level_is_kept_where_groups_stop_when_decided() -> None:
    sequence = VoteConfidenceSequence(2.0, 2.0)
    assert_level_kept(misses(coins(decided_rule(sequence)), sequence), 300, LEVEL)


def test_level_is_kept_under_the_worst_rule() -> None:
    sequence = VoteConfidenceSequence(2.0, 2.0)
    assert_level_kept(misses(coins(Luck(sequence, LEVEL, 0.5)), sequence), 300, LEVEL)


def test_clopper_pearson_with_the_same_stopping_is_caught() -> None:
    wrong = RepeatedClopperPearson()
    for rule in (decided_rule(wrong), Luck(wrong, LEVEL, 0.5)):
        with pytest.raises(AssertionError, match="misses"):
            assert_level_kept(misses(coins(rule), wrong), 300, LEVEL)


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
        with pytest.raises(InvalidInputError, match="simultaneous: .* is a rule for votes only"):
            recertify(tmp_path, simultaneous=rule)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"simultaneous": FixedThresholdHolm(0.8)}, "simultaneous"),
        ({"simultaneous": PaperHolm()}, "simultaneous"),
        ({"certificates": [GaussianScores()]}, "stop: there are certificates from scores"),
        ({"plan": replace(STOPPING, n_bound=12)}, "n_bound: with 12 votes"),
        ({"plan": replace(PLAN, stop=Luck(VoteConfidenceSequence(), 0.1, 0.5))}, "stop: Luck"),
    ],
)
def test_what_cannot_be_stopped_early_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(**changes)  # type: ignore[arg-type]


def test_other_refusals() -> None:
    with pytest.raises(InvalidInputError, match="target"):
        StopWhenDecided(1.0)
    with pytest.raises(InvalidInputError, match="stop: it does not have one goal"):
        coins(StopWhenDecided())
    votes = np.array([3, 4])
    with pytest.raises(InvalidInputError, match="confidence sequence"):
        OutputVotes(votes, votes, np.array([5, 6]))


def test_configuration_file_turns_it_on() -> None:
    assert build_plan(parse_configuration(changed("sampling.stop_early", True))).stop == StopWhenDecided()
    assert build_plan(parse_configuration(changed("sampling.stop_early", False))).stop is None
