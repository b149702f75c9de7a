"""Evaluate each distinct case once: outputs outnumber distinct counts by far."""

from __future__ import annotations

import numpy as np
from jaxtyping import Integer, Num, Shaped

from localsmooth.blocks import blocks, look_up

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
        columns need only be evaluated at ``column[first]`` and is then read off as ``look_up(values, case)``.
    """
    case = _number(columns[0])
    for column in columns[1:]:
        if column.size and bool(np.all(column == column[0])):
            continue
        index = _number(column)
        case = _number(case.astype(np.int64) * (int(index.max(initial=0)) + 1) + index)
    first = np.zeros(int(case.max()) + 1 if case.size else 0, dtype=np.int64)
    for block in blocks(case.size):
        first[case[block]] = np.arange(block.start, block.stop)
    return first, case


def _number(column: Shaped[np.ndarray, " outputs"]) -> Integer[np.ndarray, " outputs"]:
    """Number the distinct values in ascending order."""
    if column.size and np.issubdtype(column.dtype, np.integer) and column.min() >= 0 and column.max() < _TABLE:
        seen = np.zeros(int(column.max()) + 1, dtype=np.bool_)
        for block in blocks(column.size):
            seen[column[block]] = True
        numbers = np.cumsum(seen) - 1
        return look_up(numbers.astype(np.min_scalar_type(int(numbers[-1]))), column)
    return np.unique(column, return_inverse=True)[1].reshape(-1)
