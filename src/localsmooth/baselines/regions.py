"""Exact certificates for flips of bits under one noise level: regions of constant likelihood ratio.

Source: Bojchevski et al. 2020. With a additions and d deletions, let Q count the added bits that the noise turned into
ones and the deleted bits that it turned into zeros. Q is the sum of Binomial(a, θ⁺) and Binomial(d, θ⁻), the ratio Λ of
perturbed to clean probability depends on Q alone,

    ln Λ = (Q − d)·ln(AB) + (d − a)·ln B,   A = (1−θ⁻)/θ⁺,  B = (1−θ⁺)/θ⁻,

and so a + d + 1 regions describe the worst classifier whatever the number of inputs is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.certificates import LikelihoodRatioLaw, no_flip_law, product_law
from localsmooth.errors import InvalidInputError

__all__ = ["FlipFrontier", "flip_frontier", "region_law"]

_EPSILON = float(np.finfo(np.float64).eps)


def region_law(addition: float, deletion: float, additions: int, deletions: int) -> LikelihoodRatioLaw:
    """Law of the likelihood ratio after so many additions and deletions, one atom per region.

    Parameters
    ----------
    addition, deletion
        θ⁺, probability that noise turns a 0 into a 1, and θ⁻, a 1 into a 0.
    additions, deletions
        Number of flips of each kind.

    Raises
    ------
    InvalidInputError
        If a probability is outside [0, 1] or a count is negative.
    """
    if not (0 <= addition <= 1 and 0 <= deletion <= 1):
        raise InvalidInputError("levels", f"got {addition} and {deletion}", "Pass probabilities")
    if additions < 0 or deletions < 0:
        raise InvalidInputError("flips", f"got {additions} and {deletions}", "Pass counts of 0 or more")
    count = additions + deletions
    if count == 0 or addition == 1 - deletion:
        return no_flip_law()
    if not (0 < addition < 1 and 0 < deletion < 1):
        # Regions of ratio 0 and infinity: the general code keeps account of them.
        return product_law(
            np.array([addition, 1 - deletion]), np.array([1 - deletion, addition]), np.array([additions, deletions])
        )
    mass = np.ones(1)
    for chance, times in ((addition, additions), (deletion, deletions)):
        for _ in range(times):
            mass = np.convolve(mass, [1 - chance, chance])
    logs = np.log([addition, deletion]), np.log1p([-addition, -deletion])
    ln_a, ln_b = float(logs[1][1] - logs[0][0]), float(logs[1][0] - logs[0][1])
    log_ratio = (np.arange(count + 1) - deletions) * (ln_a + ln_b) + (deletions - additions) * ln_b
    size = 2 * count * float(np.abs(logs).sum())
    order = np.argsort(log_ratio, kind="stable")
    kept = order[mass[order] > 0]
    return LikelihoodRatioLaw(log_ratio[kept], mass[kept], 0.0, 8 * count * _EPSILON, 16 * _EPSILON * size).trimmed()


@dataclass(frozen=True, eq=False)
class FlipFrontier:
    """Which numbers of flips an output tolerates, for every lower bound q on its vote.

    Parameters
    ----------
    smallest
        Entry [a, d]: outputs with q above this tolerate a additions and d deletions, and everything smaller. At least
        1/2, rises along both axes. What lies beyond the array is not tolerated, or cannot be done.
    """

    smallest: Float[np.ndarray, "additions deletions"]

    def by_size(self) -> Float[np.ndarray, "sizes"]:
        """Return what q must exceed for every mix of at most s flips that the array holds, for each s from 0."""
        size = np.add.outer(*(np.arange(length) for length in self.smallest.shape))
        worst = np.zeros(int(size[-1, -1]) + 1)
        np.maximum.at(worst, size.ravel(), self.smallest.ravel())
        return np.maximum.accumulate(worst)

    def tolerated(
        self,
        lower: Float[np.ndarray, "outputs"],
        additions: Int[np.ndarray, "additions"],
        deletions: Int[np.ndarray, "deletions"],
    ) -> Bool[np.ndarray, "additions deletions outputs"]:
        """Whether each output tolerates every mix within pairs of budgets.

        Beyond the array the last row or column counts: either there are no more bits to flip, or nothing is tolerated.

        Parameters
        ----------
        lower
            Lower bound q on each output's vote; NaN tolerates nothing.
        additions, deletions
            Budgets, in flips.
        """
        at = [np.minimum(b, size - 1) for b, size in zip((additions, deletions), self.smallest.shape, strict=True)]
        return np.asarray(lower > self.smallest[np.ix_(*at)][..., None])

    def corners(self, q: float) -> Int[np.ndarray, "corners 2"]:
        """Smallest numbers of flips (a, d) that are not tolerated: an output falls only at one of them or above."""
        lost = self.smallest >= q
        found: list[tuple[int, int]] = []
        fewest = lost.shape[1]
        for a, row in enumerate(lost):
            d = int(np.argmax(row)) if bool(row.any()) else lost.shape[1]
            if d < fewest:
                found.append((a, d))
                fewest = d
        return np.array(found, dtype=np.int64).reshape(-1, 2)


def flip_frontier(
    addition: float, deletion: float, highest: float, most_additions: int, most_deletions: int, horizon: int = 512
) -> FlipFrontier:
    """Explore the numbers of flips that outputs with lower bounds of up to `highest` tolerate.

    Parameters
    ----------
    addition, deletion
        θ⁺ and θ⁻.
    highest
        Largest lower bound of interest.
    most_additions, most_deletions
        Largest numbers of flips that can be made at all.
    horizon
        Largest number of flips per kind that is looked at; no more are certified.
    """
    shape = (min(most_additions, horizon) + 1, min(most_deletions, horizon) + 1)
    # One more row and column where the horizon ends the search, not the threat: nothing is promised there.
    full = (shape[0] + (most_additions > horizon), shape[1] + (most_deletions > horizon))
    smallest = np.full(full, np.inf)
    stop = shape[1]
    for a in range(shape[0]):
        for d in range(stop):
            value = region_law(addition, deletion, a, d).smallest_robust_probability()
            # A majority is needed even where nothing is flipped. More flips tell more; rounding may not say otherwise.
            before = max(smallest[a - 1, d] if a else 0.5, smallest[a, d - 1] if d else 0.5)
            smallest[a, d] = max(value, before)
            if smallest[a, d] >= highest:
                stop = d
                break
        if stop == 0:
            break
    return FlipFrontier(smallest)
