"""How far two predictions of the same samples lie apart, and how far they may."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from localsmooth.models.base import Model, OutputKind

__all__ = ["Difference", "Tolerance", "compare", "exact", "rounding"]

_LARGEST_PIECE = 1 << 20  # scores that are compared at once


@dataclass(frozen=True)
class Tolerance:
    """What is put down to rounding.

    Parameters
    ----------
    change
        Largest change of a class's share of the softmax.
    scored
        Share of the predictions whose label may differ, for models that return scores. With scores, only labels in a
        near tie can differ without exceeding `change`; one of them always may.
    labelled
        The same for models that return labels; rounded down, so that few predictions must agree exactly.
    """

    change: float
    scored: float
    labelled: float


def exact() -> Tolerance:
    """For the same sample at the same place of batches of the same size.

    Arithmetic has no reason to differ there. Labels without scores must agree; scores may differ by what the order of
    atomic additions does in full precision, and then labels in one of a thousand predictions, all in near ties.
    """
    return Tolerance(1e-5, 1e-3, 0.0)


def rounding(model: Model) -> Tolerance:
    """For the same sample in batches of other sizes, or in other places.

    Another algorithm may be chosen there (TF32 included), so that predictions differ as far as the arithmetic's
    precision goes: 10 bits are assumed for models in full precision, 7 for others.
    """
    if model.evaluated_in in ("float32", "float64"):
        return Tolerance(0.02, 0.01, 0.002)
    return Tolerance(0.05, 0.03, 0.02)


@dataclass(frozen=True)
class Difference:
    """How far two predictions lie apart.

    Parameters
    ----------
    labels
        How many of the predicted labels differ.
    predictions
        Out of how many.
    change
        Largest change of a class's share of the softmax, whose temperature is the typical margin between the two best
        classes (and, where predictions are to agree exactly, also 1); 0 without scores. Unlike a change relative to
        the largest score it is not hidden by a class that is masked with a large negative number, and unlike that of
        a fixed temperature not by small or large scores.
    scored
        Whether there are scores.
    """

    labels: int
    predictions: int
    change: float
    scored: bool

    def within(self, tolerance: Tolerance) -> bool:
        """Whether this is rounding; False for NaN."""
        if not self.scored:
            return self.labels <= math.floor(tolerance.labelled * self.predictions)
        return self.labels <= math.ceil(tolerance.scored * self.predictions) and self.change <= tolerance.change

    def __str__(self) -> str:
        """For messages: differs …."""
        if not self.predictions:
            return "in shape"
        labels = f"in {100 * self.labels / max(1, self.predictions):.3g} % of the labels"
        return f"{labels} and by up to {self.change:.3g} in the softmax of its scores" if self.scored else labels


def compare(model: Model, left: torch.Tensor, right: torch.Tensor, *, strictly: bool = False) -> Difference:
    """Compare two predictions, each (batch, classes, *outputs) or, of labels, (batch, *outputs).

    Parameters
    ----------
    model
        Says what they are.
    left, right
        The predictions.
    strictly
        Whether they should agree exactly: the softmax is then taken at two temperatures.
    """
    scored = model.output is not OutputKind.LABELS
    if left.shape != right.shape:
        return Difference(0, 0, math.inf, True)
    if not scored:
        return Difference(int((left != right).sum()), left.numel(), 0.0, False)
    typical = _typical_margin(left)
    differing, predictions, changes = 0, 0, list[torch.Tensor]()
    for here, there in zip(_pieces(left), _pieces(right), strict=True):
        labels = here.argmax(1) != there.argmax(1)
        differing, predictions = differing + int(labels.sum()), predictions + labels.numel()
        for temperature in {typical, 1.0} if strictly else {typical}:
            shares = [(scores.double() / temperature).softmax(1) for scores in (here, there)]
            changes.append((shares[0] - shares[1]).abs().max())
    change = float(torch.stack(changes).max()) if changes else 0.0  # NaN if any is
    return Difference(differing, predictions, change, True)


def _pieces(scores: torch.Tensor) -> Iterator[torch.Tensor]:
    """Cut scores (batch, classes, *outputs) into pieces of few outputs: softmax in double precision takes memory."""
    for sample in scores.flatten(2) if scores.ndim > 2 else scores[..., None]:
        yield from sample[None].split(max(1, _LARGEST_PIECE // max(1, scores.shape[1])), dim=2)


def _typical_margin(scores: torch.Tensor) -> float:
    """Median distance between the two best scores, ties and single classes left out; 1 if nothing is left."""
    best = [piece.topk(2, dim=1).values.double() for piece in _pieces(scores)]
    margins = torch.cat([(piece[:, 0] - piece[:, 1]).flatten() for piece in best] or [scores.new_zeros(0)])
    margins = margins[torch.isfinite(margins) & (margins > 0)]
    return float(margins.median()) if margins.numel() else 1.0
