"""What outputs are worth to a target: values of at least 0, their total, and which outputs are worth the same.

Values are fixed by labels, clean predictions and the user alone, and which outputs qualify by the candidate stage
besides; none depends on the samples that are bounded. So a certified sum of values is as sound as a count
(MATH section 11).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from localsmooth.certificates import ABSTAIN
from localsmooth.results import Stake

__all__ = ["Alike", "Predicted", "Stakes", "alike", "kinds_of", "rounded_up"]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Outputs of one item, flat, as targets look at them.

    Parameters
    ----------
    prediction
        Predicted class of each output, or `ABSTAIN`.
    label
        Known classes; None where there are none.
    clean
        Predictions of the base classifier without noise; None where it was not asked.
    ignored
        Outputs that do not count; None if all count.
    class_names
        Name of each class.
    shape
        Shape that the outputs have in their item; None where that is not known.
    """

    prediction: Int[np.ndarray, "outputs"]
    label: Int[np.ndarray, "outputs"] | None
    clean: Int[np.ndarray, "outputs"] | None
    ignored: Bool[np.ndarray, "outputs"] | None
    class_names: Sequence[str]
    shape: tuple[int, ...] | None = None

    @property
    def counted(self) -> Bool[np.ndarray, "outputs"]:
        """Outputs that are not ignored."""
        return np.ones(self.prediction.size, np.bool_) if self.ignored is None else ~self.ignored

    @property
    def reference(self) -> Int[np.ndarray, "outputs"] | None:
        """The labels, or without them what the clean model predicts."""
        return self.clean if self.label is None else self.label


@dataclass(frozen=True, eq=False)
class Stakes:
    """What one target makes of every output of one item.

    Parameters
    ----------
    values
        What each output adds while it keeps its prediction; 0 where that cannot count.
    total
        What all outputs together would be worth, right or wrong: the denominator of every share.
    counts
        Whether every output is worth 1 or nothing, so that sums are numbers of outputs.
    """

    values: Float[np.ndarray, "outputs"]
    total: float
    counts: bool

    @property
    def qualify(self) -> Bool[np.ndarray, "outputs"]:
        """Outputs that can count."""
        return self.values > 0

    @property
    def problem_value(self) -> Float[np.ndarray, "outputs"] | None:
        """What `Problem` takes as values: none where outputs are counted."""
        return None if self.counts else self.values

    def left_by(self, prediction: Int[np.ndarray, "outputs"]) -> Stakes:
        """The same where some outputs abstain."""
        return replace(self, values=np.where(prediction == ABSTAIN, 0.0, self.values))

    @property
    def stake(self) -> Stake:
        """The sums."""
        return Stake(min(rounded_up(math.fsum(self.values)), self.total), self.total, self.counts)

    def less(
        self, certified: Real[np.ndarray, "budgets"], discount: int, spare: float = 0.0
    ) -> Int[np.ndarray, "budgets"] | Float[np.ndarray, "budgets"]:
        """Lower what is certified by what may be wrong unnoticed.

        Parameters
        ----------
        certified
            Number of outputs, or their values.
        discount
            Number of outputs that may be: in the worst case those that are worth the most.
        spare
            Value that may be lost besides.
        """
        if self.counts:
            return np.maximum(certified - discount, 0)
        kept = max(self.values.size - discount, 0)
        dearest = math.fsum(np.sort(self.values)[kept:]) if discount else 0.0
        lost = math.nextafter(dearest + spare, math.inf) if discount or spare else 0.0
        return np.maximum(np.nextafter(certified - lost, -math.inf) if lost else certified, 0.0)


def rounded_up(total: float) -> float:
    """Shares of the total must not be rounded up; numbers of outputs are exact."""
    return total if total.is_integer() else math.nextafter(total, math.inf)


@dataclass(frozen=True, eq=False)
class Alike:
    """Outputs that one target values alike, as rules for counts need them.

    Parameters
    ----------
    kind
        Number of each output's value among all that occur; −1 for ignored outputs.
    worth
        The values, if the candidate stands; None where outputs are counted.
    """

    kind: Int[np.ndarray, "outputs"]
    worth: Float[np.ndarray, "outputs"] | None


def alike(stakes: Stakes, ignored: Bool[np.ndarray, "outputs"] | None = None) -> Alike:
    """Number the outputs by what a target makes of them.

    Parameters
    ----------
    stakes
        What the target makes of the outputs if every candidate stands.
    ignored
        Outputs that do not count; None if all count.
    """
    number = np.unique(stakes.values, return_inverse=True)[1].astype(np.int64)
    return Alike(number if ignored is None else np.where(ignored, -1, number), stakes.problem_value)


def kinds_of(
    valued: Mapping[str, Stakes], ignored: Bool[np.ndarray, "outputs"] | None = None
) -> Int[np.ndarray, "outputs"]:
    """Number the outputs so that those of one number are worth the same to every target; −1 for ignored ones."""
    number = np.zeros(next(iter(valued.values())).values.size, np.int64)
    for stakes in valued.values():
        seen, row = np.unique(stakes.values, return_inverse=True)
        number = np.unique(number * seen.size + row, return_inverse=True)[1].astype(np.int64)
    return number if ignored is None else np.where(ignored, -1, number)
