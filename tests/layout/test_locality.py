"""Masks and windows: nothing that a group can see may have weight 0."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.collective import Ball, Problem, solve
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, Partition, View, grid_layout, masked, windowed
from localsmooth.noise import Gaussian

RULE = {"minimum": 0.1, "maximum": 1.0}


def seen_inputs(layout: Layout, group: int) -> np.ndarray:
    """Mark every input element that reaches the model for a group, from the view alone."""
    view = layout.view(group)
    seen = np.zeros(layout.inputs.shape, dtype=bool)
    seen[(..., *(view.inputs or ()))] = True
    return seen if view.hidden is None else seen & ~view.hidden


def check_levels_agree_with_views(layout: Layout, before: Layout) -> None:
    """Each column lies in one cell, and is seen wholly or not at all; every element keeps the level that it had."""
    parents = [np.unique(before.inputs.labels[layout.inputs.mask(other)]) for other in range(layout.inputs.count)]
    assert all(len(parent) == 1 for parent in parents)
    for group in range(layout.outputs.count):
        seen = seen_inputs(layout, group)
        for other, parent in enumerate(parents):
            visible = bool(seen[layout.inputs.mask(other)].any())
            assert visible == bool(seen[layout.inputs.mask(other)].all())
            assert layout.visible[group, other] == visible
            assert layout.levels[group, other] == (before.levels[group, parent[0]] if visible else np.inf)
        hidden = layout.view(group).hidden
        if hidden is not None:
            assert np.isinf(layout.level_map(group)[hidden]).all()


@pytest.mark.parametrize("distance", [0, 1, 100])
def test_windows_made_by_hand_crop_the_last_axes_where_channels_have_levels_of_their_own(distance: int) -> None:
    halves = np.repeat([[0, 1]], 4, axis=0).repeat(3, axis=1).astype(np.int32)
    windows = (slice(0, 4), slice(0, 4)), (slice(0, 4), slice(2, 6))
    views = tuple(View(inputs=window, outputs=window) for window in windows)
    levels = np.array([[0.2, 0.4], [0.4, 0.2]])
    before = Layout(Partition(halves), Partition(np.stack([halves, halves])), levels, views=views)
    check_levels_agree_with_views(masked(before, distance), before)


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
        assert seen_inputs(layout, group)[before.inputs.mask(group)].all()
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
    np.testing.assert_array_equal(one.levels[:, one.inputs.labels], other.levels[:, other.inputs.labels])
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


def test_what_is_seen_wholly_is_not_split() -> None:
    before = grid_layout((2, 3), (8, 12), **RULE)
    for made in (masked(before, 0), windowed(before, 0), masked(before, 100), windowed(before, 100)):
        np.testing.assert_array_equal(made.inputs.labels, before.inputs.labels)
        assert made.cells is None


def test_on_a_grid_columns_are_products_of_cuts() -> None:
    """Three cells of 4 elements with a margin of 1: cut at 3, 4, 5, 7, 8 and 9."""
    made = windowed(grid_layout((3, 1), (12, 6), **RULE), 1)
    assert made.inputs.sizes.tolist() == [3 * 6, 6, 6, 2 * 6, 6, 6, 3 * 6]
    assert made.visible.astype(int).tolist() == [[1, 1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1, 1]]
    assert made.cells is not None
    assert made.cells.sizes.tolist() == [24, 24, 24]


def test_groups_stay_whole_where_there_would_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localsmooth.layout.locality._MOST_LEVELS", 3 * 6)
    before = grid_layout((3, 1), (12, 6), **RULE)
    made = windowed(before, 1)
    np.testing.assert_array_equal(made.inputs.labels, before.inputs.labels)
    assert made.visible.astype(int).tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]


@pytest.mark.parametrize(("cells", "shape"), [((1, 3), (1, 12)), ((2, 3), (6, 9)), ((1, 4), (2, 16))])
def test_splitting_raises_counts_and_keeps_them_true(cells: tuple[int, int], shape: tuple[int, int]) -> None:
    """Against every way to spend whole units on single elements, without any groups, and against whole cells.

    Four units of l2 budget, on up to four elements; an output falls where what is spent on what its group sees,
    over the squared level there, reaches its threshold.
    """
    before = grid_layout(cells, shape, minimum=0.3, maximum=0.4)
    layout = windowed(before, 1)
    parents = [int(before.inputs.labels[layout.inputs.mask(one)][0]) for one in range(layout.inputs.count)]
    whole = np.stack([before.levels[:, parent] for parent in range(before.inputs.count)], axis=1)
    for group in range(before.outputs.count):
        seen = np.unique(before.inputs.labels[seen_inputs(layout, group)])
        whole[group, np.setdiff1d(np.arange(before.inputs.count), seen)] = np.inf
    assert len(parents) > before.inputs.count
    element = np.stack(
        [
            np.where(seen_inputs(layout, group), 1 / before.level_map(group) ** 2, 0.0).ravel()
            for group in range(before.outputs.count)
        ]
    )
    better, outputs = 0, before.outputs.labels.size
    for seed in range(6):
        generator = np.random.default_rng(seed)
        budget, units = 0.6, 4
        eta = generator.uniform(0, 5, outputs)
        group = layout.outputs.labels.ravel()
        truth = outputs
        kinds = np.unique(element, axis=1)
        for spent in itertools.combinations_with_replacement(range(kinds.shape[1]), units):
            fed = kinds[:, list(spent)].sum(axis=1) * budget**2 / units
            truth = min(truth, int((eta > fed[group]).sum()))
        found = {}
        for name, levels in (("split", layout.levels), ("whole", whole)):
            problem = Problem(Gaussian().weights(levels), eta, group, Ball((budget,), 2))
            found[name] = {
                bound: int(solve(problem, bound).certified[0]) for bound in ("naive", "lp", "envelope", "exact")
            }
        for bound, count in found["split"].items():
            assert found["whole"][bound] <= count <= truth
            better += count > found["whole"][bound]
    assert better > 0
