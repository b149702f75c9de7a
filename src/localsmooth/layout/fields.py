"""Receptive fields: which inputs each output can see, and the inputs that an adversary has no reason to tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Int

from localsmooth.errors import InvalidInputError
from localsmooth.layout.partition import Partition

__all__ = ["SeenAtoms", "atoms_of", "window_fields"]

_LARGEST_MASK = 1 << 28


@dataclass(frozen=True, eq=False)
class SeenAtoms:
    """Fields of view over few columns.

    Parameters
    ----------
    inputs
        Atom of each input: inputs of one atom lie in one input group and are seen by the same outputs.
    group
        Input group of each atom.
    seen
        Distinct fields of view, over atoms.
    field
        Which of them each output has.
    """

    inputs: Partition
    group: Int[np.ndarray, "atoms"]
    seen: Bool[np.ndarray, "fields atoms"]
    field: Int[np.ndarray, "outputs"]


def atoms_of(
    fields: Bool[np.ndarray, "outputs inputs"] | sp.csr_array,
    inputs: Partition,
    apart: Int[np.ndarray, "outputs"] | None = None,
) -> SeenAtoms:
    """Gather outputs with equal fields, and inputs that are seen by the same outputs.

    Parameters
    ----------
    fields
        Whether an input can influence an output, inputs in the flat order of the partition's label map; sparse ones
        with sorted indices.
    inputs
        Input groups.
    apart
        A number for each output: those with different ones stay apart, whatever they see.

    Raises
    ------
    InvalidInputError
        If the shapes do not fit.
    """
    # scipy's types do not tell a row from a number.
    every: Any = fields
    labels = inputs.labels.ravel()
    apart = np.zeros(every.shape[0], dtype=np.int64) if apart is None else apart
    if every.shape != (apart.size, labels.size) or apart.size == 0:
        raise InvalidInputError(
            "fields",
            f"shape {every.shape}",
            f"Pass one row for each output, one column for each of {labels.size} inputs",
        )
    first, field = _distinct(_rows(every), apart)
    visible = every[first]
    columns, atom = _distinct(_rows(visible.T), labels)
    seen = visible[:, columns]
    return SeenAtoms(
        Partition(atom.reshape(inputs.shape).astype(np.int32)),
        labels[columns].astype(np.int64),
        seen.toarray() if sp.issparse(seen) else seen,
        field,
    )


def _rows(matrix: Any) -> Iterator[bytes]:
    """Each row as bytes that are equal where the rows are."""
    if not sp.issparse(matrix):
        return (row.tobytes() for row in np.packbits(matrix, axis=1))
    rows: Any = sp.csr_array(matrix)
    return (rows.indices[start:end].tobytes() for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True))


def _distinct(
    rows: Iterator[bytes], labels: Int[np.ndarray, "rows"]
) -> tuple[Int[np.ndarray, "distinct"], Int[np.ndarray, "rows"]]:
    """First place of each distinct pair (label, row), and which of them each row is."""
    known: dict[tuple[int, bytes], int] = {}
    number = np.fromiter(
        (known.setdefault(pair, len(known)) for pair in zip(labels.tolist(), rows, strict=True)), np.int64
    )
    return np.unique(number, return_index=True)[1], number


def window_fields(
    input_shape: tuple[int, ...], output_shape: tuple[int, ...], reach: int
) -> Bool[np.ndarray, "outputs inputs"]:
    """Fields of a convolutional network: inputs at most `reach` elements away from an output, along every axis.

    Parameters
    ----------
    input_shape, output_shape
        Spatial shapes; the input's is a whole multiple of the output's.
    reach
        Largest distance, in input elements, from the inputs that an output covers.

    Raises
    ------
    InvalidInputError
        If the shapes do not fit, the reach is negative, or the mask would not fit in memory.
    """
    if reach < 0:
        raise InvalidInputError("receptive_field", f"got {reach}", "Pass 0 or more input elements")
    if len(input_shape) != len(output_shape) or any(n % m for n, m in zip(input_shape, output_shape, strict=True)):
        raise InvalidInputError(
            "receptive_field",
            f"input shape {input_shape} is not a whole multiple of output shape {output_shape}",
            "Pass the fields themselves",
        )
    if int(np.prod(input_shape)) * int(np.prod(output_shape)) > _LARGEST_MASK:
        raise InvalidInputError(
            "receptive_field", "there are too many outputs and inputs for a mask", "Certify smaller items"
        )
    made = np.ones((1, 1), dtype=np.bool_)
    for inputs, outputs in zip(input_shape, output_shape, strict=True):
        stride = inputs // outputs
        start = np.arange(outputs)[:, None] * stride
        place = np.arange(inputs)[None]
        axis = (place >= start - reach) & (place < start + stride + reach)
        made = np.kron(made, axis)
    return made
