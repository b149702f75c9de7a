"""Whether labels and the model's classes are numbered alike."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import linear_sum_assignment

from localsmooth.metrics.predictions import confusion_matrix
from localsmooth.results import NO_LABEL, run_info

__all__ = ["numbering_words"]

_POOR, _BETTER = 0.5, 0.4  # shares of the outputs: agreement that is little, and a gain that is much
_FEWEST = 10  # outputs for each class that occurs: fewer agree otherwise by chance


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
    occurring, numbers = np.unique(np.stack([label[counted], clean[counted]]), return_inverse=True)
    truth, predicted = numbers.reshape(2, -1)
    total = truth.size
    if total < _FEWEST * occurring.size or min(np.unique(truth).size, np.unique(predicted).size) < 2:
        return ""
    everything = np.ones(total, np.bool_)
    matrix = confusion_matrix(predicted.astype(np.int64), truth.astype(np.int64), everything, occurring.size)[:, :-1]
    rows, columns = linear_sum_assignment(matrix, maximize=True)
    own, best = np.trace(matrix) / total, matrix[rows, columns].sum() / total
    if own >= _POOR or best - own < _BETTER:
        return ""
    most = int(np.argmax(matrix[rows, columns] * (rows != columns)))
    here, there = (names[int(occurring[each[most]])] for each in (rows, columns))
    return (
        f"Without noise the model agrees with {int(100 * own)} % of the labels, and would with {int(100 * best)} % if "
        f'its classes had other numbers (labels say "{here}" where it says "{there}"): '
        "are labels and classes numbered alike?"
    )
