"""What counts as numbers at the door (arrays, nested sequences, single numbers), and what rounding can do to them."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from localsmooth.errors import InvalidInputError

__all__ = ["TINY", "UNIT", "Number", "Numbers", "plain_numbers"]

Number = float | int | np.number[Any]
Numbers = np.ndarray | Sequence[Any] | Number

UNIT = 2.0**-53
"""Largest relative error of one rounding."""
TINY = 2.0**-1074
"""What one product can lose where it underflows."""


def plain_numbers(field: str, values: Any) -> Float[np.ndarray, "..."]:
    """Return numbers as float64, which must hold them exactly: nobody knows here in which direction to round.

    Raises
    ------
    InvalidInputError
        For anything but a rectangular array of real numbers (strings, truth values, dates and the like are none).
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(field, "is not a rectangular array of numbers", "give numbers") from error
    if array.dtype.kind == "O":
        real = all(isinstance(one, numbers.Real) and not isinstance(one, bool | np.bool_) for one in array.flat)
    else:
        real = array.dtype.kind in "iuf" or array.size == 0
    if not real:
        raise InvalidInputError(field, f"is not made of numbers (its type is {array.dtype})", "give numbers")
    try:
        plain = array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(field, "holds a number beyond the floating-point range", "give smaller ones") from error
    if not _same(plain, array):
        raise InvalidInputError(
            field, "holds a number that float64 does not hold exactly", "round it: weights up, thresholds down"
        )
    return plain


def _same(plain: Float[np.ndarray, "..."], array: np.ndarray) -> bool:
    """Whether float64 holds every number exactly."""
    if array.dtype.kind == "f":
        return array.dtype.itemsize <= 8 or bool(np.all((plain == array) | np.isnan(plain)))
    if array.dtype.kind in "iu":
        large = np.abs(plain) >= 2.0**53
        plain, array = plain[large], array[large]
    whole = (int(one) if isinstance(one, numbers.Integral) else one for one in array.flat)
    return all(a == b or a != a for a, b in zip(plain.ravel().tolist(), whole, strict=True))
