"""Drop marks that fall on ones or on a bit already marked, and lay out each row's entries side by side.

Two implementations with identical results: plain numpy, and a compiled loop where numba is installed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int, Integer, UInt

__all__ = ["CompiledThinning", "NumpyThinning", "Thinning", "best_thinning"]

Merged = tuple[np.ndarray, np.ndarray]
Thin = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], Merged]
"""Maps marks, their row pointers, entries for ones, and their row pointers to merged entries and row pointers.

The entries of a row are its surviving marks, in the order in which they first appear, then its entries for ones.
"""

Thinning = Callable[[np.ndarray, np.ndarray, int], Thin]
"""Maps row pointers of the ones, their columns and the number of columns to a `Thin`."""

_BLOCK = 1 << 18  # cells of the table of last marks that are held at once; 1 MiB stays in the cache


class NumpyThinning:
    """Thinning in numpy, by a table with one number per bit of a block of rows.

    Parameters
    ----------
    pointers, columns
        CSR form of the clean ones.
    width
        Number of columns.
    """

    def __init__(
        self, pointers: Integer[np.ndarray, "rows_plus_one"], columns: Int[np.ndarray, "ones"], width: int
    ) -> None:
        rows = pointers.size - 1
        self._pointers, self._width = pointers, width
        self._rows_at_once = max(1, min(rows, _BLOCK // width))
        self._table = np.empty(self._rows_at_once * width, np.int32)
        local = np.repeat(np.arange(rows) % self._rows_at_once, np.diff(pointers))
        self._ones = local * width + columns

    def __call__(
        self,
        marks: UInt[np.ndarray, "marks"],
        pointers: Int[np.ndarray, "rows_plus_one"],
        ones: Int[np.ndarray, "named_ones"],
        one_pointers: Int[np.ndarray, "rows_plus_one"],
    ) -> Merged:
        """Thin and merge one sample."""
        counts = np.diff(pointers)
        rows = counts.size
        keep = np.empty(marks.size, np.bool_)
        for start in range(0, rows, self._rows_at_once):
            stop = min(start + self._rows_at_once, rows)
            here = slice(pointers[start], pointers[stop])
            cells = np.repeat(np.arange(stop - start) * self._width, counts[start:stop])
            cells += marks[here]
            order = np.arange(cells.size, dtype=np.int32)
            # The last assignment to a cell wins: written backwards, that is the first mark.
            self._table[cells[::-1]] = order[::-1]
            self._table[self._ones[self._pointers[start] : self._pointers[stop]]] = -1
            np.equal(self._table[cells], order, out=keep[here])
        surviving = np.concatenate([[0], np.cumsum(keep)])[pointers]
        merged_pointers = surviving + one_pointers
        entries = np.empty(int(merged_pointers[-1]), np.int32)
        kept_rows = np.diff(surviving)
        entries[np.arange(int(surviving[-1])) + np.repeat(one_pointers[:-1], kept_rows)] = marks[keep]
        entries[np.arange(ones.size) + np.repeat(surviving[1:], np.diff(one_pointers))] = ones
        return entries, merged_pointers


class CompiledThinning:
    """Thinning in a loop compiled by numba.

    Parameters
    ----------
    pointers, columns
        CSR form of the clean ones.
    width
        Number of columns.

    Raises
    ------
    ImportError
        If numba is not installed.
    """

    def __init__(
        self, pointers: Integer[np.ndarray, "rows_plus_one"], columns: Int[np.ndarray, "ones"], width: int
    ) -> None:
        self._loop = _compiled()
        self._pointers, self._columns = pointers.astype(np.int64), columns
        self._stamp = np.zeros(width, np.int64)
        self._time = 0

    def __call__(
        self,
        marks: UInt[np.ndarray, "marks"],
        pointers: Int[np.ndarray, "rows_plus_one"],
        ones: Int[np.ndarray, "named_ones"],
        one_pointers: Int[np.ndarray, "rows_plus_one"],
    ) -> Merged:
        """Thin and merge one sample."""
        entries = np.empty(marks.size + ones.size, np.int32)
        merged = np.empty(pointers.size, np.int64)
        self._loop(
            marks, pointers, ones, one_pointers, self._pointers, self._columns, self._stamp, self._time, entries, merged
        )
        self._time += pointers.size
        return entries[: merged[-1]], merged


@functools.cache
def best_thinning() -> Thinning:
    """The compiled loop where numba is installed, numpy elsewhere."""
    try:
        _compiled()
    except ImportError:
        return NumpyThinning
    return CompiledThinning


@functools.cache
def _compiled() -> Callable[..., None]:
    import numba  # pyright: ignore[reportMissingImports]

    decorate: Any = numba.njit(nogil=True)
    # The plain function: a checker of calls may have wrapped it in what numba cannot read.
    return decorate(inspect.unwrap(_loop))


def _loop(
    marks: Any,
    pointers: Any,
    ones: Any,
    one_pointers: Any,
    clean_pointers: Any,
    clean_columns: Any,
    stamp: Any,
    time: Any,
    entries: Any,
    merged: Any,
) -> None:
    """One pass over the rows; a bit is free as long as its stamp is older than the row."""
    place = 0
    merged[0] = 0
    for row in range(pointers.size - 1):
        now = time + row + 1
        for j in range(clean_pointers[row], clean_pointers[row + 1]):
            stamp[clean_columns[j]] = now
        for j in range(pointers[row], pointers[row + 1]):
            column = marks[j]
            if stamp[column] != now:
                stamp[column] = now
                entries[place] = column
                place += 1
        for j in range(one_pointers[row], one_pointers[row + 1]):
            entries[place] = ones[j]
            place += 1
        merged[row + 1] = place
