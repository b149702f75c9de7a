"""Losses of segmentation with outputs that do not count."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch.nn import functional

__all__ = ["IGNORED", "CrossEntropy", "Dice", "Loss"]

IGNORED = -100
"""Label of outputs that do not enter a loss: torch's own default for `ignore_index`."""


@runtime_checkable
class Loss(Protocol):
    """From scores and labels to a number."""

    def __call__(
        self, scores: Float[torch.Tensor, "batch classes *outputs"], labels: Int[torch.Tensor, "batch *outputs"]
    ) -> Float[torch.Tensor, ""]:
        """Compute the loss over all outputs whose label is not `IGNORED`; 0 where there is none."""
        ...


class CrossEntropy:
    """Mean cross-entropy of the counted outputs, in nats."""

    def __call__(
        self, scores: Float[torch.Tensor, "batch classes *outputs"], labels: Int[torch.Tensor, "batch *outputs"]
    ) -> Float[torch.Tensor, ""]:
        """See `Loss`."""
        counted = (labels != IGNORED).sum().clamp(min=1)
        return functional.cross_entropy(scores, labels, ignore_index=IGNORED, reduction="sum") / counted

    def __repr__(self) -> str:
        return "CrossEntropy()"


class Dice:
    """Soft Dice loss: 1 − 2·|overlap| / (|prediction| + |labels|), per class over the batch (Milletari et al. 2016).

    Averaged over the classes that the batch's counted labels show.
    """

    def __call__(
        self, scores: Float[torch.Tensor, "batch classes *outputs"], labels: Int[torch.Tensor, "batch *outputs"]
    ) -> Float[torch.Tensor, ""]:
        """See `Loss`."""
        counted = labels != IGNORED
        classes = scores.shape[1]
        truth = functional.one_hot(torch.where(counted, labels, 0).long(), classes).movedim(-1, 1).to(scores.dtype)
        mask = counted[:, None].to(scores.dtype)
        truth, predicted = truth * mask, scores.softmax(dim=1) * mask
        axes = [0, *range(2, scores.ndim)]
        shown = truth.sum(axes)
        overlap = (truth * predicted).sum(axes)
        smallest = torch.finfo(scores.dtype).tiny
        share = 2 * overlap / (shown + predicted.sum(axes)).clamp(min=smallest)
        present = (shown > 0).to(scores.dtype)
        return ((1 - share) * present).sum() / present.sum().clamp(min=1)

    def __repr__(self) -> str:
        return "Dice()"
