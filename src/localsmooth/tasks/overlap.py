"""What IoU and Dice need of an item's certificates: one event for all classes, and strata that a ratio can be made of.

Bounds of every output serve any function of the outputs. Bounds on counts (`JointCount`) say, with probability 1 − α,
how many outputs of a stratum can fail, for all strata and all perturbations at once. The numerator and the denominator
of the IoU of class c are made of the outputs with label c and candidate c, and of those with another label and another
candidate. So every pair of candidate and label has strata of its own, one in each output group: both are sums over
whole strata, whatever c. Pairs follow from the candidate stage and the labels, never from the votes that are bounded,
and the event is the one that the counts of the same run rest on, whose e-values know of no strata: overlaps and counts
hold together at one α. Strata are bounded apart (nothing is subtracted for all of them at once): what a count of
thousands can spare may be all that a small class has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.bounds import JointAndBonferroni, JointCount
from localsmooth.certificates import ABSTAIN
from localsmooth.collective import Bound
from localsmooth.errors import InvalidInputError
from localsmooth.metrics import class_iou, confusion_matrix
from localsmooth.results import RunInfo
from localsmooth.tasks.strategies import Strategies

__all__ = ["about_overlaps", "for_overlaps", "label_pairs", "measured_iou", "require_labels"]

Proven = TypeVar("Proven", bound=Strategies)

_ASSUMPTION = (
    "IoU and Dice compare with the labels. A certified prediction stays; of every other nothing is known: it may take "
    "any label. They rest on the event of the certified counts, and hold together with these under one α."
)


def for_overlaps(settings: Proven) -> Proven:
    """Settings whose certificates bound overlaps.

    Raises
    ------
    InvalidInputError
        For baselines, which count outputs in ways of their own.
    """
    method = getattr(settings, "method", None) or getattr(settings, "baseline", None)
    if method is not None:
        field = "method" if hasattr(settings, "method") else "baseline"
        raise InvalidInputError(
            field, f"{method.name} counts outputs, and certifies no IoU", f"Pass {field}=None to certify from the votes"
        )
    rule = settings.simultaneous
    if isinstance(rule, JointAndBonferroni):  # strata are bounded on the joint count's half of the event
        return replace(settings, simultaneous=JointCount(spare=0), alpha=settings.alpha * rule.share)
    return replace(settings, simultaneous=replace(rule, spare=0)) if isinstance(rule, JointCount) else settings


def label_pairs(
    candidate: Int[np.ndarray, "outputs"], label: Int[np.ndarray, "outputs"], counted: Bool[np.ndarray, "outputs"]
) -> Int[np.ndarray, "outputs"]:
    """Number the pairs of candidate and label that occur; −1 for outputs that do not count."""
    pairs = np.stack([candidate.astype(np.int64), label.astype(np.int64)])
    return np.where(counted, np.unique(pairs, axis=1, return_inverse=True)[1].ravel(), -1)


def require_labels(name: str, label: np.ndarray | None, counted: Bool[np.ndarray, "outputs"]) -> np.ndarray:
    """Return the labels of an item.

    Raises
    ------
    InvalidInputError
        If it has none, or all are to be ignored.
    """
    if label is None or not counted.any():
        problem = f"{name} has none" if label is None else f"all of {name} are ignored"
        raise InvalidInputError("labels", problem, "IoU and Dice compare with labels: certify items that have some")
    return label


def measured_iou(
    prediction: Int[np.ndarray, "outputs"],
    label: Int[np.ndarray, "outputs"],
    counted: Bool[np.ndarray, "outputs"],
    classes: int,
) -> Float[np.ndarray, "classes"]:
    """IoU of each class as predicted, NaN for those that no counted output has as its label."""
    known = np.where(np.isin(prediction, np.arange(classes)), prediction, ABSTAIN)
    iou = class_iou(confusion_matrix(known, label, counted, classes))
    return np.where(np.isin(np.arange(classes), label[counted]), iou, np.nan)


def about_overlaps(run: RunInfo, bound: Bound) -> RunInfo:
    """The facts of a run, with what a result about overlaps promises."""
    return replace(
        run,
        bound_names=(str(getattr(bound, "name", type(bound).__name__)),),
        assumptions=(*run.assumptions, _ASSUMPTION),
        promise=f"under every {run.threat}, the IoU and the Dice of every class, and their means over the classes that "
        "are labels, are at least what is certified.",
    )
