"""Which inputs each output can see, and the classes of inputs that an adversary has no reason to tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Partition

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


def atoms_of(fields: Bool[np.ndarray, "outputs inputs"], inputs: Partition) -> SeenAtoms:
    """Gather outputs with equal fields, and inputs that are seen by the same outputs.

    Parameters
    ----------
    fields
        Whether an input can influence an output, inputs in the flat order of the partition's label map.
    inputs
        Input groups.

    Raises
    ------
    InvalidInputError
        If the shapes do not fit.
    """
    if fields.shape[1] != inputs.labels.size or fields.shape[0] == 0:
        raise InvalidInputError(
            "fields",
            f"shape {fields.shape}",
            f"Pass one row for each output, one column for each of {inputs.labels.size} inputs",
        )
    first, field = _distinct(fields, np.zeros(len(fields), dtype=np.int64))
    columns, atom = _distinct(np.ascontiguousarray(fields[first].T), inputs.labels.ravel().astype(np.int64))
    return SeenAtoms(
        Partition(atom.reshape(inputs.shape).astype(np.int32)),
        inputs.labels.ravel()[columns].astype(np.int64),
        fields[np.ix_(first, columns)],
        field,
    )


def _distinct(
    rows: Bool[np.ndarray, "rows columns"], labels: Int[np.ndarray, "rows"]
) -> tuple[Int[np.ndarray, "distinct"], Int[np.ndarray, "rows"]]:
    """First place of each distinct pair (label, row), and which of them each row is."""
    packed = np.packbits(rows, axis=1)
    known: dict[tuple[int, bytes], int] = {}
    first: list[int] = []
    number = np.empty(len(rows), dtype=np.int64)
    for place, (label, bits) in enumerate(zip(labels.tolist(), packed, strict=True)):
        key = label, bits.tobytes()
        if key not in known:
            known[key] = len(first)
            first.append(place)
        number[place] = known[key]
    return np.array(first, dtype=np.int64), number


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
