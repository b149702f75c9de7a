"""Make any model strictly local for a group, by masking or by cropping its input.

Inputs that a group's model call never sees have certificate weight 0 for it: input groups are split along the borders
of what is seen, so that each is seen by an output group wholly or not at all. Both functions assume that output group i
looks at input group i, as on a grid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int
from scipy import ndimage

from localsmooth.errors import InvalidInputError
from localsmooth.layout.layout import Layout
from localsmooth.layout.partition import Partition
from localsmooth.layout.view import View

__all__ = ["masked", "windowed"]


_MOST_LEVELS = 1 << 26  # numbers in a level matrix, half a gigabyte


def _own_cells(layout: Layout) -> Partition:
    """Input cells, of which cell i belongs to output group i."""
    cells = layout.inputs if layout.cells is None else layout.cells
    if cells.count != layout.outputs.count:
        raise InvalidInputError(
            "layout",
            f"{layout.outputs.count} output groups and {cells.count} input groups have no one-to-one match",
            "Use as many input groups as output groups, group i of one belonging to group i of the other",
        )
    return cells


def _seen(labels: Int[np.ndarray, "..."], view: View, groups: int) -> Bool[np.ndarray, "groups"]:
    """Which input groups an output group sees anything of."""
    shown = labels[view.window]
    inside = shown if view.hidden is None else shown[~view.hidden[view.window]]
    return np.bincount(inside.ravel(), minlength=groups) > 0


def _restricted(layout: Layout, views: tuple[View, ...]) -> Layout:
    """The layout with these views: input groups split along their borders, level inf where a group sees nothing.

    Splitting changes no level of any element, and so no distribution; it takes from the adversary what a weight for a
    whole cell gave: to disturb at once every group that sees any part of it. Where the level matrix would become too
    large, groups stay whole, which is sound and certifies less.
    """
    labels = layout.inputs.labels
    # Elements are seen by the same groups if the marks of these agree, but for a chance of 2⁻⁶⁴ for each pair. Where
    # they agree by chance a column counts as seen by all who see any of it: sound as well.
    marks = np.random.default_rng(0).integers(1, 2**63, layout.outputs.count, dtype=np.uint64)
    seen_by = np.zeros(labels.shape, dtype=np.uint64)
    for view, mark in zip(views, marks, strict=True):
        inside = seen_by[view.window]
        if view.hidden is None:
            inside ^= mark
        else:
            inside[~view.hidden[view.window]] ^= mark
    kinds, kind = np.unique(seen_by.ravel(), return_inverse=True)
    pairs = labels.ravel().astype(np.int64) * kinds.size + kind
    _, first, atom = np.unique(pairs, return_index=True, return_inverse=True)
    # In the order of the groups, and within one of its elements: what is not split keeps its number.
    order = np.lexsort([first, labels.ravel()[first]])
    parent, inputs, cells = labels.ravel()[first[order]], layout.inputs, layout.cells
    if order.size > inputs.count and order.size * layout.outputs.count <= _MOST_LEVELS:
        inputs = Partition(np.argsort(order)[atom].reshape(labels.shape).astype(np.int32))
        cells = _own_cells(layout)
    else:
        parent = np.arange(inputs.count)
    levels = layout.levels[:, parent]
    for group, view in enumerate(views):
        levels[group, ~_seen(inputs.labels, view, inputs.count)] = np.inf
    return replace(layout, inputs=inputs, levels=levels, views=views, cells=cells)


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
        The same output groups; input groups are split where they are partly hidden, and have level `inf` where they
        are hidden.

    Raises
    ------
    InvalidInputError
        If the distance is negative, or the groups do not match one to one.
    """
    cells = _own_cells(layout)
    if distance < 0:
        raise InvalidInputError("distance", f"got {distance}", "Pass 0 or more input elements")
    views: list[View] = []
    for group in range(layout.outputs.count):
        own = cells.mask(group)
        steps = ndimage.distance_transform_cdt(~own, metric="chessboard")
        near: Bool[np.ndarray, "..."] = np.asarray(steps) <= distance
        before = layout.view(group)
        hidden = ~near if before.hidden is None else ~near | before.hidden
        views.append(replace(before, hidden=hidden))
    return _restricted(layout, tuple(views))


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
        The same output groups; input groups are split along the borders of windows, and have level `inf` outside of a
        window.

    Raises
    ------
    InvalidInputError
        If the input size is not a whole multiple of the output size, or a group's outputs do not fit its window.
    """
    cells = _own_cells(layout)
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
    views: list[View] = []
    boxes = zip(*(ndimage.find_objects(part.labels + 1) for part in (cells, layout.outputs)), strict=True)
    for group, (input_box, output_box) in enumerate(boxes):
        crop = tuple(
            _aligned(max(0, min(i.start, o.start * s) - margin), min(n, max(i.stop, o.stop * s) + margin), n, step)
            for i, o, n, s, step in zip(input_box, output_box, sizes, strides, steps, strict=True)
        )
        outputs = tuple(slice(c.start // s, c.stop // s) for c, s in zip(crop, strides, strict=True))
        before = layout.view(group)
        views.append(replace(before, inputs=crop, outputs=outputs))
    return _restricted(layout, tuple(views))
