"""Try a model on one item before thousands of samples depend on it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Num, Shaped

from localsmooth.errors import InvalidInputError
from localsmooth.models.base import Model, OutputKind
from localsmooth.models.comparison import Difference, compare, exact, rounding
from localsmooth.models.outputs import require_classes_first
from localsmooth.models.unseen import Unseen

__all__ = ["ModelCheck", "check_batch", "check_form", "check_item", "check_model", "warn_of_scale"]

_FEWEST = 5  # noisy samples: two that are followed, three that make up other batches


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


def check_item(model: Model, item: Num[torch.Tensor, "*item"] | Num[np.ndarray, "*item"], *, called: str = "") -> None:
    """Refuse an item that is not a clean input in the model's declared bounds.

    Parameters
    ----------
    model
        Declares the bounds.
    item
        The item.
    called
        Its name among several, for the error.

    Raises
    ------
    InvalidInputError
        Naming `item`, if it is empty, has values that are not finite, or leaves the bounds.
    """
    values, which = torch.as_tensor(item), f"{called}: " if called else ""
    if values.numel() == 0:
        raise InvalidInputError(
            "item", f"{which}shape {tuple(values.shape)} has no element", "Pass one input of the model"
        )
    if not bool(torch.isfinite(values).all()):
        raise InvalidInputError("item", f"{which}it contains NaN or infinite values", "Replace them by numbers")
    if model.bounds is None:
        return
    low, high = model.bounds
    smallest, largest = float(values.min()), float(values.max())
    slack = 1e-6 * (high - low)  # rounding in an image library; bounds only matter to noise that clamps
    if not (smallest >= low - slack and largest <= high + slack):
        hint = "other units than the model declares"
        if low == 0 and smallest < -slack:
            hint = "perhaps an image that is already normalised; normalisation belongs to the model"
        elif low >= -1 and high <= 1 and largest > 2:
            hint = f"perhaps a 0..255 image for a [{low:g},{high:g}] model"
        raise InvalidInputError(
            "item",
            f"{which}values from {smallest:g} to {largest:g} lie outside the declared bounds "
            f"[{low:g}, {high:g}]: {hint}",
            "Scale the item, or declare the bounds that it has",
        )


def warn_of_scale(model: Model, items: Sequence[Num[np.ndarray, "..."]], names: Sequence[str]) -> None:
    """Say, once for all items, that some fill so little of the bounds that they are probably scaled otherwise.

    Parameters
    ----------
    model
        Declares the bounds.
    items
        Clean items, as `check_item` lets them through.
    names
        What they are called.

    Warns
    -----
    UserWarning
        If there are such items: with the name where it is one, or else with their number.
    """
    if model.bounds is None:
        return
    low, high = model.bounds
    largest = [float(item.max()) for item in items]
    dim = [(top, name) for top, name in zip(largest, names, strict=True) if low < top <= low + (high - low) / 100]
    if dim:
        which, them = f"items: no value of {len(dim)} of the {len(largest)}", "these are [0,1] images"
        if len(dim) == 1:
            which, them = f'item "{dim[0][1]}": no value', "it is a [0,1] image"
        warnings.warn(
            f"{which} is above {max(dim)[0]:g} where the model declares "
            f"bounds [{low:g}, {high:g}]; if {them} for a [0,255] model, scale {'it' if len(dim) == 1 else 'them'}",
            UserWarning,
            stacklevel=3,
        )


def check_model(
    model: Model,
    item: Num[torch.Tensor, "*item"] | Num[np.ndarray, "*item"],
    *,
    samples: Float[torch.Tensor, "samples ..."] | None = None,
    batch_size: int | None = None,
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
    batch_size
        Also try batches of this size, the one that will be used: see `check_batch`. None for small ones only, which a
        model that behaves otherwise in large batches passes.
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
        chance, dependence on the batch or on what it was shown first).

    Warns
    -----
    UserWarning
        If copies of the model cannot be told apart from it, so that a dependence on what it was shown first would not
        be noticed.
    """
    check_item(model, item)
    clean = torch.as_tensor(item)
    clean = clean if clean.is_floating_point() else clean.to(torch.float32)
    if samples is None:
        samples = _default_samples(model, clean, seed)
    if tuple(samples.shape[1:]) != tuple(clean.shape):
        raise InvalidInputError(
            "samples",
            f"shape {tuple(samples.shape)} for an item of shape {tuple(clean.shape)}",
            "Pass at least five noisy versions of the item",
        )
    samples = _enough(samples).to(model.device)
    own, others = samples[:1], samples[1:5]
    batch = torch.cat([own, others[:2]])

    unseen = Unseen.of(model)
    first = _call(model, batch)
    check = _check_form(model, first, len(batch))
    _require_repeatable(model, first, _call(model, batch))
    _require_independent(model, first[:1], _call(model, torch.cat([own, others[2:]]))[:1])
    alone, moved = _call(model, own), _call(model, torch.cat([others[2:], own]))
    for made, place, where in ((alone, 0, "alone"), (moved, 2, "in another place of the batch")):
        _check_form(model, made, len(made))
        _require_similar(model, first[:1], made[place : place + 1], where)
    _require_no_memory(unseen, own, alone, others[3:4])
    if batch_size is not None:
        check_batch(model, samples, batch_size)
    return check


def check_form(model: Model, item: Num[torch.Tensor, "*item"] | Num[np.ndarray, "*item"]) -> ModelCheck:
    """Call a model on one clean item, and refuse it if it does not return what it declares, or keeps what it saw first.

    Raises
    ------
    InvalidInputError
        As `check_model`, which sees more and needs the memory of several samples.
    """
    check_item(model, item)
    clean, unseen = torch.as_tensor(item)[None].to(model.device), Unseen.of(model)
    made = _call(model, clean)
    check = _check_form(model, made, 1)
    other = torch.rand(clean.shape, generator=torch.Generator().manual_seed(0))
    low, high = model.bounds or (float(clean.min()), float(clean.max()) + 1.0)
    _require_no_memory(unseen, clean, made, (low + (high - low) * other).to(clean.device, clean.dtype))
    return check


def check_batch(model: Model, samples: Float[torch.Tensor, "samples ..."], batch_size: int) -> None:
    """Refuse a model whose predictions depend on chance or on the rest of the batch in batches of a given size.

    Two samples are followed at the first, the middle and the last place, and at a few between, of two batches with
    different companions (two calls of that size), where their predictions must agree exactly, and compared with those
    in a batch of three.

    Parameters
    ----------
    model
        The model.
    samples
        At least five noisy inputs, of shape (samples, *item).
    batch_size
        Samples per call.

    Raises
    ------
    InvalidInputError
        Naming `samples`, `batch_size`, or `model` and what its predictions depend on.
    """
    if batch_size < 1:
        raise InvalidInputError("batch_size", f"got {batch_size}", "Pass at least 1")
    samples = _enough(samples).to(model.device)
    small = _call(model, samples[:3])
    _check_form(model, small, 3)
    between = np.random.default_rng(batch_size).integers(batch_size, size=5).tolist()
    places = sorted({0, batch_size // 2, batch_size - 1, *between})
    followed = [number % 2 for number in range(len(places))]
    outputs: list[torch.Tensor] = []
    for companions in ((2, 3), (4, 2)):
        chosen = [companions[place % 2] for place in range(batch_size)]
        for place, number in zip(places, followed, strict=True):
            chosen[place] = number
        made = _call(model, samples[chosen])
        _check_form(model, made, batch_size)
        outputs.append(made[places])
    _require_independent(model, outputs[0], outputs[1], f" of {batch_size}")
    _require_similar(model, small[followed], outputs[0], f"in a batch of {batch_size} instead of 3")


def _enough(samples: torch.Tensor) -> torch.Tensor:
    if len(samples) < _FEWEST:
        raise InvalidInputError(
            "samples", f"shape {tuple(samples.shape)}", "Pass at least five noisy versions of the item"
        )
    return samples


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


def _require_no_memory(unseen: Unseen[Model], own: torch.Tensor, expected: torch.Tensor, other: torch.Tensor) -> None:
    """Hold what a model says of the sample that it was shown first against a copy that is shown another one first."""
    unseen.require_same_weights()
    found = unseen.after(other, own, _call)
    if found is None or (change := compare(unseen.model, expected, found, strictly=True)).within(exact()):
        return
    _require_repeatable(unseen.model, expected, _call(unseen.model, own))
    raise InvalidInputError(
        "model",
        f"its prediction of a sample differs {change} once it was shown another one before",
        "Keep nothing of what it is shown (caches, statistics of the first batch); the method by which a module "
        "forgets is named by reset=",
    )


def _call(model: Model, batch: torch.Tensor) -> torch.Tensor:
    given = batch.clone()
    with model.watching():
        made = model(given)
    if not torch.equal(given, batch):
        raise InvalidInputError("model", "it changes the batch that it is given", "Work on a copy inside the model")
    return made.clone()  # a model may write the next prediction into the same memory


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
    require_classes_first(output, (), model.classes)
    # -inf is a legitimate logit (a class that is ruled out); NaN and +inf have no place among scores.
    if not bool((output < np.inf).all()):
        raise InvalidInputError(
            "model",
            "its scores contain NaN or infinity",
            "Look for overflow in half precision, division by zero, or weights that are NaN",
        )
    if not bool((output.amax(dim=1) > -np.inf).all()):
        raise InvalidInputError("model", "all its scores are -infinity somewhere", "Leave one class possible")
    if model.output is OutputKind.PROBABILITIES:
        total = output.sum(dim=1, dtype=torch.float64)
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


def _require_repeatable(model: Model, first: torch.Tensor, again: torch.Tensor) -> None:
    change = compare(model, first, again, strictly=True)
    if not change.within(exact()):
        raise InvalidInputError(
            "model",
            f"two calls on the same batch differ {change}",
            "Switch off whatever is random in it (dropout, test-time augmentation): the noise is added outside. If "
            "only the order of additions is, use torch.use_deterministic_algorithms(True)",
        )


def _require_independent(model: Model, here: torch.Tensor, there: torch.Tensor, size: str = "") -> None:
    """Compare predictions of the same samples at the same places of batches with different companions."""
    change = compare(model, here, there, strictly=True)
    if not change.within(exact()):
        raise _dependent(change, f"when the other samples in its batch{size} change")


def _require_similar(model: Model, here: torch.Tensor, there: torch.Tensor, where: str) -> None:
    """Compare predictions of the same samples in batches of different sizes or at different places."""
    change = compare(model, here, there)
    if not change.within(rounding(model)):
        raise _dependent(change, f"when it is {where}")


def _dependent(change: Difference, when: str) -> InvalidInputError:
    return InvalidInputError(
        "model",
        f"the prediction of a sample differs {change} {when}",
        "Predict each sample by itself: batch norm in evaluation mode with running statistics, no statistics over the "
        "batch, no quantisation scale computed from the batch (quantise statically)",
    )
