"""Arrays that are not certified, under noise of one level everywhere: what `plan` shows a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from localsmooth.datasets import ItemSet
from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.layout import Layout, Partition, item_digest
from localsmooth.models import Model
from localsmooth.sampling import ArraySubject, SamplingOptions, Subject, prepare_items
from localsmooth.tasks.arrays.inputs import layouts_of
from localsmooth.tasks.smoothing import Smoothing

__all__ = ["calibrated_items", "everywhere", "subjects_by_level"]


def calibrated_items(
    subject: ArraySubject,
    certified: ItemSet,
    smoothing: Smoothing,
    calibration: object,
    levels: Sequence[Float[np.ndarray, " parameters"]],
    seed: int,
    options: SamplingOptions,
) -> Sequence[Subject]:
    """Make a subject of calibration items for each level; see `Task.calibrated`.

    Raises
    ------
    InvalidInputError
        If they are no `ItemSet`, or one of them is to be certified.
    """
    require_kind("calibration", calibration, ItemSet)
    assert isinstance(calibration, ItemSet)
    known = {item_digest(item.image) for item in certified}
    if any(item_digest(item.image) in known for item in calibration):
        raise InvalidInputError(
            "calibration",
            "an item is to be certified: levels chosen by what noise leaves of its predictions would change with the "
            "perturbation",
            "Name items that are not certified, or none",
        )
    layout = smoothing.layout[0] if isinstance(smoothing.layout, Sequence) else smoothing.layout
    own = layouts_of(subject.model, calibration, layout)
    images = [item.image for item in calibration]
    return subjects_by_level(subject.model, images, own, subject, levels, seed, options)


def subjects_by_level(
    model: Model,
    images: Sequence[np.ndarray],
    shapes: Sequence[Layout],
    subject: ArraySubject,
    levels: Sequence[Float[np.ndarray, " parameters"]],
    seed: int,
    options: SamplingOptions,
) -> Sequence[Subject]:
    """Put noise of one level at a time everywhere on some inputs.

    Parameters
    ----------
    model
        The base classifier of these inputs.
    images, shapes
        The inputs, and for each a layout of its shapes; groups and levels of these are not looked at.
    subject
        What is certified, which says how noise is drawn.
    levels, seed, options
        As in `Task.calibrated`.
    """
    several = subject.layouts[0].levels.ndim > 2
    made: list[Subject] = []
    for level in levels:
        layouts = [everywhere(each.outputs.shape, each.inputs.shape, level, several) for each in shapes]
        items = prepare_items(model, images, layouts, subject.noise, options.item_dtype)
        made.append(ArraySubject(model, items, layouts, subject.noise, seed))
    return made


def everywhere(
    outputs: tuple[int, ...], inputs: tuple[int, ...], level: Float[np.ndarray, " parameters"], several: bool
) -> Layout:
    """Make a layout of one group and one level.

    Parameters
    ----------
    outputs, inputs
        Shapes.
    level
        The level, or its parameters.
    several
        Whether levels have several parameters.
    """
    own, seen = (Partition(np.zeros(shape, np.int32)) for shape in (outputs, inputs))
    return Layout(own, seen, level.reshape((1, 1, -1) if several else (1, 1)))
