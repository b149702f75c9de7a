"""Rules that return the exact truth through the package's own contracts: no certificate can be more aggressive.

What samples are for is left out: bounds lie at the truth, or a hair below it. What then is claimed and does not hold is
false for certain.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from localsmooth.bounds import ScoreBounds, ScoreHistogram, ScoreMoments, VoteBounds

__all__ = ["ExactScores", "Exactly"]

_BELOW_ONE = float(np.nextafter(1.0, 0.0))


class Exactly:
    """Lower bounds on probabilities that are known; `discount` of them may be wrong.

    Parameters
    ----------
    probability
        Of each output's candidate.
    discount
        Number of bounds that may be wrong, as under `KFamilywise`.
    """

    name: ClassVar[str] = "exactly"
    simultaneous: ClassVar[bool] = True

    def __init__(self, probability: np.ndarray, discount: int = 0) -> None:
        self.probability = np.clip(probability, 0.0, _BELOW_ONE)
        self._discount = discount

    @property
    def discount(self) -> int:
        return self._discount

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        return alpha

    def levels(self, n_outputs: int, alpha: float) -> float:
        return alpha / n_outputs

    def lower_bounds(self, votes: np.ndarray, n: int | np.ndarray, alpha: float) -> VoteBounds:
        assert votes.shape == self.probability.shape
        return VoteBounds(self.probability.copy(), self.discount)


class ExactScores:
    """Moments of the candidates' scores that are known.

    Parameters
    ----------
    mean, square
        Mean score, and mean squared score.
    reference
        ν: "given" for the one of the candidate stage, "mean" for the best there is, or a number.
    """

    name: ClassVar[str] = "exact-scores"
    needs_histogram: ClassVar[bool] = False

    def __init__(self, mean: np.ndarray, square: np.ndarray, reference: str | float = "given") -> None:
        self.mean, self.square, self.reference = mean, square, reference

    def bounds(
        self, tally: ScoreMoments | ScoreHistogram, level: float | np.ndarray, reference: float | np.ndarray
    ) -> ScoreBounds:
        nu = np.broadcast_to(np.asarray(reference, dtype=float), self.mean.shape)
        if self.reference == "mean":
            nu = self.mean
        elif self.reference != "given":
            nu = np.full(self.mean.shape, float(self.reference))
        zeta = np.maximum(self.square - 2 * nu * self.mean + nu**2, 0.0) + 1e-14
        return ScoreBounds(np.clip(self.mean, 0.0, 1.0), zeta, nu.copy())
