"""Every input, every outcome and the worst classifiers of a tiny binary input space, by plain enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

HALF = 0.5 - 1e-9
"""Just no majority: a classifier brought down to this must not be certified."""

Promise = Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Maps (clean input, scores [outputs × outcomes]) to (W [certificates × columns], η [certificates × outputs])."""


class BinarySpace:
    """All of {0, 1}^d, with input groups and flip probabilities per element.

    Parameters
    ----------
    groups
        Input group of each element.
    addition, deletion
        Probability that noise turns a 0 of each group into a 1, and a 1 into a 0.
    kinds
        1 to count flips per group, 2 to count additions, then deletions.
    """

    def __init__(self, groups: list[int], addition: list[float], deletion: list[float], kinds: int) -> None:
        self.points = np.array(list(itertools.product((0, 1), repeat=len(groups))))
        g, n = np.array(groups), max(groups) + 1
        flip = np.where(self.points == 1, np.array(deletion)[g], np.array(addition)[g])
        different = self.points[:, None, :] != self.points[None, :, :]
        self.law = np.where(different, flip[:, None, :], 1 - flip[:, None, :]).prod(axis=-1)
        """law[x, z], probability of outcome z around input x."""
        in_group = np.eye(n, dtype=int)[g]
        added = ((self.points[:, None] < self.points[None]).astype(int)) @ in_group
        deleted = ((self.points[:, None] > self.points[None]).astype(int)) @ in_group
        self.flips = added + deleted if kinds == 1 else np.concatenate([added, deleted], axis=-1)
        """flips[x, x'], number of flips per column that lead from x to x'."""
        self._worst: dict[int, np.ndarray] = {}

    def random_scores(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Base classifiers at random: 0/1 and fractional, mostly in favour of the candidate."""
        noise = rng.random((n, len(self.points)))
        bias = rng.random((n, 1)) ** 0.3
        return np.where(rng.random((n, 1)) < 0.5, noise < bias, np.clip(noise + bias - 0.3, 0, 1)).astype(float)

    def _ratio(self, clean: int, perturbed: int) -> np.ndarray:
        p, q = self.law[clean], self.law[perturbed]
        return np.where(p > 0, q / np.where(p > 0, p, 1), np.inf)

    def worst_votes(self, clean: int, perturbed: int) -> np.ndarray:
        """The classifier of largest clean probability that x' brings down to just below 1/2 (Neyman–Pearson)."""
        order = np.argsort(self._ratio(clean, perturbed), kind="stable")
        target = self.law[perturbed][order]
        before = np.cumsum(target) - target
        scores = np.zeros(len(self.points))
        share = np.clip((HALF - before) / np.where(target > 0, target, 1), 0, 1)
        scores[order] = np.where(target > 0, share, 1.0)
        return scores

    def worst_scores(self, clean: int, perturbed: int, slope: float) -> np.ndarray:
        """A score that falls linearly in the likelihood ratio, its mean at x' just below 1/2."""
        ratio = np.minimum(self._ratio(clean, perturbed), 1e6)
        low, high = -1e7, 1e7
        for _ in range(70):
            middle = (low + high) / 2
            mean = self.law[perturbed] @ np.clip(middle - slope * ratio, 0, 1)
            low, high = (middle, high) if mean < HALF else (low, middle)
        return np.clip(low - slope * ratio, 0, 1)

    def broken_promises(self, promise: Promise, scores: np.ndarray, clean: int) -> int:
        """Number of (output, x') pairs that are promised robust although the mean score is not above 1/2."""
        weights, eta = promise(clean, scores)
        cost = weights @ self.flips[clean].T  # certificates × perturbed
        promised = (cost[:, None, :] < eta[:, :, None]).any(axis=0)
        return int((promised & (scores @ self.law.T <= 0.5 - 1e-12)).sum())

    def worst(self, clean: int) -> np.ndarray:
        """The classifiers that lose their majority at some other input and are otherwise as strong as they can be."""
        if clean not in self._worst:
            others = [x for x in range(len(self.points)) if x != clean]
            rows = [self.worst_votes(clean, x) for x in others]
            rows += [self.worst_scores(clean, x, slope) for x in others for slope in (0.003, 0.03, 0.1, 0.3, 1.0)]
            self._worst[clean] = np.array([*rows, np.ones(len(self.points))])
        return self._worst[clean]

    def hunt(
        self, promise: Promise, rng: np.random.Generator, n: int = 60, clean: Sequence[int] = (0, 5, 7, 15)
    ) -> int:
        """Broken promises over some clean inputs and *all* perturbed ones, for random classifiers and the worst."""
        found = 0
        for x in clean:
            scores = np.concatenate([self.random_scores(rng, n), self.worst(x)])
            found += self.broken_promises(promise, scores, x)
        return found
