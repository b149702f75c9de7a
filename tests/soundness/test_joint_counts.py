"""The promise of counts through the public functions: certified counts against what truly survives the worst attack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.bounds.test_joint_count import CHANCES, DEPENDENCES, common, independent

from localsmooth.baselines import Cohen
from localsmooth.bounds import (
    CandidateVotes,
    CountRule,
    EmpiricalBernstein,
    JointAndBonferroni,
    JointCount,
    Sharing,
    WeightedBonferroni,
)
from localsmooth.certificates import BaseCertificates, GaussianVotes, OutputVotes, certify_outputs, gaussian_vote_eta
from localsmooth.collective import Ball, Envelope, Problem, solve
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, Partition
from localsmooth.noise import Gaussian
from localsmooth.results import ACCURACY, RATIO
from localsmooth.tasks.arrays import SampledItem, Settings
from localsmooth.tasks.arrays.item import certify_item, counting_groups
from localsmooth.tasks.graphs import GraphSettings
from localsmooth.testing.chance import assert_level_kept

N_FIRST, N, ALPHA = 30, 80, 0.1
SIZE = CHANCES.size
GROUP = np.arange(SIZE) % 2
LEVELS = np.array([[0.3, 1.0], [1.0, 0.3]])
BUDGETS = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6)
JOINT = JointCount()
LABEL = np.where(np.arange(SIZE) % 5 == 0, 1, 0)
# Spendings of a budget of 1 in two input groups, from one to the other.
SPENDINGS = np.stack([np.linspace(0, 1, 101), np.linspace(1, 0, 101)], axis=1)


def layout() -> Layout:
    return Layout(Partition(GROUP), Partition(np.array([0, 1])), LEVELS)


def item(errors: np.ndarray, first: np.ndarray) -> SampledItem:
    candidate = np.zeros(SIZE, np.int64)
    votes = OutputVotes(candidate, N - errors, N, candidate_votes=CandidateVotes(N_FIRST - first, N_FIRST), planned=N)
    ignored = np.zeros(SIZE, bool)
    ignored[:3] = True
    return SampledItem("one", np.zeros((1, 2), np.float32), LABEL, ignored, layout(), votes)


def surviving(counted: np.ndarray) -> np.ndarray:
    """True number of outputs left by the worst attack, per budget: half spaces, for which the certificate is exact."""
    eta = np.where(CHANCES < 0.5, gaussian_vote_eta(1 - CHANCES), 0.0)[counted]
    weights = (1 / LEVELS**2)[GROUP[counted]]
    spent = np.array([b * b for b in BUDGETS])[:, None, None] * SPENDINGS
    return ((spent @ weights.T) < eta).sum(axis=-1).min(axis=1)


def missed(rng: np.random.Generator, draw: Callable[..., np.ndarray], settings: Settings) -> bool:
    drawn = item(draw(rng, CHANCES, N), draw(rng, CHANCES, N_FIRST))
    result = certify_item(drawn, Gaussian(), settings.settled(drawn.votes, counting_groups(drawn)))
    assert drawn.ignored is not None
    wrong = False
    for target, counted in ((RATIO, ~drawn.ignored), (ACCURACY, ~drawn.ignored & (LABEL == 0))):
        wrong |= bool(np.any(result.curves[target, "envelope"].certified > surviving(counted)))
    return wrong


def joint(rule: CountRule | None = JOINT) -> Settings:
    return Settings(ALPHA, BUDGETS, (GaussianVotes(),), {"envelope": Envelope()}, rule)


@pytest.mark.parametrize("repeats", [100, pytest.param(2_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("rule", [None, JOINT, JointAndBonferroni()], ids=["default", "joint", "half each"])
@pytest.mark.parametrize("dependence", DEPENDENCES)
def test_certified_counts_hold(dependence: str, rule: CountRule | None, repeats: int) -> None:
    """For the ratio and the accuracy at every budget at once, under one α, by the rule that is chosen by default, too.

    In this field the candidate stage chooses either rule now and then.
    """
    rng = np.random.default_rng(3)
    total = sum(missed(rng, DEPENDENCES[dependence], joint(rule)) for _ in range(repeats))
    assert_level_kept(total, repeats, ALPHA)


def test_counts_without_bounds_are_caught() -> None:
    """The same measurement finds counts of the shares of votes themselves."""
    rng, total, counted = np.random.default_rng(3), 0, np.arange(SIZE) >= 3
    for _ in range(60):
        share = 1 - independent(rng, CHANCES, N) / N
        eta = np.where(share > 0.5, gaussian_vote_eta(np.minimum(share, 1 - 1e-3)), 0.0)
        counts = solve(Problem(1 / LEVELS**2, eta, GROUP, Ball(BUDGETS), counted & (eta > 0))).certified
        total += bool(np.any(counts > surviving(counted)))
    with pytest.raises(AssertionError):
        assert_level_kept(total, 60, ALPHA)


def test_what_is_shown_of_single_outputs_is_bounded_alone() -> None:
    """Maps show bounds at level α of each output; counts never exceed the outputs that have one."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        drawn = item(independent(rng, CHANCES, N), independent(rng, CHANCES, N_FIRST))
        result = certify_item(drawn, Gaussian(), joint())
        assert (result.lower_probability <= drawn.votes.votes / N).all()
        assert ((result.prediction >= 0) == (result.lower_probability > 0.5)).all()
        for target in (RATIO, ACCURACY):
            assert result.curves[target, "envelope"].certified.max() <= result.stake(target).most


def test_isotropic_baseline_counts_alike() -> None:
    """Cohen's count under one noise level is that of the collective problem."""
    rng = np.random.default_rng(8)
    drawn = item(common(rng, CHANCES, N), common(rng, CHANCES, N_FIRST))
    one = Layout(Partition(np.zeros(SIZE, np.int64)), Partition(np.zeros(2, np.int64)), np.array([[0.5]]))
    drawn = SampledItem(drawn.name, drawn.image, drawn.label, drawn.ignored, one, drawn.votes)
    ours = certify_item(drawn, Gaussian(), joint())
    theirs = Cohen().certify(drawn, Gaussian(), joint())
    for target in (RATIO, ACCURACY):
        mine, others = ours.curves[target, "envelope"].certified, theirs.curves[target, "naive"].certified
        # The baseline bounds right and wrong outputs apart whatever is counted: an output may be lost in rounding.
        assert (mine >= others).all()
        assert (mine - others).max() <= 1
    np.testing.assert_array_equal(ours.prediction, theirs.prediction)


def test_other_targets_than_those_said_beforehand_are_refused() -> None:
    drawn = item(common(np.random.default_rng(1), CHANCES, N), np.zeros(SIZE, np.int64))
    options: dict[str, Any] = {"alpha": ALPHA, "certificates": [GaussianVotes()], "score_bound": EmpiricalBernstein()}

    def bounded(rule: Sharing, kind: np.ndarray | None) -> BaseCertificates:
        made = certify_outputs(drawn.votes, Gaussian(), LEVELS, GROUP, simultaneous=rule, kind=kind, **options)
        return made.base

    base = bounded(JointCount(), LABEL)
    base.require_whole(LABEL == 0)
    base.require_whole(np.ones(SIZE, bool))
    with pytest.raises(InvalidInputError, match="targets"):
        base.require_whole(np.arange(SIZE) < SIZE // 2)
    with pytest.raises(InvalidInputError, match="simultaneous"):
        bounded(JointCount(), None)
    bounded(WeightedBonferroni(np.ones(SIZE)), None).require_whole(np.arange(SIZE) < 7)


def test_nodes_with_fields_of_their_own_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="strictly_local"):
        GraphSettings(ALPHA, simultaneous=JointCount(), strictly_local=True)
