"""What the model said about one output group in one batch."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from jaxtyping import Integer

from localsmooth.errors import InvalidInputError
from localsmooth.models import OutputKind
from localsmooth.sampling.region import Region

__all__ = ["FINEST_GRID", "Predictions"]

FINEST_GRID = 4096
"""Most steps of a grid on which scores may be counted."""


class Predictions:
    """The scores or labels of one output group for a batch of samples; counters read it.

    Everything is computed when first asked for, once for all counters.

    Parameters
    ----------
    outputs
        What the model returned for the (cropped) batch.
    region
        Where the group's outputs lie.
    kind
        What the model's outputs mean.
    classes
        Number of classes.
    size
        Number of samples in the batch.

    Raises
    ------
    InvalidInputError
        If the outputs have another shape than the region, the batch and the classes ask for.
    """

    def __init__(self, outputs: torch.Tensor, region: Region, kind: OutputKind, classes: int, size: int) -> None:
        leading = (size,) if kind is OutputKind.LABELS else (size, classes)
        if tuple(outputs.shape) != leading + region.output_shape:
            raise InvalidInputError(
                "model",
                f"it returned shape {tuple(outputs.shape)} where {leading + region.output_shape} was expected",
                "Make the layout's output partition fit the model, and return one prediction per sample",
            )
        if outputs.is_floating_point() == (kind is OutputKind.LABELS):
            raise InvalidInputError(
                "model", f"{kind.name.lower()} of type {outputs.dtype}", "Return integer labels, or floating scores"
            )
        self.size = size
        self.classes = classes
        self.kind = kind
        self._selected = region.select(outputs)

    @property
    def scores(self) -> torch.Tensor:
        """The model's scores, shape (samples, classes, *group).

        Raises
        ------
        InvalidInputError
            If the model returns labels only.
        """
        if self.kind is OutputKind.LABELS:
            raise InvalidInputError("model", "it returns labels without scores", "Count votes, not scores")
        return self._selected

    @cached_property
    def probabilities(self) -> torch.Tensor:
        """Scores in [0, 1] that sum to 1 over the classes, shape (samples, classes, *group).

        They are normalised here whatever the model's own precision is, in single precision or better: softmax of
        logits; probabilities divided by their sum (negative ones count as 0, and where all are 0 they stay so). What
        rounding adds to a sum is less than a step of any grid that scores are counted on, so that scores rounded down
        to the grid sum to at most 1, exactly: a mean above 1/2 is a majority.
        """
        scores = self.scores
        wide = scores.dtype is torch.float64 or self.classes > _MANY_CLASSES
        precision = torch.float64 if wide else torch.float32
        if self.kind is OutputKind.LOGITS:
            return scores.softmax(dim=1, dtype=precision)
        parts = scores.to(precision).clamp_min(0)
        return parts / parts.sum(dim=1, keepdim=True).clamp_min(torch.finfo(precision).tiny)

    @cached_property
    def labels(self) -> torch.Tensor:
        """Predicted class, the smallest on ties, in the smallest integer type that holds it: (samples, *group).

        Meaningless where `faulty`, but never outside 0 … classes − 1.
        """
        if self.kind is OutputKind.LABELS:
            given = self._selected.to(torch.uint8) if self._selected.dtype is torch.bool else self._selected
            # A type in which the last class does not fit has no label beyond it, and cannot be compared with it.
            last = min(self.classes - 1, torch.iinfo(given.dtype).max)
            return given.clamp(0, last).to(_label_type(self.classes))
        scores = self._selected
        if scores.device.type != "cpu" or scores.stride(1) == 1 or self.classes > _LARGEST_RANK:
            return scores.argmax(dim=1).to(_label_type(self.classes))
        # torch's argmax over an outer axis costs several times these elementwise passes on a CPU. The rank falls
        # with the class, so that the largest rank among the maxima belongs to the smallest class.
        type_ = _label_type(self.classes)
        ranks = torch.arange(self.classes, 0, -1, device=scores.device).to(type_)
        maximal = (scores == self._best.unsqueeze(1)).to(type_)
        maximal.mul_(ranks.view(-1, *[1] * (scores.ndim - 2)))
        return (self.classes - maximal.amax(dim=1)).clamp_(max=self.classes - 1)

    def clean_labels(self) -> Integer[np.ndarray, " outputs"]:
        """Labels of a batch of one that was drawn without noise.

        Raises
        ------
        InvalidInputError
            If a score is NaN or infinite, or a label is no class.
        """
        if bool(self.faulty):
            problem = "without noise it returns scores that are not finite, or labels that are no classes"
            raise InvalidInputError("model", problem, "Repair the model, or the item: the samples drawn are kept")
        return self.labels.cpu().numpy().astype(np.int32).ravel()

    @cached_property
    def _best(self) -> torch.Tensor:
        return self._selected.amax(dim=1)

    @cached_property
    def faulty(self) -> torch.Tensor:
        """Whether a best score is NaN or infinite, or a label is no class: one boolean, on the device."""
        if not self._selected.numel():
            return torch.zeros((), dtype=torch.bool, device=self._selected.device)
        low, high = torch.aminmax(self._selected if self.kind is OutputKind.LABELS else self._best)
        if self.kind is OutputKind.LABELS:
            # The number of classes may not fit in the labels' own type, and would wrap around there.
            return (low < 0) | (high.to(torch.int64) >= self.classes)
        return ~(torch.isfinite(low) & torch.isfinite(high))


_LARGEST_RANK = 2**15 - 1
# A sum of n numbers in single precision may be n·2⁻²⁴ too small, which must stay well below a step of the finest grid.
_MANY_CLASSES = 2**24 // (2 * FINEST_GRID)


def _label_type(classes: int) -> torch.dtype:
    if classes < 2**8:
        return torch.uint8
    return torch.int16 if classes <= _LARGEST_RANK else torch.int32
