"""The rule for many outputs that is used where none is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Integer

from localsmooth.bounds.beta_mixture import candidate_prior
from localsmooth.bounds.joint_count import JointCount
from localsmooth.bounds.simultaneous import Bonferroni, VoteBounds
from localsmooth.bounds.weighting import EVEN_BUDGETS, CandidateVotes

__all__ = ["Automatic"]

# So many outputs gain by the joint count whatever their votes.
_MANY = 20_000
# A joint count that is expected to promise this much less is kept: joined by the collective problem it promises more
# than output by output, which is what is compared here, and it holds after more samples, too.
_TOLERATED = 0.01


@dataclass(frozen=True)
class Automatic:
    """`JointCount`, or `Bonferroni` where the candidate stage says that it promises more.

    Many outputs gain by the joint count; few outputs, of which some have many errors, may lose. The votes that are
    bounded are foretold from the candidate stage, independent of them, and bounded by either rule. So the choice is
    fixed before these votes are looked at, item by item, and the promise is that of the rule that was chosen.
    """

    name: ClassVar[str] = "automatic"
    simultaneous: ClassVar[bool] = True
    # Items that go by Bonferroni's rule are refused one by one.
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
    ) -> JointCount | Bonferroni:
        """Choose one of the two for an item.

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
        """
        if candidates is None or group.size == 0:
            return Bonferroni()
        if group.size >= _MANY:
            return JointCount()
        prior, kind = candidate_prior(candidates)
        foretold = n_bound - prior.draw_errors(kind, n_bound, np.random.default_rng(0))
        # The better of what is shared and what is apart stands at each budget.
        joint = [
            rule.count_bounds(foretold, n_bound, alpha, group, candidates)
            for rule in (JointCount(), JointCount(spare=0))
        ]
        promised = np.max([_promised(each, group >= 0) for each in joint], axis=0).mean()
        single = _promised(Bonferroni().lower_bounds(foretold, n_bound, alpha), group >= 0).mean()
        return JointCount() if promised >= (1 - _TOLERATED) * single else Bonferroni()


def _promised(bounds: VoteBounds, counts: Bool[np.ndarray, " outputs"]) -> Integer[np.ndarray, " asked"]:
    """Certified outputs, for all that may be asked of them."""
    lower = np.sort(bounds.lower[counts])
    return np.maximum(lower.size - np.searchsorted(lower, EVEN_BUDGETS, "right") - bounds.discount, 0)
