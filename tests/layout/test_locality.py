"""Masks and windows: nothing that a group can see may have weight 0."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, Partition, grid_layout, masked, windowed

RULE = {"minimum": 0.1, "maximum": 1.0}


def seen_inputs(layout: Layout, group: int) -> np.ndarray:
    """Mark every input element that reaches the model for a group, from the view alone."""
    view = layout.view(group)
    seen = np.zeros(layout.inputs.shape, dtype=bool)
    seen[view.inputs or ...] = True
    return seen if view.hidden is None else seen & ~view.hidden


def check_levels_agree_with_views(layout: Layout, before: Layout) -> None:
    for group in range(layout.outputs.count):
        seen = seen_inputs(layout, group)
        for other in range(layout.inputs.count):
            visible = bool(seen[layout.inputs.mask(other)].any())
            assert layout.visible[group, other] == visible
            assert layout.levels[group, other] == (before.levels[group, other] if visible else np.inf)
        hidden = layout.view(group).hidden
        if hidden is not None:
            assert np.isinf(layout.level_map(group)[hidden]).all()


@pytest.mark.parametrize("distance", [0, 1, 3, 100])
def test_masks_hide_what_is_farther_than_the_distance(distance: int) -> None:
    before = grid_layout((2, 3), (8, 12), **RULE)
    layout = masked(before, distance)
    check_levels_agree_with_views(layout, before)
    for group in range(6):
        own = np.argwhere(before.inputs.mask(group))
        for index in np.ndindex(8, 12):
            near = np.abs(own - index).max(axis=1).min() <= distance
            assert seen_inputs(layout, group)[index] == near


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 6), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]))
def test_windows_contain_the_cell_and_its_outputs(
    rows: int, columns: int, margin: int, align: int, stride: int
) -> None:
    before = grid_layout((rows, columns), (12, 16), (12 // stride, 16 // stride), **RULE)
    layout = windowed(before, margin, align=align)
    check_levels_agree_with_views(layout, before)
    for group in range(layout.outputs.count):
        view = layout.view(group)
        assert view.inputs is not None
        assert view.outputs is not None
        assert seen_inputs(layout, group)[layout.inputs.mask(group)].all()
        kept = np.zeros(layout.outputs.shape, dtype=bool)
        kept[view.outputs] = True
        assert kept[layout.outputs.mask(group)].all()
        for axis, (crop, out) in enumerate(zip(view.inputs, view.outputs, strict=True)):
            assert crop.start % align == 0
            assert crop.stop % align == 0 or crop.stop == layout.inputs.shape[axis]
            assert (crop.start, crop.stop) == (out.start * stride, out.stop * stride)


def test_a_window_shows_the_margin() -> None:
    view = windowed(grid_layout((2, 2), (16, 16), **RULE), 3).view(0)
    assert view.inputs == (slice(0, 11), slice(0, 11))


def test_masks_and_windows_combine_in_either_order() -> None:
    before = grid_layout((2, 3), (8, 12), **RULE)
    one, other = windowed(masked(before, 1), 2), masked(windowed(before, 2), 1)
    np.testing.assert_array_equal(one.levels, other.levels)
    check_levels_agree_with_views(one, before)
    check_levels_agree_with_views(other, before)


def test_three_axes() -> None:
    before = grid_layout((2, 1, 2), (6, 4, 6), **RULE)
    check_levels_agree_with_views(masked(before, 0), before)
    check_levels_agree_with_views(windowed(before, 1), before)


@pytest.mark.parametrize("function", [masked, windowed])
def test_groups_must_match_one_to_one(function) -> None:
    layout = Layout(Partition(np.zeros((4, 4), dtype=int)), Partition(np.arange(16).reshape(4, 4)), np.ones((1, 16)))
    with pytest.raises(InvalidInputError, match="one-to-one"):
        function(layout, 1)


def test_negative_distances_are_refused() -> None:
    layout = grid_layout((2, 2), (4, 4), **RULE)
    with pytest.raises(InvalidInputError, match="distance"):
        masked(layout, -1)
    with pytest.raises(InvalidInputError, match="margin"):
        windowed(layout, -1)
    with pytest.raises(InvalidInputError, match="margin"):
        windowed(layout, 1, align=0)


def test_windows_need_a_whole_stride() -> None:
    with pytest.raises(InvalidInputError, match="whole multiple"):
        windowed(grid_layout((2, 2), (9, 9), (4, 4), **RULE), 1)


def test_a_view_per_group() -> None:
    layout = windowed(grid_layout((2, 2), (4, 4), **RULE), 1)
    with pytest.raises(InvalidInputError, match="views"):
        Layout(layout.outputs, layout.inputs, layout.levels, layout.views[:2] if layout.views else ())
