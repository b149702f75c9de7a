"""What happens to a network's raw outputs before they count as predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import torch
from jaxtyping import Float, Integer
from torch.nn import functional

from localsmooth.errors import InvalidInputError

__all__ = [
    "above_threshold",
    "ambiguous",
    "classes_first",
    "cropped",
    "named_output",
    "output_tensor",
    "require_classes_first",
    "require_fitting_axis",
    "resized",
]

_INTERPOLATION = {1: "linear", 2: "bilinear", 3: "trilinear"}


def output_tensor(output: Any) -> tuple[torch.Tensor, bool]:
    """Find the prediction in what a torch module returned.

    Parameters
    ----------
    output
        A tensor; a mapping with "out" (torchvision); or an object or mapping with `logits` (Hugging Face).

    Returns
    -------
    tuple
        The tensor, and whether it came from `logits`, which Hugging Face segmenters return at low resolution.

    Raises
    ------
    InvalidInputError
        If it is none of these.
    """
    if isinstance(output, torch.Tensor):
        return output, False
    mapping = cast(Mapping[Any, Any], output) if isinstance(output, Mapping) else {}
    for found, low in ((mapping.get("out"), False), (getattr(output, "logits", mapping.get("logits")), True)):
        if isinstance(found, torch.Tensor):
            return found, low
    held = f" with the keys {list(mapping)}" if mapping else ""
    raise InvalidInputError(
        "module",
        f"it returned a {type(output).__name__}{held}, which has no tensor under 'out' or 'logits'",
        "Pass select=…: a key, an attribute, a position, or a function that takes the tensor out of what it returns",
    )


def named_output(output: Any, name: str | int) -> torch.Tensor:
    """Take one tensor out of what a module returned.

    Parameters
    ----------
    output
        A mapping, an object with attributes, or a tuple or list.
    name
        The key or attribute; or the position, in a mapping that of its values.

    Raises
    ------
    InvalidInputError
        If there is no such tensor, naming those that there are.
    """
    held: dict[Any, Any] = {}
    named = getattr(output, "_fields", None)
    if isinstance(output, Mapping):
        held = dict(cast("Mapping[Any, Any]", output))
        if name not in held and not isinstance(name, str):
            held = dict(enumerate(held.values()))
    elif isinstance(output, tuple | list) and not (named and isinstance(name, str)):
        held = dict(enumerate(cast("Sequence[Any]", output)))
    elif not isinstance(output, torch.Tensor):
        held = {key: getattr(output, key) for key in named or getattr(output, "__dict__", None) or ()}
    if isinstance(name, int) and name < 0:
        name += len(held)
    found = held.get(name)
    if isinstance(found, torch.Tensor):
        return found
    known = [key for key, value in held.items() if isinstance(value, torch.Tensor)]
    raise InvalidInputError(
        "select",
        f"there is no tensor {name!r} in the {type(output).__name__} that the module returned",
        f"Pass one of {known}" if known else "Pass a function that takes the tensor out of it, or leave select out",
    )


def classes_first(made: torch.Tensor, axis: int | Literal["none"], *, labels: bool) -> torch.Tensor:
    """Move the classes of scores behind the batch axis, or leave an axis of size 1 out of labels.

    Parameters
    ----------
    made
        What the network returned, its batch axis first.
    axis
        Where its classes are; "none" for a map without such an axis, which gets one of size 1.
    labels
        Whether these are labels.

    Raises
    ------
    InvalidInputError
        If there is no such axis, or one of labels has another size than 1.
    """
    shape = tuple(made.shape)
    if axis == "none":
        return made.unsqueeze(1)
    place = axis if axis > 0 else made.ndim + axis
    if not 0 < place < made.ndim:
        raise InvalidInputError(
            "class_axis", f"there is no axis {axis} behind the batch axis of outputs of shape {shape}", "Pass another"
        )
    if not labels:
        return made.movedim(place, 1)
    if shape[place] != 1:
        raise InvalidInputError(
            "class_axis",
            f"labels of shape {shape} have several entries on axis {axis}",
            "Leave class_axis out for labels without an axis of size 1, or declare scores",
        )
    return made.squeeze(place)


def require_classes_first(
    scores: torch.Tensor,
    spatial: tuple[int, ...],
    classes: int | None,
    *,
    inferred: bool = False,
    said: bool = False,
) -> None:
    """Refuse scores whose classes do not lie on axis 1, before anything else is done to that axis.

    Parameters
    ----------
    scores
        What the network returned, its batch axis first.
    spatial
        The spatial shape of the network's input.
    classes
        Number of classes; None for one channel and a threshold.
    inferred
        Whether that number is the size of axis 1 itself, and nobody's word.
    said
        Whether somebody said where the classes are, so that they were moved to axis 1.

    Raises
    ------
    InvalidInputError
        If axis 1 has another size; or its size says nothing, and the axes between the batch and the last one are the
        input's spatial axes where those behind axis 1 are not.
    """
    shape = tuple(scores.shape)
    wanted = 1 if classes is None else classes
    if not said and len(shape) > 2:
        second, last = shape[1] == wanted, shape[-1] == wanted
        fits_second, fits_last = _proportional(shape[2:], spatial), _proportional(shape[1:-1], spatial)
        if last > second or ((inferred or last) and fits_last > fits_second):
            raise InvalidInputError(
                "model",
                f"it returned shape {shape} for inputs of spatial shape {spatial}: the classes seem to lie last",
                "Pass class_axis=-1, or put the classes on axis 1, right behind the batch axis",
            )
    if classes is None and not said and len(shape) > 1 and shape[1] != 1 and shape[1:] == spatial:
        raise InvalidInputError(
            "threshold", f"it returned shape {shape}, without an axis for a channel", 'Pass class_axis="none"'
        )
    if said and classes is not None and len(shape) > 1 and shape[1] != classes:
        raise InvalidInputError(
            "class_axis",
            f"the axis that it names has {shape[1]} entries where {classes} classes are declared",
            "Name the axis of the classes, or declare as many as there are",
        )
    if classes is not None and (len(shape) < 2 or shape[1] != classes):
        raise InvalidInputError(
            "classes",
            f"{classes} declared, output of shape {shape} (batch, classes, …)",
            "Declare the size of axis 1, or put the classes there"
            + (", or pass a threshold for a one-channel map" if len(shape) > 1 and shape[1] == 1 else ""),
        )


def ambiguous(shape: tuple[int, ...], spatial: tuple[int, ...], classes: int) -> bool:
    """Whether scores of this shape fit classes on axis 1 no better than classes that lie last.

    Parameters
    ----------
    shape
        Of the scores, the batch axis first.
    spatial
        The spatial shape of the network's input.
    classes
        Number of classes.
    """
    both = len(shape) > 2 and shape[1] == shape[-1] == classes
    return both and _proportional(shape[2:], spatial) == _proportional(shape[1:-1], spatial)


def _proportional(sizes: tuple[int, ...], spatial: tuple[int, ...]) -> bool:
    """Whether outputs of these sizes cover an input, each axis reduced alike; one axis alone must be as long."""
    if len(sizes) != len(spatial) or not spatial:
        return False
    same = sizes == spatial
    return same or (
        len(sizes) > 1 and all(size * spatial[0] == sizes[0] * of for size, of in zip(sizes, spatial, strict=True))
    )


def require_fitting_axis(shape: tuple[int, ...], axis: int, spatial: tuple[int, ...]) -> None:
    """Refuse an axis of classes whose number is nobody's word, where the other axes cover the input with another one.

    Parameters
    ----------
    shape
        Of what the network returned, its batch axis first.
    axis
        Where its classes are said to be.
    spatial
        The spatial shape of the network's input.

    Raises
    ------
    InvalidInputError
        Naming the axis that fits.
    """
    rest = {place: (*shape[1:place], *shape[place + 1 :]) for place in range(1, len(shape))}
    said = axis if axis > 0 else len(shape) + axis
    if said not in rest or not spatial or _proportional(rest[said], spatial):
        return
    for place, outputs in rest.items():
        if outputs == spatial:
            raise InvalidInputError(
                "class_axis",
                f"outputs of shape {shape} would be {shape[said]} classes on axis {said} for {rest[said]} outputs of "
                f"inputs {spatial}; with classes on axis {place} they are one for each",
                f"Pass class_axis={place}, or say that there are classes={shape[said]}",
            )


def resized(
    scores: Float[torch.Tensor, "batch classes *coarse"], size: tuple[int, ...]
) -> Float[torch.Tensor, "batch classes *fine"]:
    """Interpolate scores (bi-, tri-)linearly to another spatial size, corners not aligned.

    Raises
    ------
    InvalidInputError
        If the scores have other than one to three spatial axes, or other than `size` has.
    """
    axes = scores.ndim - 2
    if axes != len(size) or axes not in _INTERPOLATION:
        raise InvalidInputError(
            "upsample",
            f"outputs of shape {tuple(scores.shape)} (batch, classes, …) cannot be resized to {size}",
            "Pass upsample=False, or one size per spatial axis (one to three axes)",
        )
    if tuple(scores.shape[2:]) == size:
        return scores
    return functional.interpolate(scores, size=size, mode=_INTERPOLATION[axes], align_corners=False)


def cropped(output: torch.Tensor, first_axis: int, padded: tuple[int, ...], spatial: tuple[int, ...]) -> torch.Tensor:
    """Cut off the outputs that belong to padding at the end of the input's spatial axes.

    Parameters
    ----------
    output
        A prediction for the padded input.
    first_axis
        Its first spatial axis.
    padded, spatial
        The input's spatial shape with and without padding.

    Raises
    ------
    InvalidInputError
        If the outputs have no whole-numbered stride, so that they cannot be matched to the unpadded input.
    """
    if padded == spatial:
        return output
    sizes = tuple(output.shape[first_axis:])
    kept = [size * wanted // whole for size, wanted, whole in zip(sizes, spatial, padded, strict=False)]
    if len(sizes) != len(padded) or any(
        keep * whole != size * wanted for keep, size, wanted, whole in zip(kept, sizes, spatial, padded, strict=True)
    ):
        raise InvalidInputError(
            "pad_multiple",
            f"outputs of size {sizes} for an input of size {spatial} padded to {padded} cannot be cropped back",
            "Pass upsample=True, or inputs whose size needs no padding",
        )
    return output[(..., *(slice(keep) for keep in kept))]


def above_threshold(
    scores: Float[torch.Tensor, "batch one *outputs"], threshold: float
) -> Integer[torch.Tensor, "batch *outputs"]:
    """Label 1 where a one-channel map exceeds the threshold, else 0.

    NaN would compare as class 0. On a CPU it is refused; elsewhere, where looking would mean to wait for the device, it
    becomes the label −1, which is no class and refused when the predictions of a chunk are counted.

    Raises
    ------
    InvalidInputError
        If there are several channels, or a value on a CPU is NaN.
    """
    if scores.ndim < 2 or scores.shape[1] != 1:
        raise InvalidInputError(
            "threshold",
            f"outputs of shape {tuple(scores.shape)} do not have one channel",
            "Leave the threshold out for models with one score per class",
        )
    scores = scores[:, 0]
    if scores.device.type != "cpu":
        return marked(scores, threshold)
    if bool(scores.isnan().any()):
        raise InvalidInputError(
            "model",
            "its scores contain NaN",
            "Look for overflow in half precision, division by zero, or an input that already contains NaN",
        )
    return (scores > threshold).to(torch.uint8)


def marked(scores: Float[torch.Tensor, "batch *outputs"], threshold: float) -> Integer[torch.Tensor, "batch *outputs"]:
    """Label 1 above the threshold, −1 for NaN, else 0, without waiting for the device."""
    return (scores > threshold).to(torch.int8) - scores.isnan().to(torch.int8)
