"""Names of single outputs in a result, such as the words of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from localsmooth.errors import InvalidInputError
from localsmooth.results.names import OUTPUT, axis_names

__all__ = ["NAMES", "attach_names"]

NAMES = "output_name"
"""Variable with the name of every output; padding has none."""


def attach_names(dataset: xr.Dataset, names: Sequence[Sequence[str]]) -> xr.Dataset:
    """Name every output of a result whose outputs have one axis.

    Parameters
    ----------
    dataset
        A result.
    names
        One list of names for each item.

    Raises
    ------
    InvalidInputError
        If there are not as many names as outputs.
    """
    inside = dataset["output_partition"].values >= 0
    lengths = inside.reshape(len(inside), -1).sum(axis=1).tolist()
    if inside.ndim != 2 or [len(line) for line in names] != lengths:
        raise InvalidInputError("names", "they are not as many as outputs", "Pass one list of names for each item")
    width = inside.shape[1]
    padded = np.array([[*line, *[""] * (width - len(line))] for line in names], dtype=np.str_)
    return dataset.assign({NAMES: (("item", *axis_names(OUTPUT, 1)), padded)})
