"""What is to be certified: items from arrays, a layout for each, and names for the classes."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from os import PathLike

import numpy as np
import torch

from localsmooth.datasets import Item, ItemSet
from localsmooth.errors import InvalidInputError, LocalsmoothError, require_distinct, require_kind, require_several
from localsmooth.layout import Layout, LayoutRecipe
from localsmooth.memory import is_out_of_memory
from localsmooth.models import Model, check_form, check_item, check_model

__all__ = ["class_names_of", "item_set", "layouts_of", "require_model", "require_one_each"]

_LEADING_AXIS = "Pass one array per item, channels first (a single image needs a leading axis: image[None])"
_LARGE = 1 << 22  # elements of an item from which on the model gets but one sample of all of it to see


def item_set(
    images: ItemSet | Sequence[np.ndarray] | np.ndarray,
    labels: Sequence[np.ndarray] | np.ndarray | None,
    class_names: Sequence[str] | None,
    ignore_label: int | None,
) -> ItemSet:
    """The items of arrays, or those of an `ItemSet` as they are; see `certify`.

    Raises
    ------
    InvalidInputError
        For arrays that are no items, labels that are no whole numbers, and what an `ItemSet` has already.
    """
    if isinstance(images, ItemSet):
        if labels is not None or class_names is not None or ignore_label is not None:
            raise InvalidInputError(
                "labels",
                "an ItemSet has labels, class names and an ignored label of its own",
                "Pass them to the ItemSet",
            )
        return images
    require_several("images", images, "arrays, or an ItemSet")
    if labels is not None:
        require_several("labels", labels, "label maps")
    if ignore_label is not None:
        require_kind("ignore_label", ignore_label, Integral)
    if labels is not None and len(labels) != len(images):
        one = len(images) and len(labels) and np.shape(images[0]) == (len(labels), *np.shape(labels[0]))
        if one:
            raise InvalidInputError(
                "images", f"one image of shape {(len(images), *np.shape(images[0]))} and its labels", _LEADING_AXIS
            )
        raise InvalidInputError("labels", f"{len(labels)} label maps for {len(images)} items", "Give one per item")
    made: list[Item] = []
    for index in range(len(images)):
        image = np.asarray(images[index])
        if (
            image.ndim < 2 or image.size == 0 or image.dtype.kind not in "fiub"  # booleans are bits
        ):
            raise InvalidInputError(
                "images",
                f"item {index} has shape {image.shape} and type {image.dtype}",
                "Pass numbers, channels first, one array per item (a single image needs a leading axis: image[None])",
            )
        label = None if labels is None else np.asarray(labels[index])
        if label is not None and label.dtype.kind not in "iub":
            raise InvalidInputError("labels", f"item {index} has labels of type {label.dtype}", "Pass whole numbers")
        made.append(
            Item(
                index,
                f"item {index}",
                np.ascontiguousarray(image, dtype=np.float32),
                None if label is None else np.ascontiguousarray(label, dtype=np.int64),
            )
        )
    return ItemSet(made, class_names, None if ignore_label is None else int(ignore_label))


def require_model(model: object) -> None:
    """Refuse what is no `Model`, and say what to wrap it in.

    Raises
    ------
    InvalidInputError
        Naming the adapter.
    """
    if isinstance(model, Model):
        return
    remedy = "Pass a TorchModel, an OnnxModel or a CallableModel"
    if isinstance(model, torch.nn.Module):
        remedy = "Wrap it, with the range of its clean inputs: ls.TorchModel(module.eval(), bounds=(0, 1), classes=…)"
    elif isinstance(model, str | PathLike):
        remedy = 'Name the file in an adapter: ls.OnnxModel("model.onnx", bounds=(0, 1))'
    elif callable(model):
        remedy = "Wrap it: ls.CallableModel(function, name=…, bounds=(0, 1), classes=…)"
    raise InvalidInputError("model", f"got a {type(model).__name__}", remedy)


def layouts_of(
    model: Model, items: ItemSet, layout: Layout | LayoutRecipe | Sequence[Layout | LayoutRecipe]
) -> list[Layout]:
    """One layout per item, given for all or for each; recipes and the model are tried once for each size.

    Raises
    ------
    InvalidInputError
        If the model cannot take an item, or a layout partitions something else than its predictions.
    """
    given = [layout] * len(items) if isinstance(layout, Layout | LayoutRecipe) else list(layout)
    if len(given) != len(items):
        raise InvalidInputError("layout", f"{len(given)} layouts for {len(items)} items", "Pass one for each item")
    shapes: dict[tuple[int, ...], tuple[int, ...]] = {}
    made: dict[tuple[int, tuple[int, ...]], Layout] = {}
    for item, rule in zip(items, given, strict=True):
        size = item.image.shape
        check_item(model, torch.tensor(item.image), called=item.name)
        if size not in shapes:
            shapes[size] = _output_shape(model, item)
        if (id(rule), size) not in made:
            made[id(rule), size] = _fitting(rule, size, shapes[size])
    return [made[id(rule), item.image.shape] for item, rule in zip(items, given, strict=True)]


def require_one_each(items: ItemSet, layouts: Sequence[Layout], what: str, remedy: str) -> None:
    """Refuse a model that does not make one prediction for each position of an item.

    Parameters
    ----------
    items, layouts
        Items, each with its layout.
    what
        What positions are called.
    remedy
        What to do about it.

    Raises
    ------
    InvalidInputError
        Naming the item.
    """
    for item, layout in zip(items, layouts, strict=True):
        if layout.outputs.shape != item.image.shape[1:]:
            problem = (
                f'predictions of shape {layout.outputs.shape} for the {item.image.shape[1]} {what} of "{item.name}"'
            )
            raise InvalidInputError("model", f"it makes {problem}", remedy)


def _fitting(rule: Layout | LayoutRecipe, size: tuple[int, ...], shape: tuple[int, ...]) -> Layout:
    """The layout for an item of a size, checked against the shape of the predictions."""
    if not shape:
        raise InvalidInputError(
            "model", "it makes one prediction for the whole item", "Return predictions of shape (batch, …, 1)"
        )
    chosen = rule if isinstance(rule, Layout) else rule.layout(size, shape)
    if chosen.outputs.shape != shape:
        raise InvalidInputError(
            "layout",
            f"it partitions outputs of shape {chosen.outputs.shape}, the model predicts {shape}",
            "Partition the model's predictions for an item of this size",
        )
    return chosen


def _output_shape(model: Model, item: Item) -> tuple[int, ...]:
    """Try the model on an item, and say what was passed where it cannot take it."""
    try:
        # Sampling tries the model with several noisy samples of a window; here they would be of the whole item.
        check = check_model if item.image.size < _LARGE else check_form
        return check(model.under(0.0), torch.tensor(item.image)).output_shape
    except InvalidInputError as error:
        if item.image.ndim == 2 and error.field in ("model", "classes", "upsample"):
            raise InvalidInputError("images", f"{_tried(item)}: {error}", _LEADING_AXIS) from error
        raise
    except LocalsmoothError as error:
        raise InvalidInputError("images", f"{_tried(item)}: {error}", _remedy(item, error)) from error
    except Exception as error:  # a model may raise anything
        problem = f"{_tried(item)}: {type(error).__name__}: {error}"
        raise InvalidInputError("images", problem, _remedy(item, error)) from error


def _tried(item: Item) -> str:
    return f'the model fails on "{item.name}" of shape {item.image.shape}'


def _remedy(item: Item, error: Exception) -> str:
    """What to try next, from what went wrong."""
    shape = item.image.shape
    if is_out_of_memory(error):
        return "Free some memory, certify smaller items, or use a machine with more of it"
    if item.image.ndim == 2:
        return _LEADING_AXIS
    if shape[-1] in (1, 3, 4) and shape[0] not in (1, 3, 4):
        return "Channels come first: transpose the image"
    if any(word in str(error).lower() for word in ("shape", "size", "dimension", "channel", "broadcast", "rank")):
        return "Pass inputs of the shape that the model takes, or Preprocessing(pad_multiple=…) where few sizes do"
    return "Call the model on this item to find out why: it gets a batch of one, channels first"


def class_names_of(items: ItemSet, model: Model) -> list[str]:
    """Name of every class of the model: as the items say, else as the model does, else by its number.

    Raises
    ------
    InvalidInputError
        If there are names for another number of classes, or the model calls two classes the same.
    """
    classes = model.classes
    if items.class_names is None:
        names = list(model.class_names or [f"class {number}" for number in range(classes)])
        require_distinct("class_names", names, "classes")
        return names
    if len(items.class_names) != classes:
        raise InvalidInputError(
            "class_names", f"{len(items.class_names)} names for {classes} classes", "Name every class of the model once"
        )
    return [str(name) for name in items.class_names]
