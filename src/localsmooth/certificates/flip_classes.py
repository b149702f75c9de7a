"""Columns whose flips tell the adversary equally much, or nearly so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from localsmooth.noise import second_order_divergence

__all__ = ["FlipClasses", "flip_classes"]


class FlipClasses(NamedTuple):
    """Columns gathered into few classes, each with a bit law at least as telling as its columns' own."""

    clean: Float[np.ndarray, "classes"]
    """Probability of a one without a flip, below `perturbed`."""

    perturbed: Float[np.ndarray, "classes"]
    """Probability of a one after a flip."""

    member: Int[np.ndarray, "columns"]
    """Class of each column, −1 where flips cannot matter."""

    def smallest(self, values: Float[np.ndarray, "columns"]) -> Float[np.ndarray, "classes"]:
        """Smallest value of a column in each class."""
        found = np.full(self.clean.size, np.inf)
        telling = self.member >= 0
        np.minimum.at(found, self.member[telling], values[telling])
        return found

    def largest(self, values: Float[np.ndarray, "columns"]) -> Float[np.ndarray, "classes"]:
        """Largest value of a column in each class."""
        return -self.smallest(-values)


def flip_classes(
    clean: Float[np.ndarray, "columns"], perturbed: Float[np.ndarray, "columns"], most: int
) -> FlipClasses:
    """Gather columns of equal laws, then merge the most similar classes until there are at most `most`.

    Which value of a bit is called one does not matter, so laws are turned until a flip makes ones likelier. A pair of
    laws (c, p), c < p, can be degraded at random into any (c', p') with c ≤ c' ≤ p' ≤ p. A class under the smallest c
    and the largest p of its columns is therefore pessimistic for each of them, and for all of them together.

    Parameters
    ----------
    clean, perturbed
        Laws of a bit in each column.
    most
        Largest number of classes.
    """
    turned = perturbed < clean
    low = np.where(turned, 1 - clean, clean)
    high = np.where(turned, 1 - perturbed, perturbed)
    laws, member = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    telling = laws[:, 1] > laws[:, 0]
    renumbered = np.where(telling, np.cumsum(telling) - 1, -1)
    laws, member = laws[telling], renumbered[member.ravel()]
    while len(laws) > max(most, 1):
        first, second, merged = _closest(laws)
        laws[first] = merged
        laws = np.delete(laws, second, axis=0)
        member = np.where(member == second, first, member - (member > second))
    return FlipClasses(laws[:, 0], laws[:, 1], member.astype(np.int64))


def _closest(laws: Float[np.ndarray, "classes 2"]) -> tuple[int, int, Float[np.ndarray, "2"]]:
    """Find the pair whose merger tells least more than the less telling of the two."""
    first, second = np.triu_indices(len(laws), k=1)
    merged = np.stack(
        [np.minimum(laws[first, 0], laws[second, 0]), np.maximum(laws[first, 1], laws[second, 1])], axis=1
    )
    own = second_order_divergence(laws[:, 0], laws[:, 1])
    weaker = np.minimum(own[first], own[second])
    joint = second_order_divergence(merged[:, 0], merged[:, 1])
    with np.errstate(invalid="ignore"):
        growth = np.where(np.isinf(weaker), 1.0, joint / weaker)
    best = int(np.argmin(growth))
    return int(first[best]), int(second[best]), merged[best]
