"""Make any model strictly local for a group, by masking or by cropping its input.

Inputs that a group's model call never sees have certificate weight 0 for it. Both functions assume that output group
i looks at input group i, as on a grid; an input group that is only partly hidden keeps its level and its weight.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int
from scipy import ndimage

from localsmooth.errors import InvalidInputError
from localsmooth.layout.layout import Layout
from localsmooth.layout.view import View

__all__ = ["masked", "windowed"]


def _require_own_groups(layout: Layout) -> None:
    if layout.inputs.count != layout.outputs.count:
        raise InvalidInputError(
            "layout",
            f"{layout.outputs.count} output groups and {layout.inputs.count} input groups have no one-to-one match",
            "Use as many input groups as output groups, group i of one belonging to group i of the other",
        )


def _visible(labels: Int[np.ndarray, "..."], groups: int) -> Bool[np.ndarray, "groups"]:
    """Which input groups occur among some labels."""
    return np.bincount(labels.ravel(), minlength=groups) > 0


def masked(layout: Layout, distance: int = 0) -> Layout:
    """Replace inputs by a constant where they are farther than `distance` from the group's own inputs.

    Parameters
    ----------
    layout
        The layout to restrict; its groups must match one to one.
    distance
        Largest Chebyshev distance, in input elements, that stays visible; 0 shows the group's own inputs only.

    Returns
    -------
    Layout
        The same partitions; level `inf` for input groups that are wholly hidden.

    Raises
    ------
    InvalidInputError
        If the distance is negative, or the groups do not match one to one.
    """
    _require_own_groups(layout)
    if distance < 0:
        raise InvalidInputError("distance", f"got {distance}", "Pass 0 or more input elements")
    levels = layout.levels.copy()
    views: list[View] = []
    for group in range(layout.outputs.count):
        own = layout.inputs.mask(group)
        steps = ndimage.distance_transform_cdt(~own, metric="chessboard")
        near: Bool[np.ndarray, "..."] = np.asarray(steps) <= distance
        before = layout.view(group)
        hidden = ~near if before.hidden is None else ~near | before.hidden
        views.append(replace(before, hidden=hidden))
        levels[group, ~_visible(layout.inputs.labels[near], layout.inputs.count)] = np.inf
    return replace(layout, levels=levels, views=tuple(views))


def _aligned(start: int, stop: int, size: int, align: int) -> slice:
    return slice(start // align * align, min(size, -(-stop // align) * align))


def windowed(layout: Layout, margin: int, *, align: int = 1) -> Layout:
    """Run the model on each group's bounding box plus a margin only, so that the cost falls with the view.

    Parameters
    ----------
    layout
        The layout to restrict; its groups must match one to one and its label maps be spatial.
    margin
        Input elements around the group's bounding box that the model still sees.
    align
        Windows start and end at multiples of this, for models that downsample.

    Returns
    -------
    Layout
        The same partitions; level `inf` for input groups wholly outside a window.

    Raises
    ------
    InvalidInputError
        If the input size is not a whole multiple of the output size, or a group's outputs do not fit its window.
    """
    _require_own_groups(layout)
    if margin < 0 or align < 1:
        raise InvalidInputError("margin", f"got margin {margin} and align {align}", "Pass margin >= 0 and align >= 1")
    sizes, output_sizes = layout.inputs.shape, layout.outputs.shape
    if len(sizes) != len(output_sizes) or any(n % m for n, m in zip(sizes, output_sizes, strict=True)):
        raise InvalidInputError(
            "layout",
            f"input shape {sizes} is not a whole multiple of output shape {output_sizes}",
            "Use masking instead of windows for this model",
        )
    strides = [n // m for n, m in zip(sizes, output_sizes, strict=True)]
    steps = [int(np.lcm(align, s)) for s in strides]
    levels = layout.levels.copy()
    views: list[View] = []
    boxes = zip(*(ndimage.find_objects(part.labels + 1) for part in (layout.inputs, layout.outputs)), strict=True)
    for group, (input_box, output_box) in enumerate(boxes):
        crop = tuple(
            _aligned(max(0, min(i.start, o.start * s) - margin), min(n, max(i.stop, o.stop * s) + margin), n, step)
            for i, o, n, s, step in zip(input_box, output_box, sizes, strides, steps, strict=True)
        )
        outputs = tuple(slice(c.start // s, c.stop // s) for c, s in zip(crop, strides, strict=True))
        before = layout.view(group)
        views.append(replace(before, inputs=crop, outputs=outputs))
        inside = layout.inputs.labels[crop]
        shown = inside if before.hidden is None else inside[~before.hidden[crop]]
        levels[group, ~_visible(shown, layout.inputs.count)] = np.inf
    return replace(layout, levels=levels, views=tuple(views))
