"""What a solver says: a proven count, the best attack found, and how the two were reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from localsmooth.collective.kernel.attack import standing
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.kernel.proof import Proof

__all__ = ["Answer", "Curve", "Status"]


class Status(Enum):
    """How an answer ended; the value says it in words."""

    EXACT = "optimal: the attack found breaks as many targets as any attack can"
    WITHIN_GAP = "proven to the gap that was asked for: the count is a bound, and at most the gap below the optimum"
    RELAXED = "a proven bound from a relaxation: no attack leaves fewer targets"
    TIED = "a proven bound: nothing is left to search, and rounding hides whether an attack reaches it"
    UNPROVEN = "a proven bound, short of what the direct program's solver claims: the proof did not end in time"
    TIME_LIMIT = "the time limit ended the search: the count is the best bound proven until then"

    def __str__(self) -> str:
        """Return the message."""
        return self.value


@dataclass(frozen=True, eq=False)
class Answer:
    """One budget's answer.

    Parameters
    ----------
    certified
        Targets that survive every attack within the threat: proven. Where targets have values, what is left of these,
        rounded down; a whole number where all values are.
    lower
        The proven bound before it was rounded up to a whole number (of units, `Worth`).
    upper
        Targets, or their values, that survive the best attack found, counted exactly and rounded up: the certificate
        cannot be improved beyond it.
    status
        How the answer ended.
    seconds
        Time spent on this budget.
    attack
        The best attack found: spending per input column.
    prices
        For each row of the threat, the certified count lost per unit of further budget (the dual price).
    problem
        What was asked.
    index
        Which of the problem's budgets this is the answer to.
    proof
        The dual numbers behind ``certified``, for `localsmooth.collective.kernel.verify`.
    verified
        The exact rational lower bound, where ``verify`` re-proved the answer; None otherwise.
    claimed
        The dual bound that HiGHS claims for the direct program (`Milp` only): for comparison, not proven.
    """

    certified: int | float
    lower: float
    upper: int | float
    status: Status
    seconds: float
    attack: Float[np.ndarray, "columns"]
    prices: Float[np.ndarray, "rows"]
    problem: Problem
    index: int
    proof: Proof
    verified: Fraction | None = None
    claimed: float | None = None

    @property
    def targets(self) -> int:
        """Number of targets."""
        return len(self.problem.targets)

    @property
    def total(self) -> int | float:
        """What all targets count: their number, or the sum of their values, rounded up."""
        return self.problem.worth.most(self.problem.worth.total)

    @property
    def broken(self) -> Int[np.ndarray, "broken"]:
        """Indices of the targets that the attack breaks (abstentions, never robust, are not among them)."""
        targets = self.problem.targets
        robust = np.any(self.problem.eta[:, targets] > 0, axis=0)
        return targets[robust & ~standing(self.problem, self.attack)]

    def __repr__(self) -> str:
        return (
            f"Answer({self.certified} of {self.total} certified, best attack leaves {self.upper}; {self.status.name})"
        )

    @property
    def gap(self) -> int | float:
        """Targets, or values, between the certified count and the best attack; 0 where the answer is the optimum."""
        return self.upper - self.certified


@dataclass(frozen=True, eq=False)
class Curve:
    """The answers of a list of budgets, in the order in which the budgets were given."""

    answers: tuple[Answer, ...]
    budgets: Float[np.ndarray, "budgets rows"]

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __repr__(self) -> str:
        return f"Curve(certified={self.certified.tolist()}, upper={self.upper.tolist()})"

    def __getitem__(self, index: int) -> Answer:
        return self.answers[index]

    @property
    def certified(self) -> Int[np.ndarray, "budgets"] | Float[np.ndarray, "budgets"]:
        """Certified counts; whole numbers unless targets have values that are none."""
        return np.array([answer.certified for answer in self.answers], dtype=self._kind)

    @property
    def lower(self) -> Float[np.ndarray, "budgets"]:
        """Proven bounds before rounding up."""
        return np.array([answer.lower for answer in self.answers], dtype=np.float64)

    @property
    def upper(self) -> Int[np.ndarray, "budgets"] | Float[np.ndarray, "budgets"]:
        """Counts that the best attacks found leave."""
        return np.array([answer.upper for answer in self.answers], dtype=self._kind)

    @property
    def _kind(self) -> type[np.int64] | type[np.float64]:
        return np.int64 if all(answer.problem.worth.whole for answer in self.answers) else np.float64

    @property
    def seconds(self) -> float:
        """Time spent on all budgets."""
        return float(sum(answer.seconds for answer in self.answers))
