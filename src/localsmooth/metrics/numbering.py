"""Whether labels and the model's classes are numbered alike."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import linear_sum_assignment

from localsmooth.metrics.predictions import confusion_matrix
from localsmooth.results import NO_LABEL, run_info

__all__ = ["numbering_words"]

_POOR, _BETTER = 0.5, 0.4  # shares of the outputs: agreement that is little, and a gain that is much
_FEWEST = 20  # outputs, fewer of which agree otherwise by chance


def numbering_words(dataset: xr.Dataset) -> str:
    """Say where the model without noise hardly agrees with the labels, and would if its classes had other numbers.

    Parameters
    ----------
    dataset
        A result.

    Returns
    -------
    str
        A sentence; empty where there is nothing to say.
    """
    if "clean" not in dataset:
        return ""
    clean, label, names = dataset["clean"].values, dataset["label"].values, run_info(dataset).class_names
    counted = ~dataset["ignored"].values & (label != NO_LABEL) & (clean >= 0)
    matrix = confusion_matrix(clean, label, counted, len(names))[:, :-1]
    total, several = int(matrix.sum()), min(np.count_nonzero(matrix.sum(axis=axis)) for axis in (0, 1))
    if total < _FEWEST or several < 2:
        return ""
    rows, columns = linear_sum_assignment(matrix, maximize=True)
    own, best = np.trace(matrix) / total, matrix[rows, columns].sum() / total
    if own >= _POOR or best - own < _BETTER:
        return ""
    most = int(np.argmax(matrix[rows, columns] * (rows != columns)))
    return (
        f"Without noise the model agrees with {int(100 * own)} % of the labels, and would with {int(100 * best)} % if "
        f'its classes had other numbers (labels say "{names[rows[most]]}" where it says "{names[columns[most]]}"): '
        "are labels and classes numbered alike?"
    )
