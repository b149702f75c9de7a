"""The rule for many outputs that is used where none is named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Integer

from localsmooth.bounds.beta_mixture import candidate_prior
from localsmooth.bounds.joint_count import JointCount
from localsmooth.bounds.simultaneous import Bonferroni, VoteBounds
from localsmooth.bounds.votes import Count
from localsmooth.bounds.weighting import EVEN_BUDGETS, CandidateVotes
from localsmooth.errors import InvalidInputError

__all__ = ["Automatic", "JointAndBonferroni"]

# For so many outputs half of α costs hardly anything.
_MANY = 20_000
_TOLERATED = 0.005


@dataclass(frozen=True)
class JointAndBonferroni:
    """Half of α for the joint count, half for Bonferroni's rule: all that either of them certifies holds.

    Both events together have probability 1 − α, so that the better count may stand for every target and budget. Where
    outputs are many, half of α costs either of them little. After more samples what the joint count promises at α/2
    still holds, but not the other half.
    """

    name: ClassVar[str] = "joint_and_bonferroni"
    simultaneous: ClassVar[bool] = True
    anytime: ClassVar[bool] = False
    share: ClassVar[float] = 0.5

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Return α/2, as for the joint count."""
        return JointCount().most_lenient_level(n_outputs, alpha * self.share)

    def count_bounds(
        self,
        votes: Integer[np.ndarray, " outputs"],
        n: Count,
        alpha: float,
        stratum: Integer[np.ndarray, " outputs"],
        candidates: CandidateVotes | None = None,
        worth: Float[np.ndarray, " outputs"] | None = None,
    ) -> VoteBounds:
        """Bound counts by the joint count at α/2; each output alone by the better of both.

        Parameters
        ----------
        votes, alpha, stratum, candidates, worth
            As for `JointCount.count_bounds`.
        n
            Number of votes, fixed beforehand.

        Raises
        ------
        InvalidInputError
            If there is a number for each output, or the votes cannot be bounded.
        """
        if not isinstance(n, int | np.integer):
            raise InvalidInputError("n", "there is one for each output", "Use JointCount, which allows for that")
        part = alpha * self.share
        made = JointCount().count_bounds(votes, n, part, stratum, candidates, worth)
        single = Bonferroni().lower_bounds(votes, int(n), part).lower
        return replace(made, alone=np.maximum(made.shown, single))


@dataclass(frozen=True)
class Automatic:
    """`JointAndBonferroni`, or `Bonferroni` alone where the candidate stage says that it promises more.

    Many outputs gain by the joint count; which targets and budgets do not is seen from the votes themselves, at the
    price of half of α. Few outputs may lose by that price. The votes that are bounded are foretold from the candidate
    stage, independent of them, and bounded both ways. So the choice is fixed before these votes are looked at, item by
    item, whatever the targets and budgets are, and the promise is that of the rule that was chosen. Baselines, which
    use one set of bounds, choose between `JointCount` and `Bonferroni`.
    """

    name: ClassVar[str] = "automatic"
    simultaneous: ClassVar[bool] = True
    # Items that go by Bonferroni's rule are refused one by one; of the others the joint count's half is left.
    anytime: ClassVar[bool] = True

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Return α, as for the joint count."""
        return JointCount().most_lenient_level(n_outputs, alpha)

    def choose(
        self,
        candidates: CandidateVotes | None,
        n_bound: int,
        alpha: float,
        group: Integer[np.ndarray, " outputs"],
        *,
        divide: bool = True,
    ) -> JointAndBonferroni | JointCount | Bonferroni:
        """Choose a rule for an item.

        Parameters
        ----------
        candidates
            What the candidate stage saw; None where it was not kept, which makes it Bonferroni's rule.
        n_bound
            Samples that will bound the probabilities (N₂).
        alpha
            Probability with which the promise may fail.
        group
            Output group of each output; negative for outputs that never count.
        divide
            Whether two sets of bounds can be used.
        """
        if candidates is None or group.size == 0:
            return Bonferroni()
        rule = JointAndBonferroni() if divide else JointCount()
        if group.size >= _MANY:
            return rule
        prior, kind = candidate_prior(candidates)
        foretold = n_bound - prior.draw_errors(kind, n_bound, np.random.default_rng(0))
        # The better of what is shared, apart and bounded one by one stands at each budget.
        part = alpha * JointAndBonferroni.share if divide else alpha
        ways = [
            way.count_bounds(foretold, n_bound, part, group, candidates) for way in (JointCount(), JointCount(spare=0))
        ]
        if divide:
            ways.append(Bonferroni().lower_bounds(foretold, n_bound, part))
        promised = np.max([_promised(each, group >= 0) for each in ways], axis=0).mean()
        single = _promised(Bonferroni().lower_bounds(foretold, n_bound, alpha), group >= 0).mean()
        return rule if promised >= (1 - _TOLERATED) * single else Bonferroni()


def _promised(bounds: VoteBounds, counts: Bool[np.ndarray, " outputs"]) -> Integer[np.ndarray, " asked"]:
    """Certified outputs, for all that may be asked of them."""
    lower = np.sort(bounds.lower[counts])
    return np.maximum(lower.size - np.searchsorted(lower, EVEN_BUDGETS, "right") - bounds.discount, 0)
