"""Evaluate each distinct case once: outputs outnumber distinct counts by far."""

from __future__ import annotations

import numpy as np
from jaxtyping import Integer, Num, Shaped

__all__ = ["distinct_cases"]

# Integers below this many are told apart by a table rather than by sorting.
_TABLE = 1 << 24


def distinct_cases(
    *columns: Num[np.ndarray, " outputs"],
) -> tuple[Integer[np.ndarray, " cases"], Integer[np.ndarray, " outputs"]]:
    """Find the distinct rows of a few columns.

    Parameters
    ----------
    *columns
        Attributes of each output, all of one length.

    Returns
    -------
    tuple
        Index of one output for each distinct row, and for each output the number of its row: a function of the
        columns need only be evaluated at ``column[first]`` and is then read off as ``values[case]``.
    """
    case = _number(columns[0])
    for column in columns[1:]:
        if column.size and bool(np.all(column == column[0])):
            continue
        index = _number(column)
        case = _number(case * (int(index.max(initial=0)) + 1) + index)
    first = np.zeros(int(case.max(initial=-1)) + 1, dtype=np.int64)
    first[case] = np.arange(case.size)
    return first, case


def _number(column: Shaped[np.ndarray, " outputs"]) -> Integer[np.ndarray, " outputs"]:
    """Number the distinct values in ascending order."""
    if column.size and np.issubdtype(column.dtype, np.integer) and column.min() >= 0 and column.max() < _TABLE:
        seen = np.zeros(int(column.max()) + 1, dtype=np.bool_)
        seen[column] = True
        return (np.cumsum(seen) - 1)[column]
    return np.unique(column, return_inverse=True)[1].reshape(-1)
