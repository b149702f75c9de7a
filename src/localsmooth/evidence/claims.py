"""Confidence bounds and base certificates of one item, each checked in exact arithmetic as it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

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
from localsmooth.certificates import CertifiedOutputs, GaussianVotes, UniformVotes
from localsmooth.evidence.exact import (
    Ballot,
    CountClaim,
    Kind,
    count_claim_fails,
    gaussian_threshold_holds,
    radius_holds,
    refuted_alone,
    tail_is_at_most,
    uniform_threshold_holds,
    weight_covers,
)
from localsmooth.evidence.ledger import demand
from localsmooth.noise import Gaussian, Noise, Uniform
from localsmooth.tasks import Alike
from localsmooth.tasks.arrays import SampledItem, Settings, bounded_outputs

__all__ = ["Claims", "unchecked_claims"]

_BOUNDS, _BASE = "confidence bounds", "base certificates"
_BY_LEVELS = (Bonferroni, KFamilywise, WeightedBonferroni, CandidateWeights)
_Threshold = Callable[[float, float], bool]
_CHECKED: Mapping[type[Any], tuple[type[Noise], int, _Threshold]] = {
    GaussianVotes: (Gaussian, 2, gaussian_threshold_holds),
    UniformVotes: (Uniform, 1, uniform_threshold_holds),
}
"""Base certificates: their noise, the power of the level that is the weight, and the check of a threshold."""


def unchecked_claims(item: SampledItem, noise: Noise, settings: Settings) -> str:
    """Say what of an item's bounds and base certificates no exact check knows; empty if all is known."""
    rule = settings.sharing
    if not isinstance(rule, (JointCount, JointAndBonferroni, *_BY_LEVELS)):
        return f"bounds by {getattr(rule, 'name', type(rule).__name__)}"
    if item.votes.sequence is not None and not isinstance(rule, JointCount):
        return "bounds by the confidence sequence of early stopping"
    made = [type(certificate) for certificate in settings.certificates]
    if len(made) != 1 or made[0] not in _CHECKED or type(noise) is not _CHECKED[made[0]][0]:
        return f"certificates by {', '.join(each.name for each in settings.certificates)}"
    return ""


@dataclass(eq=False)
class Claims:
    """Makes the certificates of one item in the usual way, and checks every number that goes into a count.

    Parameters
    ----------
    item
        The item.
    noise
        The noise.
    alpha
        Probability with which the item's certificate may fail.
    """

    item: SampledItem
    noise: Noise
    alpha: float
    bounds: int = 0
    thresholds: int = 0
    _events: dict[tuple[object, ...], Fraction] = field(default_factory=dict[tuple[object, ...], Fraction])
    _ballots: dict[bool, Ballot] = field(default_factory=dict[bool, Ballot])
    _tails: dict[tuple[int, int, float, float], bool] = field(default_factory=dict[tuple[int, int, float, float], bool])
    _thresholds: dict[tuple[float, float], bool] = field(default_factory=dict[tuple[float, float], bool])

    def certify(self, way: Settings, outputs: Alike) -> CertifiedOutputs:
        """Make certificates by one way to share α, and check them.

        Raises
        ------
        DoesNotHoldError
            At the first bound, weight or threshold that is not confirmed.
        """
        made = bounded_outputs(self.item, self.noise, way, outputs)
        rule = way.sharing
        if isinstance(rule, CountRule):
            self._check_counts(rule, way.alpha, outputs, made)
        else:
            self._check_levels(rule, way.alpha, made)
        self._check_base(way, made)
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

    # Bounds

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
        ignored = np.zeros(stratum.shape, np.bool_) if self.item.ignored is None else self.item.ignored.ravel()
        group = self.item.layout.outputs.labels.ravel()
        kinds = np.stack([group.astype(np.float64), outputs.kind.astype(np.float64)])
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

    # Base certificates

    def _check_base(self, way: Settings, made: CertifiedOutputs) -> None:
        _, power, holds = _CHECKED[type(way.certificates[0])]
        levels, base = self.item.layout.levels, made.base
        fits = base.weights.shape == levels.shape and np.array_equal(
            base.group, self.item.layout.outputs.labels.ravel()
        )
        demand(fits and base.eta.shape == made.lower.shape, _BASE, f"{self.item.name}: weights do not fit the layout")
        with np.errstate(over="ignore"):
            single = levels.astype(np.float32).astype(np.float64)  # what the sampler may make of a level
        if isinstance(self.noise, Gaussian | Uniform) and self.noise.step is not None:
            single = levels  # tables on a grid are made for the level as it is
        pairs = np.stack([np.tile(base.weights.ravel(), 2), np.concatenate([levels.ravel(), single.ravel()])])
        for weight, level in np.unique(pairs, axis=1).T.tolist():
            problem = f"{self.item.name}: the weight {weight!r} is too small for the noise level {level!r}"
            demand(weight_covers(weight, level, power), _BASE, problem)
        for each in (made, made.alone):
            if each is not None:
                self._check_thresholds(each, holds)
                self.thresholds += each.base.eta.size

    def _check_thresholds(self, made: CertifiedOutputs, holds: _Threshold) -> None:
        for bound, eta in np.unique(np.stack([made.lower, made.base.eta]), axis=1).T.tolist():
            if (bound, eta) not in self._thresholds:
                self._thresholds[bound, eta] = holds(bound, eta)
            problem = f"{self.item.name}: the threshold {eta!r} does not follow from the probability {bound!r}"
            demand(self._thresholds[bound, eta], _BASE, problem)

    def check_radii(self, made: CertifiedOutputs, radius: Float[np.ndarray, "outputs"]) -> None:
        """Check radii of single outputs.

        Raises
        ------
        DoesNotHoldError
            At the first one that is too large.
        """
        base = made.shown.base
        heaviest = base.weights.max(axis=1)[base.group]
        power = 2 if isinstance(self.noise, Gaussian) else 1
        for size, weight, eta in np.unique(np.stack([radius, heaviest, base.eta]), axis=1).T.tolist():
            problem = f"{self.item.name}: a radius of {size!r} does not follow from a threshold of {eta!r}"
            demand(radius_holds(size, weight, eta, power), _BASE, problem)


def _refines(stratum: Int[np.ndarray, "outputs"], number: Int[np.ndarray, "outputs"]) -> bool:
    """Whether outputs of one stratum all have one number."""
    taking = stratum >= 0
    pairs = np.unique(np.stack([stratum[taking], number[taking]]), axis=1)
    return np.unique(pairs[0]).size == pairs.shape[1]
