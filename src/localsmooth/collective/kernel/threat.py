"""What the adversary may do: composable threats that yield linear rows, caps and integrality.

The adversary spends b_l ≥ 0 in input column l, Σ over the column's inputs of |x'_d − x_d|^p (the number of changed
entries for p = 0). A threat restricts b; ``&`` combines threats. Every budget is rounded up on entry, so that the
set the certificate covers never is smaller than the set that was asked for (Schuchardt et al. 2023, Section 5).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.collective.kernel.arrays import Number, Numbers, plain_numbers
from localsmooth.errors import InvalidInputError

__all__ = ["AtMostGroups", "Ball", "Caps", "Constraints", "GroupBudgets", "Integer", "Rows", "Threat", "power_up"]

Columns = Sequence[int] | np.ndarray | slice | None


@dataclass(frozen=True, eq=False)
class Constraints:
    """A threat spelled out for a number of input columns: rows · b ≤ budgets[k], 0 ≤ b ≤ caps.

    Parameters
    ----------
    rows
        Coefficients.
    budgets
        Right-hand sides, one row per budget of the curve; ``inf`` drops a row.
    caps
        Largest spending per column; ``inf`` for none.
    integer
        Columns whose spending is a whole number.
    limits
        Pairs (most, label of each column): columns of at most ``most`` different labels may be spent in.
    """

    rows: Float[np.ndarray, "rows columns"]
    budgets: Float[np.ndarray, "budgets rows"]
    caps: Float[np.ndarray, "columns"]
    integer: Bool[np.ndarray, "columns"]
    limits: tuple[tuple[int, Int[np.ndarray, "columns"]], ...] = ()

    @classmethod
    def none(cls, columns: int) -> Constraints:
        """Return the constraints that allow everything."""
        return cls(
            np.zeros((0, columns)), np.zeros((1, 0)), np.full(columns, math.inf), np.zeros(columns, dtype=np.bool_)
        )

    def merge(self, other: Constraints) -> Constraints:
        """Return the constraints that hold where both do.

        Raises
        ------
        InvalidInputError
            If the parts have different numbers of budgets, and neither has one.
        """
        counts = {len(self.budgets), len(other.budgets)} - {1}
        if len(counts) > 1:
            raise InvalidInputError(
                "threat",
                f"its parts have {len(self.budgets)} and {len(other.budgets)} budgets",
                "give every part the same number of budgets, or one",
            )
        budgets = counts.pop() if counts else 1
        left, right = (np.broadcast_to(c.budgets, (budgets, c.budgets.shape[1])) for c in (self, other))
        return Constraints(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([left, right], axis=1),
            np.minimum(self.caps, other.caps),
            self.integer | other.integer,
            self.limits + other.limits,
        )


class Threat(ABC):
    """Anything that restricts the adversary's spending."""

    @abstractmethod
    def constraints(self, columns: int) -> Constraints:
        """Spell the threat out for ``columns`` input columns.

        Raises
        ------
        InvalidInputError
            Where the threat does not fit that number of columns.
        """

    def __and__(self, other: Threat) -> Threat:
        """Combine two threats: the adversary must respect both."""
        if not isinstance(other, Threat):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError("threat", f"is combined with a {type(other).__name__}", "combine it with a Threat")
        return _Both(self, other)


@dataclass(frozen=True)
class _Both(Threat):
    first: Threat
    second: Threat

    def constraints(self, columns: int) -> Constraints:
        return self.first.constraints(columns).merge(self.second.constraints(columns))


def power_up(value: float, exponent: float) -> float:
    """Return value ** exponent, rounded up (exactly so for whole exponents up to 64)."""
    if exponent == 0 or not math.isfinite(value):
        return value
    if float(exponent).is_integer() and exponent <= 64:
        try:
            exact = Fraction(value) ** int(exponent)
            rounded = float(exact)
        except OverflowError:
            return math.inf
        return math.nextafter(rounded, math.inf) if Fraction(rounded) < exact else rounded
    try:
        rounded = value**exponent
    except OverflowError:
        return math.inf
    return 0.0 if value == 0 else math.nextafter(rounded * (1 + 4 * 2.0**-52), math.inf)


def _budget_array(field: str, budgets: Numbers) -> Float[np.ndarray, "budgets"]:
    values = np.atleast_1d(plain_numbers(field, budgets))
    if values.ndim != 1 or values.size == 0:
        raise InvalidInputError(field, f"has shape {values.shape}", "give one budget or a list of at least one")
    if not bool(np.all(values >= 0)):
        raise InvalidInputError(field, "holds a negative number or NaN", "give budgets ≥ 0 (inf for no limit)")
    return values


def _powers(budgets: Numbers, norm: Number) -> Float[np.ndarray, "budgets"]:
    """Return the budgets' p-th powers, rounded up."""
    exponent = float(plain_numbers("norm", norm))
    if not (math.isfinite(exponent) and exponent >= 0):
        raise InvalidInputError("norm", f"is {norm}", "give a finite p ≥ 0 (caps describe the l∞ norm)")
    powers = [power_up(float(value), exponent) for value in _budget_array("budgets", budgets)]
    return np.array(powers, dtype=np.float64)


def _indicator(columns: int, chosen: Columns) -> Bool[np.ndarray, "columns"]:
    if chosen is None:
        return np.ones(columns, dtype=np.bool_)
    indicator = np.zeros(columns, dtype=np.bool_)
    if not isinstance(chosen, slice):
        index = np.asarray(chosen)
        if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
            raise InvalidInputError("columns", "is not a list of indices", "give whole numbers or a slice")
        if index.size and not (int(index.min()) >= 0 and int(index.max()) < columns):
            raise InvalidInputError("columns", f"reaches outside 0 … {columns - 1}", "name columns of the weights")
        indicator[index] = True
    else:
        indicator[chosen] = True
    return indicator


@dataclass(frozen=True)
class Ball(Threat):
    """Σ_l b_l ≤ ε^p: an ℓp ball around the input, one for each budget ε.

    Parameters
    ----------
    budgets
        One ε ≥ 0 or a list of them, in the units of the input (a number of entries for ``norm=0``).
    norm
        p; 0 counts changed entries, so that the budget itself is the right-hand side.
    columns
        Input columns that this ball covers; all by default. One ball per kind of perturbation gives each kind its
        own budget: ``Ball(additions, 0, columns=[0, 1]) & Ball(deletions, 0, columns=[2, 3])``.
    """

    budgets: Numbers
    norm: Number = 2.0
    columns: Columns = None

    def constraints(self, columns: int) -> Constraints:
        """Return one row."""
        powers = _powers(self.budgets, self.norm)
        row = _indicator(columns, self.columns).astype(np.float64)
        none = Constraints.none(columns)
        return Constraints(row[None], powers[:, None], none.caps, none.integer)


@dataclass(frozen=True)
class Rows(Threat):
    """A · b ≤ c: any further linear rows.

    Parameters
    ----------
    A
        Coefficients [rows × input columns], finite.
    c
        Right-hand sides [rows], or one such row per budget [budgets × rows]; ≥ 0, so that no attack at all is
        always allowed.
    """

    A: Numbers
    c: Numbers

    def constraints(self, columns: int) -> Constraints:
        """Return the rows, checked.

        Raises
        ------
        InvalidInputError
            If `A` or `c` has another shape, or holds NaN, an infinity or a negative right-hand side.
        """
        rows = np.atleast_2d(plain_numbers("A", self.A))
        if rows.size == 0:
            rows = rows.reshape(0, columns)
        budgets = np.atleast_2d(plain_numbers("c", self.c))
        if rows.ndim != 2 or rows.shape[1] != columns:
            raise InvalidInputError("A", f"has shape {rows.shape}", f"give [rows × {columns} input columns]")
        if not bool(np.all(np.isfinite(rows))):
            raise InvalidInputError("A", "holds NaN or an infinity", "give finite coefficients")
        if budgets.ndim != 2 or budgets.shape[1] != len(rows) or len(budgets) == 0:
            raise InvalidInputError("c", f"has shape {budgets.shape}", f"give [{len(rows)}] or [budgets × {len(rows)}]")
        if not bool(np.all(budgets >= 0)):
            raise InvalidInputError("c", "holds a negative number or NaN", "give right-hand sides ≥ 0")
        none = Constraints.none(columns)
        return Constraints(rows, budgets, none.caps, none.integer)


@dataclass(frozen=True)
class Caps(Threat):
    """b_l ≤ cap_l: the most that can be spent in one input column, ``None`` or ``inf`` for no cap.

    A budget per node or group is a cap; an l∞ radius r of inputs counted in p-th powers is the cap |J_l| · r^p.
    """

    caps: Numbers

    def constraints(self, columns: int) -> Constraints:
        """Return the caps, checked.

        Raises
        ------
        InvalidInputError
            If the caps have another shape, or hold a negative number or NaN.
        """
        given = np.asarray(self.caps, dtype=object)
        if given.ndim not in (0, 1) or (given.ndim == 1 and len(given) != columns):
            raise InvalidInputError("caps", f"has shape {given.shape}", f"give one number, or {columns} of them")
        values = plain_numbers("caps", [math.inf if cap is None else cap for cap in np.broadcast_to(given, columns)])
        if not bool(np.all(values >= 0)):
            raise InvalidInputError("caps", "holds a negative number or NaN", "give caps ≥ 0, None for no cap")
        none = Constraints.none(columns)
        return Constraints(none.rows, none.budgets, values, none.integer)


@dataclass(frozen=True)
class GroupBudgets(Threat):
    """Σ over the columns with label k of b_l ≤ ε_k^p: a budget per node or cluster that owns several columns.

    Parameters
    ----------
    labels
        Label 0 … K − 1 of each input column, −1 for columns without a budget of their own.
    budgets
        ε_k for each label, or one for all.
    norm
        p; 0 takes the budgets as they are.
    """

    labels: Numbers
    budgets: Numbers
    norm: Number = 0.0

    def constraints(self, columns: int) -> Constraints:
        """Return one row per label.

        Raises
        ------
        InvalidInputError
            If there is neither one budget nor one per label, or one cannot be a budget.
        """
        labels = _labels(self.labels, columns)
        number = int(labels.max(initial=-1)) + 1
        powers = _powers(self.budgets, self.norm)
        if len(powers) not in (1, number):
            raise InvalidInputError("budgets", f"has {len(powers)} entries", f"give one, or one per label ({number})")
        used = np.unique(labels[labels >= 0])
        rows = (labels[None] == used[:, None]).astype(np.float64)
        none = Constraints.none(columns)
        return Constraints(
            rows, (powers[used] if len(powers) > 1 else powers.repeat(len(used)))[None], none.caps, none.integer
        )


@dataclass(frozen=True)
class Integer(Threat):
    """b_l is a whole number: binary inputs, where b_l counts flipped entries. All columns by default."""

    columns: Columns = None

    def constraints(self, columns: int) -> Constraints:
        """Return the marks."""
        none = Constraints.none(columns)
        return Constraints(none.rows, none.budgets, none.caps, _indicator(columns, self.columns))


@dataclass(frozen=True)
class AtMostGroups(Threat):
    """Spending in at most ``most`` input groups.

    Parameters
    ----------
    most
        Number of groups that can be attacked.
    labels
        Group of each input column where several columns belong to one group (two kinds of perturbation of one
        cluster, say); each column on its own by default.
    """

    most: int
    labels: Numbers | None = None

    def constraints(self, columns: int) -> Constraints:
        """Return the limit.

        Raises
        ------
        InvalidInputError
            If `most` is no whole number of at least 0.
        """
        whole = isinstance(self.most, int | np.integer)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not (whole and self.most >= 0):
            raise InvalidInputError("most", f"is {self.most}", "give a whole number of groups ≥ 0")
        labels = np.arange(columns) if self.labels is None else _labels(self.labels, columns)
        none = Constraints.none(columns)
        return Constraints(none.rows, none.budgets, none.caps, none.integer, ((int(self.most), labels),))


def _labels(labels: Numbers, columns: int) -> Int[np.ndarray, "columns"]:
    array = np.asarray(labels)
    if array.shape != (columns,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError("labels", f"is not {columns} whole numbers", "give one label per input column")
    if not int(array.min(initial=0)) >= -1:
        raise InvalidInputError("labels", f"holds {array.min()}", "give labels ≥ 0, and -1 for columns without one")
    return array.astype(np.int64)
