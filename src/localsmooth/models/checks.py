"""Try a model on one item before thousands of samples depend on it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Num, Shaped

from localsmooth.errors import InvalidInputError
from localsmooth.models.base import Model, OutputKind

__all__ = ["ModelCheck", "check_item", "check_model"]

# Largest change, relative to the largest score, that is put down to rounding. Arithmetic may differ between batch
# sizes and places in the batch (another convolution algorithm, TF32, half precision), hence ROUNDING; for a sample in
# the same place of a batch of the same size it has no reason to, hence EXACT.
_EXACT = 1e-5
_ROUNDING = 0.05
_REPEAT = 0.01


@dataclass(frozen=True)
class ModelCheck:
    """What the trial calls have shown.

    Parameters
    ----------
    classes
        Number of classes.
    output_shape
        Shape of the predictions for one item: `()` for a classifier of whole items, (height, width) for a segmenter.
    output
        What the model returns.
    """

    classes: int
    output_shape: tuple[int, ...]
    output: OutputKind


def check_item(model: Model, item: Num[torch.Tensor, "*item"] | Num[np.ndarray, "*item"]) -> None:
    """Refuse an item that is not a clean input in the model's declared bounds.

    Raises
    ------
    InvalidInputError
        Naming `item`, if it is empty, has values that are not finite, or leaves the bounds.

    Warns
    -----
    UserWarning
        If the item fills so little of the bounds that it is probably scaled otherwise.
    """
    values = torch.as_tensor(item)
    if values.numel() == 0:
        raise InvalidInputError("item", f"shape {tuple(values.shape)} has no element", "Pass one input of the model")
    if not bool(torch.isfinite(values).all()):
        raise InvalidInputError("item", "it contains NaN or infinite values", "Replace them by numbers")
    if model.bounds is None:
        return
    low, high = model.bounds
    smallest, largest = float(values.min()), float(values.max())
    slack = 1e-6 * (high - low)  # rounding in an image library; bounds only matter to noise that clamps
    if not (smallest >= low - slack and largest <= high + slack):
        hint = "other units than the model declares?"
        if low == 0 and smallest < -slack:
            hint = "an image that is already normalised? Normalisation belongs to the model."
        elif low >= -1 and high <= 1 and largest > 2:
            hint = f"a 0..255 image for a [{low:g},{high:g}] model?"
        raise InvalidInputError(
            "item",
            f"values from {smallest:g} to {largest:g} lie outside the declared bounds [{low:g}, {high:g}]: {hint}",
            "Scale the item, or declare the bounds that it has",
        )
    if largest > low and largest - low <= (high - low) / 100:
        warnings.warn(
            f"item: its largest value is {largest:g} where the model declares bounds [{low:g}, {high:g}]; if it is a "
            "[0,1] image for a [0,255] model, scale it",
            UserWarning,
            stacklevel=3,
        )


def check_model(
    model: Model,
    item: Num[torch.Tensor, "*item"] | Num[np.ndarray, "*item"],
    *,
    samples: Float[torch.Tensor, "samples ..."] | None = None,
    seed: int = 0,
) -> ModelCheck:
    """Call a model a few times and refuse it if certificates about it could be false or meaningless.

    Each sample must be predicted by itself: a prediction that depends on the other samples in the batch (batch norm
    in training mode, statistics over the batch) or on chance (dropout) is not a classifier of the noisy input, and
    votes about it would not be independent.

    Parameters
    ----------
    model
        The model.
    item
        A clean item, of shape (*item).
    samples
        At least five noisy versions of the item, drawn as the run will draw them; by default Gaussian ones within the
        bounds.
    seed
        Of the default samples.

    Returns
    -------
    ModelCheck
        Number of classes and shape of the predictions.

    Raises
    ------
    InvalidInputError
        Naming `item` (not a clean input), `samples`, `classes`, `output` (not what was declared) or `model` (NaN,
        chance, dependence on the batch).
    """
    check_item(model, item)
    clean = torch.as_tensor(item)
    clean = clean if clean.is_floating_point() else clean.to(torch.float32)
    if samples is None:
        samples = _default_samples(model, clean, seed)
    if len(samples) < 5 or tuple(samples.shape[1:]) != tuple(clean.shape):
        raise InvalidInputError(
            "samples",
            f"shape {tuple(samples.shape)} for an item of shape {tuple(clean.shape)}",
            "Pass at least five noisy versions of the item",
        )
    samples = samples.to(model.device)
    own, others = samples[:1], samples[1:5]
    batch = torch.cat([own, others[:2]])

    first = _call(model, batch)
    check = _check_form(model, first, len(batch))
    again = _call(model, batch)
    noise = _difference(model, first, again)
    if not noise <= _REPEAT:
        raise InvalidInputError(
            "model",
            f"two calls on the same batch differ {_amount(model, noise)}",
            "Switch off whatever is random in it (dropout, test-time augmentation): the noise is added outside",
        )
    _require_independent(model, batch, torch.cat([own, others[2:]]), max(_EXACT, 4 * noise))
    for batch_again, place in ((own, 0), (torch.cat([others[2:], own]), 2)):
        moved = _call(model, batch_again)
        _check_form(model, moved, len(batch_again))
        change = _difference(model, first[:1], moved[place : place + 1])
        if not change <= _ROUNDING:
            where = "alone" if len(batch_again) == 1 else "in another place of the batch"
            raise _dependent(f"the prediction of a sample differs {_amount(model, change)} when it is {where}")
    return check


def _default_samples(model: Model, clean: torch.Tensor, seed: int) -> torch.Tensor:
    """Five samples that differ in content and in contrast, so that statistics over a batch of them differ too."""
    low, high = model.bounds or (None, None)
    spread = float(clean.std(correction=0)) or 1.0
    scale = spread if low is None or high is None else (high - low) / 4
    normal = torch.randn((5, *clean.shape), generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    clean = clean.to("cpu", torch.float32)
    mirrored = -clean if low is None or high is None else low + high - clean
    flat = torch.full_like(clean, model.hidden_value)
    centres = torch.stack([clean, clean, clean, mirrored, flat])
    strength = torch.tensor([0.25, 0.5, 1.0, 0.25, 0.05]).reshape(5, *(1 for _ in clean.shape))
    made = centres + scale * strength * normal
    return made if low is None else made.clamp(low, high)


def _call(model: Model, batch: torch.Tensor) -> torch.Tensor:
    given = batch.clone()
    made = model(given)
    if not torch.equal(given, batch):
        raise InvalidInputError("model", "it changes the batch that it is given", "Work on a copy inside the model")
    return made


def _check_form(model: Model, output: Shaped[torch.Tensor, "..."], samples: int) -> ModelCheck:
    shape = tuple(output.shape)
    if not shape or shape[0] != samples:
        raise InvalidInputError("model", f"output shape {shape} for {samples} samples", "Put the batch axis first")
    if model.output is OutputKind.LABELS:
        if output.is_floating_point():
            raise InvalidInputError(
                "output", f"declared labels, got {output.dtype}", "Declare LOGITS or return integers"
            )
        if output.numel() and not (int(output.min()) >= 0 and int(output.max()) < model.classes):
            raise InvalidInputError(
                "classes",
                f"labels from {int(output.min())} to {int(output.max())} with {model.classes} classes declared",
                "Declare as many classes as there are labels, numbered from 0",
            )
        return _formed(model, shape[1:])
    if not output.is_floating_point():
        raise InvalidInputError(
            "output", f"declared scores, got {output.dtype}", "Return floating-point scores, or declare LABELS"
        )
    if len(shape) < 2 or shape[1] != model.classes:
        raise InvalidInputError(
            "classes",
            f"{model.classes} declared, output of shape {shape} (batch, classes, …)",
            "Declare the size of axis 1, or put the classes there"
            + (", or pass a threshold for a one-channel map" if len(shape) > 1 and shape[1] == 1 else ""),
        )
    # -inf is a legitimate logit (a class that is ruled out); NaN and +inf have no place among scores.
    if not bool((output < np.inf).all()):
        raise InvalidInputError(
            "model",
            "its scores contain NaN or infinity",
            "Look for overflow in half precision, division by zero, or weights that are NaN",
        )
    if model.output is OutputKind.PROBABILITIES:
        total = output.double().sum(dim=1)
        slack = 1e-3 if output.dtype in (torch.float32, torch.float64) else 2e-2
        if not (bool((output >= 0).all()) and bool(((total - 1).abs() <= slack).all())):
            raise InvalidInputError(
                "output",
                f"declared probabilities, but they range from {float(output.min()):.3g} and sum to "
                f"{float(total.min()):.3g} … {float(total.max()):.3g} over the classes",
                "Declare LOGITS, or apply a softmax",
            )
    return _formed(model, shape[2:])


def _formed(model: Model, outputs: tuple[int, ...]) -> ModelCheck:
    if 0 in outputs:
        raise InvalidInputError("model", f"predictions of shape {outputs} for one item", "Return at least one")
    return ModelCheck(model.classes, outputs, model.output)


def _difference(model: Model, left: torch.Tensor, right: torch.Tensor) -> float:
    """Share of labels that differ, or the largest change of a score relative to the largest score."""
    if left.shape != right.shape:
        return float("inf")
    if model.output is OutputKind.LABELS:
        return float((left != right).double().mean())
    left, right = left.double(), right.double()
    same = left == right  # also where both are -inf
    scale = float(torch.where(torch.isfinite(left), left, 0.0).abs().max()) or 1.0
    return float(torch.where(same, 0.0, (left - right).abs()).max()) / scale


def _amount(model: Model, difference: float) -> str:
    if not np.isfinite(difference):
        return "in shape or by infinity"
    if model.output is OutputKind.LABELS:
        return f"in {100 * difference:.3g} % of the labels"
    return f"by {100 * difference:.3g} % of the largest score"


def _dependent(problem: str) -> InvalidInputError:
    return InvalidInputError(
        "model",
        problem,
        "Predict each sample by itself: batch norm in evaluation mode with running statistics, no statistics over the "
        "batch, no quantisation scale computed from the batch",
    )


def _require_independent(model: Model, batch: torch.Tensor, other: torch.Tensor, tolerance: float) -> None:
    """Compare the first sample's prediction among two sets of companions, in batches of equal size."""
    here, there = _call(model, batch), _call(model, other)
    _check_form(model, there, len(other))
    change = _difference(model, here[:1], there[:1])
    if not change <= tolerance:
        raise _dependent(
            f"the prediction of a sample differs {_amount(model, change)} when the other samples in its batch change"
        )
