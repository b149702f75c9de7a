"""Confidence bounds of one item, each checked in exact arithmetic as it is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.bounds import (
    Bonferroni,
    CandidateWeights,
    CountRule,
    JointAndBonferroni,
    JointCount,
    KFamilywise,
    LevelStrategy,
    Sharing,
    WeightedBonferroni,
    broad_mixture,
    candidate_prior,
)
from localsmooth.certificates import CertifiedOutputs
from localsmooth.evidence.base import BaseClaims
from localsmooth.evidence.exact import (
    Ballot,
    CountClaim,
    Kind,
    count_claim_fails,
    refuted_alone,
    tail_is_at_most,
)
from localsmooth.evidence.item import Outputs
from localsmooth.evidence.ledger import demand
from localsmooth.tasks import Alike, Strategies

__all__ = ["Claims", "unchecked_bounds"]

_BOUNDS = "confidence bounds"
_BY_LEVELS = (Bonferroni, KFamilywise, WeightedBonferroni, CandidateWeights)


def unchecked_bounds(outputs: Outputs, rule: Sharing) -> str:
    """Say what of an item's confidence bounds no exact check knows; empty if all is known."""
    if not isinstance(rule, (JointCount, JointAndBonferroni, *_BY_LEVELS)):
        return f"bounds by {getattr(rule, 'name', type(rule).__name__)}"
    if outputs.votes.sequence is not None and not isinstance(rule, JointCount):
        return "bounds by the confidence sequence of early stopping"
    return ""


@dataclass(eq=False)
class Claims:
    """Makes the certificates of one item in the usual way, and checks every number that goes into a count.

    Parameters
    ----------
    item
        Its outputs.
    make
        Makes their certificates by one way to share α.
    base
        Checks weights and thresholds.
    alpha
        Probability with which the item's certificate may fail.
    """

    item: Outputs
    make: Callable[[Strategies, Alike], CertifiedOutputs]
    base: BaseClaims
    alpha: float
    bounds: int = 0
    _events: dict[tuple[object, ...], Fraction] = field(default_factory=dict[tuple[object, ...], Fraction])
    _ballots: dict[bool, Ballot] = field(default_factory=dict[bool, Ballot])
    _tails: dict[tuple[int, int, float, float], bool] = field(default_factory=dict[tuple[int, int, float, float], bool])

    def certify(self, way: Strategies, outputs: Alike) -> CertifiedOutputs:
        """Make certificates by one way to share α, and check them.

        Raises
        ------
        DoesNotHoldError
            At the first bound, weight or threshold that is not confirmed.
        """
        made = self.make(way, outputs)
        rule = way.sharing
        if isinstance(rule, CountRule):
            self._check_counts(rule, way.alpha, outputs, made)
        else:
            self._check_levels(rule, way.alpha, made)
        self.base.check(made)
        return made

    def finish(self) -> None:
        """Show that all events together have a probability of at most α.

        Raises
        ------
        DoesNotHoldError
            If they have more.
        """
        spent = sum(self._events.values(), Fraction(0))
        problem = f"{self.item.name}: its bounds may fail with probability {float(spent)}, and α is {self.alpha}"
        demand(spent <= Fraction(self.alpha), _BOUNDS, problem)

    def _check_levels(self, rule: Sharing, alpha: float, made: CertifiedOutputs) -> None:
        votes = self.item.votes
        assert not isinstance(rule, CountRule)
        strategy = votes.rule(rule, alpha)
        assert isinstance(strategy, LevelStrategy)
        outputs = votes.votes.size
        levels = np.broadcast_to(np.asarray(strategy.levels(outputs, alpha), np.float64), (outputs,))
        level, times = np.unique(levels, return_counts=True)
        pairs = zip(level.tolist(), times.tolist(), strict=True)
        spent = sum((Fraction(one) * many for one, many in pairs), Fraction(0))
        given = made.base.discount + 1
        # Fewer than k of the bounds fail with probability 1 − Σ levels / k (Markov's inequality).
        self._spend(("levels", strategy.name, given), spent / given, alpha)
        self._check_tails(levels, made.lower)

    def _check_tails(self, levels: Float[np.ndarray, "outputs"], lower: Float[np.ndarray, "outputs"]) -> None:
        failing = np.flatnonzero(~self._tail_holds(levels, lower))
        if failing.size:
            one = int(failing[0])
            votes, n = int(self.item.votes.votes[one]), int(np.broadcast_to(self.item.votes.n, lower.shape)[one])
            demand(
                False,
                _BOUNDS,
                f"{self.item.name}, output {one}: {votes} of {n} votes do not bound the probability by {lower[one]!r} "
                f"at level {float(levels[one])!r}",
            )
        self.bounds += lower.size

    def _tail_holds(
        self, levels: Float[np.ndarray, "outputs"], lower: Float[np.ndarray, "outputs"]
    ) -> Bool[np.ndarray, "outputs"]:
        """Whether Pr[X ≥ votes] ≤ level at each bound, for each distinct case once."""
        votes = self.item.votes.votes.astype(np.float64)
        columns = np.stack([votes, np.broadcast_to(self.item.votes.n, votes.shape).astype(np.float64), levels, lower])
        cases, case = np.unique(columns, axis=1, return_inverse=True)
        shown = np.ones(cases.shape[1], np.bool_)
        for place, (k, n, level, bound) in enumerate(cases.T.tolist()):
            key = (int(k), int(n), level, bound)
            if key not in self._tails:
                self._tails[key] = bound == 0.0 or tail_is_at_most(key[0], key[1], bound, level)
            shown[place] = self._tails[key]
        return shown[case.reshape(-1)]

    def _check_counts(self, rule: CountRule, alpha: float, outputs: Alike, made: CertifiedOutputs) -> None:
        part, single = alpha, 0.0
        fit = rule.fit if isinstance(rule, JointCount) else True
        if isinstance(rule, JointAndBonferroni):
            part = single = alpha * rule.share
        stratum = made.base.stratum
        demand(stratum is not None, _BOUNDS, f"{self.item.name}: bounds of counts come without strata")
        assert stratum is not None
        ignored = np.zeros(stratum.shape, np.bool_) if self.item.ignored is None else self.item.ignored
        kinds = np.stack([self.item.group.astype(np.float64), outputs.kind.astype(np.float64)])
        numbers = np.unique(kinds, axis=1, return_inverse=True)[1].reshape(-1)
        demand(
            np.array_equal(stratum < 0, ignored) and _refines(stratum, numbers),
            _BOUNDS,
            f"{self.item.name}: strata are not made of outputs of one group that are counted alike",
        )
        ballot = self._ballot(fit)
        given = float(made.base.discount) or made.base.spare
        claim = CountClaim(ballot, stratum, made.lower, part, given, outputs.worth)
        problem = count_claim_fails(claim)
        demand(not problem, _BOUNDS, f"{self.item.name}: {problem}")
        self.bounds += made.lower.size
        # One event for all strata and targets, since the outputs that take part and their priors are the same.
        self._spend(("counts", fit, int((stratum >= 0).sum())), Fraction(part), alpha)
        if made.alone is not None:
            shown = refuted_alone(ballot, made.alone.lower, part)
            if single:
                levels = np.full(shown.shape, math.nextafter(single / shown.size, 0.0))
                shown |= self._tail_holds(levels, made.alone.lower)
            demand(bool(shown.all()), _BOUNDS, f"{self.item.name}: the bound of an output by itself does not hold")

    def _ballot(self, fit: bool) -> Ballot:
        """The votes with their priors, which follow the candidate stage alone."""
        if fit not in self._ballots:
            votes = self.item.votes
            shape, first = votes.votes.shape, votes.candidate_votes
            if fit and first is not None:
                prior, kind = candidate_prior(first)
            else:
                prior, kind = broad_mixture(), np.zeros(shape, np.int64)
            kinds = [Kind(never, tuple(betas)) for never, betas in map(prior.components, range(len(prior.log_weights)))]
            n = np.broadcast_to(np.asarray(votes.n, np.int64), shape)
            self._ballots[fit] = Ballot(n - votes.votes.astype(np.int64), n, kind.astype(np.int64), kinds)
        return self._ballots[fit]

    def _spend(self, event: tuple[object, ...], probability: Fraction, alpha: float) -> None:
        """Take down an event, and with which probability it may fail; the same one is paid for once."""
        demand(probability <= Fraction(alpha), _BOUNDS, f"{self.item.name}: the levels sum to more than {alpha}")
        self._events[event] = max(probability, self._events.get(event, Fraction(0)))


def _refines(stratum: Int[np.ndarray, "outputs"], number: Int[np.ndarray, "outputs"]) -> bool:
    """Whether outputs of one stratum all have one number."""
    taking = stratum >= 0
    pairs = np.unique(np.stack([stratum[taking], number[taking]]), axis=1)
    return np.unique(pairs[0]).size == pairs.shape[1]
