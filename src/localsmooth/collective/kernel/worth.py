"""What targets are worth, as whole numbers of one unit, so that every sum over targets is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from localsmooth.errors import InvalidInputError

__all__ = ["Worth", "rounded_down", "rounded_up", "worth_of"]

_BITS = 52
_LARGE = 1e300


@dataclass(frozen=True, eq=False)
class Worth:
    """Values v_n ≥ 0 of the targets, rounded down to whole numbers of a unit that sum to less than 2⁵³.

    Sums of them are exact in floating point, and as whole as counts are. For every set of targets,
    unit · (its sum) ≤ Σ v_n ≤ unit · (its sum) + lost.

    Parameters
    ----------
    unit
        The value of one unit, the largest that all (rounded) values are multiples of; 1 where targets are counted.
    parts
        Units of each target; None where each of them is one unit.
    total
        Units of all targets.
    lost
        An upper bound on the value that rounding took away from all targets together; 0 where nothing was rounded.
    whole
        Whether values are whole numbers (below 2⁵³ in all), so that sums of them are handed out as such.
    """

    unit: Fraction
    parts: Float[np.ndarray, "targets"] | None
    total: int
    lost: Fraction = Fraction(0)
    whole: bool = True

    def least(self, units: int | float) -> int | float:
        """Return the value of so many units, rounded down: no set of that many is worth less."""
        return self._plain(rounded_down(self.unit * Fraction(units)))

    def most(self, units: int | float) -> int | float:
        """Return a value that no set of so many units exceeds, rounded up."""
        return self._plain(rounded_up(self.unit * Fraction(units) + self.lost))

    def _plain(self, value: float) -> int | float:
        """Return whole numbers as such where all values are."""
        return int(value) if self.whole and value.is_integer() else value


def rounded_down(value: Fraction) -> float:
    """Return the largest floating-point number that is not above a rational."""
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > value else nearest


def rounded_up(value: Fraction) -> float:
    """Return the least floating-point number that is not below a rational."""
    return -rounded_down(-value)


def worth_of(value: Float[np.ndarray, "targets"]) -> Worth:
    """Return values as whole numbers of a unit: their common measure, where the whole is not more than 2⁵² of it.

    Otherwise each value is rounded down by less than 2⁻⁵¹ of the sum. Whole numbers that sum to less than 2⁵² stay what
    they are, and so do any numbers of equal values.

    Parameters
    ----------
    value
        v ≥ 0 of each target, finite.

    Raises
    ------
    InvalidInputError
        If the values sum to 10³⁰⁰ or more.
    """
    with np.errstate(over="ignore"):
        size = float(value.sum())
    if not size < _LARGE:
        raise InvalidInputError("value", "sums to 1e300 or more", "give smaller numbers")
    common = Fraction(0)
    for each in np.unique(value[value > 0]).tolist():
        top, bottom = each.as_integer_ratio()
        common = Fraction(math.gcd(common.numerator * bottom, top * common.denominator), common.denominator * bottom)
        if common * 2**_BITS < size:
            common = Fraction(math.ldexp(1.0, max(math.frexp(size)[1] - _BITS, -1074)))
            break
    unit = float(common) or 1.0  # a float as the values are: the quotients, if whole, are exact
    parts = np.floor(value / unit)
    rounded = int(np.count_nonzero(parts * unit != value))
    return Worth(
        Fraction(unit),
        None if bool(np.all(parts == 1)) else parts,
        int(parts.sum()),
        rounded * Fraction(unit),
        size < 2.0**53 and bool(np.all(value == np.floor(value))),
    )
