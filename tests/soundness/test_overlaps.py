"""The promise about IoU and Dice: what is certified against what truly survives the worst attack, at α = .1."""

from __future__ import annotations

import numpy as np
import pytest
from tests.bounds.test_joint_count import CHANCES, DEPENDENCES, independent

from localsmooth.bounds import Bonferroni, CandidateVotes, JointAndBonferroni, JointCount, KFamilywise, Sharing
from localsmooth.certificates import GaussianVotes, OutputVotes, gaussian_vote_eta
from localsmooth.collective import Ball, Naive, Overlap, Problem, certify_overlap
from localsmooth.layout import Layout, Partition
from localsmooth.noise import Gaussian
from localsmooth.tasks.arrays import SampledItem, Settings, certify_overlaps
from localsmooth.testing.chance import assert_level_kept

N_FIRST, N, ALPHA = 30, 80, 0.1
SIZE = CHANCES.size
BUDGETS = (0.0, 0.1, 0.2, 0.35, 0.5)
# One column of inputs: all is spent there, and the naive bound is exact. Confused outputs matter to two classes.
GROUP = np.arange(SIZE) % 2
LEVELS = np.array([[0.3], [0.6]])
LABEL = np.arange(SIZE) % 3
CANDIDATE = np.where(np.arange(SIZE) % 7 == 0, (LABEL + 1) % 3, LABEL)
IGNORED = np.arange(SIZE) % 11 == 0
RULES: list[Sharing] = [Bonferroni(), KFamilywise(3), JointCount(), JointCount(spare=6), JointAndBonferroni()]


def certified(errors: np.ndarray, first: np.ndarray, rule: Sharing) -> Overlap:
    votes = OutputVotes(CANDIDATE, N - errors, N, candidate_votes=CandidateVotes(N_FIRST - first, N_FIRST), planned=N)
    layout = Layout(Partition(GROUP), Partition(np.zeros(2, np.int64)), LEVELS)
    item = SampledItem("one", np.zeros((1, 2), np.float32), LABEL, IGNORED, layout, votes)
    settings = Settings(ALPHA, BUDGETS, (GaussianVotes(),), simultaneous=rule)
    return certify_overlaps(item, Gaussian(), settings, Naive(), 1e-3)


def truth() -> tuple[np.ndarray, np.ndarray]:
    """IoU and Dice that the worst attack truly leaves of each class: half spaces, and what falls turns against it."""
    eta = np.where(CHANCES < 0.5, gaussian_vote_eta(1 - CHANCES), 0.0)
    iou = np.zeros((3, len(BUDGETS)))
    for place, budget in enumerate(BUDGETS):
        stands = (budget**2 / LEVELS[GROUP, 0] ** 2 < eta) & ~IGNORED
        for name in range(3):
            hit = stands & (name == LABEL) & (name == CANDIDATE)
            spared = stands & (name != LABEL) & (name != CANDIDATE)
            iou[name, place] = hit.sum() / ((~IGNORED).sum() - spared.sum())
    return iou, 2 * iou / (1 + iou)


def missed(found: Overlap) -> bool:
    iou, dice = truth()
    return bool(np.any(found.iou > iou + 1e-12) or np.any(found.dice > dice + 1e-12))


# With 500 repetitions a dependence that misses in .2 of all cases is found with probability .95, in .22 with .997.
@pytest.mark.parametrize("repeats", [25, pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{getattr(rule, 'spare', None)}")
@pytest.mark.parametrize("dependence", DEPENDENCES)
def test_certified_overlaps_hold(dependence: str, rule: Sharing, repeats: int) -> None:
    """For every class and budget at once, whatever errors have in common."""
    rng, draw = np.random.default_rng(5), DEPENDENCES[dependence]
    total = sum(missed(certified(draw(rng, CHANCES, N), draw(rng, CHANCES, N_FIRST), rule)) for _ in range(repeats))
    assert_level_kept(total, repeats, ALPHA)


def test_overlaps_without_bounds_are_caught() -> None:
    """The same measurement finds overlaps of the shares of votes themselves."""
    rng, total = np.random.default_rng(5), 0
    for _ in range(40):
        share = 1 - independent(rng, CHANCES, N) / N
        eta = np.where(share > 0.5, gaussian_vote_eta(np.minimum(share, 1 - 1e-3)), 0.0)
        problem = Problem(1 / LEVELS**2, eta, GROUP, Ball(BUDGETS), ~IGNORED)
        total += missed(certify_overlap(problem, CANDIDATE, LABEL, bound=Naive()))
    with pytest.raises(AssertionError):
        assert_level_kept(total, 40, ALPHA)
