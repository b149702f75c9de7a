"""What was claimed, what is true, and how often the two were compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from localsmooth.results import ACCURACY, RATIO

__all__ = ["Ledger", "Truth"]


@dataclass(frozen=True, eq=False)
class Truth:
    """What the smoothed classifiers of one item do at every input that the harness looks at; the first is the item.

    Parameters
    ----------
    votes, scores
        Probability of each class under each output's noise, and its mean score: points × outputs × classes.
    size
        Norm of the perturbation that leads to each point (a number of flips for bits).
    tolerance
        By how much a class has to be beaten to count as lost: 0 where all numbers are exact, and then ties are lost.
    """

    votes: np.ndarray
    scores: np.ndarray
    size: np.ndarray
    tolerance: float

    def kept(self, prediction: np.ndarray, by_scores: np.ndarray) -> np.ndarray:
        """Whether the classifier that an output relies on still has the predicted class: points × outputs."""
        law = np.where(by_scores[:, None], self.scores, self.votes)
        index = np.maximum(prediction, 0)[None, :, None]
        own = np.take_along_axis(law, index, 2)[..., 0]
        others = law.copy()
        np.put_along_axis(others, np.broadcast_to(index, (*own.shape, 1)), -1.0, 2)
        return own > others.max(axis=2) - self.tolerance


@dataclass
class Ledger:
    """Counts claims, comparisons and what was found false."""

    claims: int = 0
    comparisons: int = 0
    promised: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])

    def claim(self, what: str, claimed: float, true: float, points: int, *keys: str) -> None:
        """Compare a claimed count to the smallest true one among some points."""
        self.claims += 1
        self.comparisons += points
        if claimed > true:
            self.failures.append(f"{what}: {claimed} claimed, {true} true")
        if claimed > 0:
            self.promised.update(keys)

    def check(
        self,
        what: str,
        result: xr.Dataset,
        truth: Truth,
        allowed: Sequence[np.ndarray],
        *keys: str,
        wrong: Sequence[int] = (),
        alone: np.ndarray | None = None,
    ) -> None:
        """Compare all that a result with one item says to the truth.

        Parameters
        ----------
        what, keys
            What failures are called, and what has promised something if a count beyond the smallest budget is not 0.
        result
            As the package returned it.
        truth
            At all points.
        allowed
            For each budget, the points that the threat allows.
        wrong
            Outputs whose own bound is wrong, which the rule for many outputs has to make up for.
        alone
            Points that radii of single outputs speak of; all by default.
        """
        prediction = result["prediction"].values[0].ravel().astype(np.int64)
        relies_on = result["relies_on"].values[0].ravel()
        counted = prediction >= 0
        if "ignored" in result:
            counted &= ~result["ignored"].values[0].ravel().astype(bool)
        assert ((relies_on >= 0) == (prediction >= 0)).all(), what
        kept = truth.kept(prediction, relies_on == 1)
        targets = {RATIO: counted}
        if ACCURACY in result["target"].values:
            targets[ACCURACY] = counted & (prediction == result["label"].values[0].ravel())
        for target, mask in targets.items():
            alive = (kept & mask).sum(axis=1)
            for bound in result["bound"].values.tolist():
                claimed = result["certified"].sel(target=target, bound=bound).values[0]
                for place, points in enumerate(allowed):
                    self.claim(
                        f"{what} {bound} {target} at budget {result['budget'].values[place]}",
                        int(claimed[place]),
                        int(alive[points].min()),
                        int(points.sum()),
                        *((*keys, f"bound {bound}") if place else ()),
                    )
        radius = result["radius"].values[0].ravel()
        inside = np.ones(len(truth.size), bool) if alone is None else alone
        for output in np.flatnonzero(prediction >= 0).tolist():
            if output in wrong:
                continue
            reached = inside & ((truth.size < radius[output]) | (np.arange(len(truth.size)) == 0))
            self.claim(
                f"{what} radius of output {output}, {radius[output]}",
                1,
                int(kept[reached, output].min()),
                reached.sum(),
            )

    def settle(self) -> None:
        """Print the totals; fail if anything claimed was false."""
        print(f"\n{self.claims} claims, {self.comparisons} comparisons, {len(self.failures)} false")
        assert not self.failures, "\n".join(self.failures[:20])
