"""Accuracy, confusion matrix, mean IoU and abstention rate of predictions that may abstain."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.certificates import ABSTAIN
from localsmooth.errors import InvalidInputError

__all__ = ["ABSTAIN", "abstention_rate", "accuracy", "class_iou", "confusion_matrix", "mean_iou"]


def accuracy(
    prediction: Int[np.ndarray, "*outputs"],
    label: Int[np.ndarray, "*outputs"],
    counted: Bool[np.ndarray, "*outputs"],
) -> float:
    """Share of the counted outputs that are predicted correctly; an abstention is wrong whatever the label.

    Parameters
    ----------
    prediction
        Predicted classes, `ABSTAIN` where the classifier abstains.
    label
        True classes; only read where `counted`.
    counted
        Outputs that count (ignored ones left out).

    Raises
    ------
    InvalidInputError
        If no output counts.
    """
    total = _total(counted)
    return float(np.count_nonzero(counted & (prediction == label) & (prediction != ABSTAIN)) / total)


def abstention_rate(prediction: Int[np.ndarray, "*outputs"], counted: Bool[np.ndarray, "*outputs"]) -> float:
    """Share of the counted outputs on which the classifier abstains.

    Raises
    ------
    InvalidInputError
        If no output counts.
    """
    total = _total(counted)
    return float(np.count_nonzero(counted & (prediction == ABSTAIN)) / total)


def confusion_matrix(
    prediction: Int[np.ndarray, "*outputs"],
    label: Int[np.ndarray, "*outputs"],
    counted: Bool[np.ndarray, "*outputs"],
    n_classes: int,
) -> Int[np.ndarray, "classes classes_and_abstain"]:
    """Counts of outputs by true class (rows) and prediction (columns); the last column holds the abstentions.

    Matrices of several items add up to the matrix of the data set.

    Raises
    ------
    InvalidInputError
        If a counted label is not in 0 … n_classes − 1, or a counted prediction is neither that nor `ABSTAIN`.
    """
    truth, predicted = label[counted], prediction[counted]
    if ((truth < 0) | (truth >= n_classes)).any():
        raise InvalidInputError(
            "label", f"a counted label is outside 0 … {n_classes - 1}", "Leave ignored outputs out of `counted`"
        )
    abstained = predicted == ABSTAIN
    if (~abstained & ((predicted < 0) | (predicted >= n_classes))).any():
        raise InvalidInputError(
            "prediction",
            f"a counted prediction is neither {ABSTAIN} (abstain) nor in 0 … {n_classes - 1}",
            "Leave outputs outside an item out of `counted`",
        )
    column = np.where(abstained, n_classes, predicted).astype(np.int64)
    flat = np.bincount(truth.astype(np.int64) * (n_classes + 1) + column, minlength=n_classes * (n_classes + 1))
    return flat.reshape(n_classes, n_classes + 1)


def class_iou(confusion: Int[np.ndarray, "classes classes_and_abstain"]) -> Float[np.ndarray, "classes"]:
    """Intersection over union of each class; NaN for a class that is neither in the labels nor in the predictions.

    An output of class c that abstains is missed by c, and is no false alarm of any class.
    """
    classes = len(confusion)
    hits = np.diagonal(confusion[:, :classes]).astype(np.float64)
    union = confusion.sum(axis=1) + confusion[:, :classes].sum(axis=0) - hits
    result = np.full(classes, np.nan)
    present = union > 0
    result[present] = hits[present] / union[present]
    return result


def mean_iou(confusion: Int[np.ndarray, "classes classes_and_abstain"]) -> float:
    """Mean IoU from the confusion matrix of the whole data set; classes absent from both sides are left out.

    Raises
    ------
    InvalidInputError
        If the matrix is empty.
    """
    values = class_iou(confusion)
    present = ~np.isnan(values)
    if not present.any():
        raise InvalidInputError("confusion", "counts no output", "Pass at least one counted output")
    return float(values[present].mean())


def _total(counted: Bool[np.ndarray, "*outputs"]) -> int:
    total = int(np.count_nonzero(counted))
    if total == 0:
        raise InvalidInputError("counted", "no output counts", "Pass at least one output that is not ignored")
    return total
