"""Stop sampling an output group when all of its outputs are decided."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.bounds import (
    SMALLEST_LEVEL,
    CandidateRule,
    CountRule,
    LevelStrategy,
    VoteConfidenceSequence,
    hopeless_words,
    require_level_strategy,
)
from localsmooth.certificates import BaseCertificates, VoteCertificate, certified_radius
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import Noise
from localsmooth.runs import SamplingPlan, StoppingRule
from localsmooth.tasks.strategies import Strategies

__all__ = ["Goal", "StopWhenDecided", "with_goals"]

Radius = Callable[[BaseCertificates, Layout], np.ndarray]
"""Below which budget each output keeps its prediction on its own."""

_FEWEST_NINES, _MOST_NINES = math.log10(2.0), 9.0
_ROUNDS = 16
# About the share of α at which rules for counts bound an output, however many there are: only a goal, no promise.
_COUNTED = 0.01


@dataclass(frozen=True)
class Goal:
    """What an output has to reach.

    Parameters
    ----------
    level
        Level at which its probability is bounded.
    target
        Lower bound on its probability that suffices; one of 1 is never reached.
    """

    level: float
    target: float


@dataclass(frozen=True)
class StopWhenDecided(StoppingRule):
    """Stop when each output of a group has reached its goal, or cannot be certified.

    An output is decided while its lower confidence bound exceeds the target, or its upper one is at most 1/2, so that
    no budget can be certified. Both come from a confidence sequence, which certification then uses too: it holds at
    every number of samples at once. An output whose probability lies between 1/2 and the target stays undecided, since
    further samples help it to smaller budgets; with `largest_budget_only` its upper bound decides it too.

    Parameters
    ----------
    target
        Lower bound on an output's probability that suffices; by default what the largest budget takes, wherever the
        adversary spends it.
    sequence
        The confidence sequence.
    largest_budget_only
        Whether to stop for outputs that cannot reach the target, too. That saves samples where only the largest budget
        is of interest, and costs certified outputs at smaller ones.
    goals
        Level and target for every item and output group. `certify` fills them in.

    Raises
    ------
    InvalidInputError
        If the target is outside [1/2, 1).
    """

    target: float | None = None
    sequence: VoteConfidenceSequence = field(default_factory=VoteConfidenceSequence)
    goals: tuple[tuple[Goal, ...], ...] = ()
    largest_budget_only: bool = False

    def __post_init__(self) -> None:
        if self.target is not None and not 0.5 <= self.target < 1:
            raise InvalidInputError("target", f"got {self.target}", "Pass a probability of at least 1/2, below 1")

    def decided(self, item: int, group: int, votes: Int[np.ndarray, "outputs"], n: int) -> bool:
        """Whether every output of the group is decided."""
        goal = self.goals[item][group]
        # A target that nothing reaches would decide every output before its first sample.
        hopeless = goal.target if self.largest_budget_only and goal.target < 1 else 0.5
        return bool(self.sequence.decided(votes, n, goal.level, goal.target, hopeless).all())

    def require_fit(self, groups: Sequence[int]) -> None:
        """Refuse other items and groups than there are goals for."""
        if [len(goals) for goals in self.goals] != list(groups):
            raise InvalidInputError(
                "stop", "it does not have one goal for each output group of each item", "Let certify make the goals"
            )

    def configuration(self) -> Mapping[str, object]:
        """The sequence's parameters and all goals."""
        return {
            "rule": "decided",
            "sequence": [self.sequence.a, self.sequence.b],
            "goals": [[[goal.level, goal.target] for goal in goals] for goals in self.goals],
        } | ({"largest_budget_only": True} if self.largest_budget_only else {})


def with_goals(
    plan: SamplingPlan,
    layouts: Sequence[Layout],
    noise: Noise,
    settings: Strategies,
    radius: Radius | None = None,
    outputs: Int[np.ndarray, "outputs"] | None = None,
) -> SamplingPlan:
    """Fill in what the outputs of each group have to reach; a plan without a stopping rule stays as it is.

    Parameters
    ----------
    plan
        The plan.
    layouts
        One layout per item.
    noise, settings
        What is sampled and proven.
    radius
        Below which budget an output keeps its prediction on its own; by default, the radius of a ball.
    outputs
        The outputs that share α, where these are not all.

    Raises
    ------
    InvalidInputError
        If the settings cannot be used with numbers of samples that depend on the votes, or `n_bound` is too small.
    """
    if plan.stop is None:
        return plan
    if not isinstance(plan.stop, StopWhenDecided):
        raise InvalidInputError("stop", f"{type(plan.stop).__name__} is not known here", "Pass StopWhenDecided")
    if settings.needs_scores:
        raise InvalidInputError(
            "stop",
            "there are certificates from scores, whose bounds need a number of samples that is fixed beforehand",
            "Use certificates from votes alone, or draw every sample of the plan",
        )
    if isinstance(settings.simultaneous, CandidateRule):
        raise InvalidInputError(
            "stop",
            f"{settings.simultaneous.name} fixes its levels after the candidate stage, and the goals are set before it",
            "Sample with Bonferroni (the finished run may be certified again with weights), or draw every sample",
        )
    sharing = settings.counted().sharing  # where it is chosen automatically, counts are bounded
    if isinstance(sharing, CountRule) and not getattr(sharing, "anytime", False):
        raise InvalidInputError(
            "simultaneous",
            f"{sharing.name} needs a number of samples that is fixed beforehand, and votes end sampling early",
            "Use JointCount (joint_count), or draw every sample of the plan",
        )
    strategy = sharing if isinstance(sharing, CountRule) else require_level_strategy(sharing)
    rule, made = plan.stop, dict[int, tuple[Goal, ...]]()
    for layout in layouts:
        if id(layout) not in made:
            groups = layout.outputs.labels.ravel()
            groups = groups if outputs is None else groups[outputs]
            _require_certifiable(plan, rule.sequence, strategy, settings.alpha, groups.size)
            levels = (
                np.full(layout.outputs.count, settings.alpha * _COUNTED)
                if isinstance(strategy, CountRule)
                else _levels(strategy, settings.alpha, groups, layout.outputs.count)
            )
            targets = (
                _targets(layout, noise, settings, radius)
                if rule.target is None
                else np.full(layout.outputs.count, rule.target)
            )
            pairs = zip(levels.tolist(), targets.tolist(), strict=True)
            made[id(layout)] = tuple(Goal(level, target) for level, target in pairs)
    return replace(plan, stop=replace(rule, goals=tuple(made[id(layout)] for layout in layouts)))


def _levels(
    strategy: LevelStrategy, alpha: float, groups: Int[np.ndarray, "outputs"], count: int
) -> Float[np.ndarray, " groups"]:
    """The strictest level of each group's outputs, those left aside that have given up."""
    levels = np.broadcast_to(np.asarray(strategy.levels(groups.size, alpha), dtype=np.float64), groups.shape)
    strictest = np.full(count, alpha)
    playing = levels > SMALLEST_LEVEL
    np.minimum.at(strictest, groups[playing], levels[playing])
    return strictest


def _targets(layout: Layout, noise: Noise, settings: Strategies, radius: Radius | None) -> Float[np.ndarray, " groups"]:
    """The smallest lower bound with which an output of each group withstands the largest budget in any input group."""
    groups = np.arange(layout.outputs.count)

    def tolerated(weights: np.ndarray, eta: np.ndarray) -> Float[np.ndarray, " groups"]:
        if radius is None:
            return certified_radius(weights, eta, groups, noise.norm)
        return radius(BaseCertificates(weights, eta, groups, groups), layout)

    def suffices(nines: Float[np.ndarray, " groups"]) -> Bool[np.ndarray, " groups"]:
        reach = [
            tolerated(*certificate.certificates(noise, layout.levels, 1 - 10**-nines, groups))
            for certificate in settings.certificates
            if isinstance(certificate, VoteCertificate)
        ]
        return np.max(reach, axis=0) > settings.largest_budget

    low, high = np.full(groups.size, _FEWEST_NINES), np.full(groups.size, _MOST_NINES)
    reachable = suffices(high)
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        enough = suffices(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    # Rounded, so that the run's hash does not hang on the last bit of a power.
    return np.where(reachable, np.round(1 - 10**-high, 12), 1.0)


def _require_certifiable(
    plan: SamplingPlan,
    sequence: VoteConfidenceSequence,
    strategy: LevelStrategy | CountRule,
    alpha: float,
    outputs: int,
) -> None:
    level, words = strategy.most_lenient_level(outputs, alpha), hopeless_words(plan.n_bound, alpha, outputs, 0.5)
    if not sequence.lower(np.array([plan.n_bound]), plan.n_bound, level)[0] > 0.5:
        raise InvalidInputError(
            "n_bound",
            f"{words} by a confidence sequence, so nothing could be certified",
            "Draw more of each output group (n_bound), raise alpha, or leave early stopping out",
        )
