"""Grids over any number of axes, and the layouts made from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Grid, GridLayout, Layout, Partition, grid_layout, isotropic_layout


@pytest.mark.parametrize(
    ("cells", "shape"), [((4,), (10,)), ((3, 5), (17, 23)), ((2, 2, 3), (5, 2, 7)), ((1, 1), (3, 4)), ((3,), (3,))]
)
def test_cells_are_contiguous_boxes_that_cover_everything_once(cells: tuple[int, ...], shape: tuple[int, ...]) -> None:
    partition = Grid(cells).partition(shape)
    positions = Grid(cells).positions()
    assert partition.shape == shape
    assert partition.count == len(positions) == np.prod(cells)
    assert partition.sizes.sum() == np.prod(shape)
    for index in np.ndindex(shape):
        expected = [i * c // n for i, c, n in zip(index, cells, shape, strict=True)]
        np.testing.assert_array_equal(positions[partition.labels[index]], expected)


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 40))
def test_cell_sizes_differ_by_at_most_one(cells: int, extra: int) -> None:
    sizes = Grid((cells,)).partition((cells + extra,)).sizes
    assert sizes.max() - sizes.min() <= 1


def test_inputs_and_outputs_of_different_sizes_share_the_grid() -> None:
    layout = grid_layout((3, 5), (48, 80), (12, 20), minimum=0.1, maximum=1.0)
    assert layout.inputs.shape == (48, 80)
    assert layout.outputs.shape == (12, 20)
    np.testing.assert_array_equal(layout.inputs.labels[::4, ::4], layout.outputs.labels)


def test_chebyshev_levels_reach_the_maximum_at_the_far_corner() -> None:
    layout = grid_layout((2, 3), (4, 6), minimum=0.1, maximum=1.0)
    assert layout.levels[0, 0] == 0.1
    assert layout.levels[0, 5] == 1.0
    assert layout.levels[0, 3] == pytest.approx(0.55)  # one row down, of a reach of two cells
    assert layout.levels[1, 5] == pytest.approx(0.55)


def test_one_cell_is_isotropic() -> None:
    grid, plain = grid_layout((1, 1), (4, 6), minimum=0.3, maximum=0.9), isotropic_layout(0.3, (4, 6), (4, 6))
    np.testing.assert_array_equal(grid.levels, plain.levels)
    assert grid.digest() == plain.digest()


def test_levels_can_be_handed_over() -> None:
    levels = np.array([[0.1, np.inf], [2.0, 0.1]])
    layout = grid_layout((2,), (9,), minimum=0.0, maximum=0.0, levels=levels)
    np.testing.assert_array_equal(layout.levels, levels)


def test_rule_takes_the_trailing_axes_as_spatial() -> None:
    rule = GridLayout((2, 2), 0.1, 1.0)
    assert rule.layout((3, 8, 8), (8, 8)).inputs.shape == (8, 8)
    assert rule.layout((3, 8, 10), (4, 5)).outputs.shape == (4, 5)
    masked = GridLayout((2, 2), 0.1, 1.0, mask_beyond=0, window_margin=1).layout((3, 8, 8), (8, 8))
    np.testing.assert_array_equal(np.isinf(masked.levels), ~np.eye(4, dtype=bool))
    assert masked.view(0).inputs == (slice(0, 5), slice(0, 5))


@pytest.mark.parametrize("cells", [(), (0,), (2, -1)])
def test_grids_without_cells_are_refused(cells: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="cells"):
        Grid(cells)


@pytest.mark.parametrize("shape", [(3,), (2, 2), (3, 4, 5)])
def test_shapes_that_the_grid_cannot_cut_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="cells"):
        Grid((3, 2)).partition(shape)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_arbitrary_label_maps(data: st.DataObject) -> None:
    groups = data.draw(st.integers(1, 5))
    rest = data.draw(st.lists(st.integers(0, groups - 1), max_size=20))
    labels = np.array(data.draw(st.permutations([*range(groups), *rest])))
    partition = Partition(labels)
    assert partition.count == groups
    for group in range(groups):
        np.testing.assert_array_equal(partition.members(group), np.flatnonzero(labels == group))
        np.testing.assert_array_equal(partition.mask(group), labels == group)
        assert partition.sizes[group] == (labels == group).sum()


@pytest.mark.parametrize("labels", [[], [1, 2], [0, 2], [-1, 0], [0, 1, 5]])
def test_bad_label_maps_are_refused(labels: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="labels"):
        Partition(np.array(labels, dtype=np.int64))


def test_a_partition_owns_its_labels() -> None:
    labels = np.array([0, 1, 1], dtype=np.int32)
    partition = Partition(labels)
    labels[0] = 1
    np.testing.assert_array_equal(partition.labels, [0, 1, 1])
    with pytest.raises(ValueError, match="read-only"):
        partition.labels[0] = 1


def test_level_map_shows_each_element_its_level() -> None:
    layout = grid_layout((2, 2), (4, 6), minimum=0.1, maximum=1.0)
    for group in range(4):
        np.testing.assert_array_equal(layout.level_map(group), layout.levels[group][layout.inputs.labels])


def test_level_map_keeps_parameters_as_trailing_axes() -> None:
    parts = Partition(np.array([0, 1, 1])), Partition(np.array([0, 0, 1, 1]))
    levels = np.arange(8, dtype=float).reshape(2, 2, 2) / 10
    layout = Layout(*parts, levels)
    np.testing.assert_array_equal(layout.level_map(1), levels[1][[0, 0, 1, 1]])
    assert layout.visible.all()


@pytest.mark.parametrize(
    ("levels", "message"),
    [(np.ones((2, 3)), "does not match"), (np.ones((1, 2)), "does not match"), (np.array([[1, np.nan]] * 2), "NaN")],
)
def test_bad_level_matrices_are_refused(levels: np.ndarray, message: str) -> None:
    parts = Partition(np.array([0, 1])), Partition(np.array([0, 1]))
    with pytest.raises(InvalidInputError, match=message):
        Layout(*parts, levels)


def test_levels_are_copied_and_read_only() -> None:
    parts = Partition(np.array([0, 1])), Partition(np.array([0, 1]))
    levels = np.ones((2, 2))
    layout = Layout(*parts, levels)
    levels[:] = 7
    assert (layout.levels == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        layout.levels[0, 0] = 2


def test_digest_changes_with_everything_that_matters() -> None:
    rule = {"minimum": 0.1, "maximum": 1.0}
    layouts = [
        grid_layout((2, 2), (4, 6), **rule),
        grid_layout((2, 2), (4, 6), minimum=0.1, maximum=1.0000000001),
        grid_layout((4, 1), (4, 6), **rule),
        grid_layout((2, 2), (6, 4), **rule),
        grid_layout((2, 2), (4, 6), (2, 3), **rule),
        GridLayout((2, 2), 0.1, 1.0, mask_beyond=1).layout((4, 6), (4, 6)),
        GridLayout((2, 2), 0.1, 1.0, mask_beyond=2).layout((4, 6), (4, 6)),
        GridLayout((2, 2), 0.1, 1.0, window_margin=1).layout((4, 6), (4, 6)),
        GridLayout((2, 2), 0.1, 1.0, window_margin=0).layout((4, 6), (4, 6)),
    ]
    assert len({layout.digest() for layout in layouts}) == len(layouts)
    assert grid_layout((2, 2), (4, 6), **rule).digest() == layouts[0].digest()


def test_levels_of_several_parameters() -> None:
    pairs = grid_layout((2, 2), (4, 6), minimum=(0.01, 0.6), maximum=(0.1, 0.9)).levels
    for parameter, (low, high) in enumerate([(0.01, 0.1), (0.6, 0.9)]):
        one = grid_layout((2, 2), (4, 6), minimum=low, maximum=high).levels
        np.testing.assert_array_equal(pairs[..., parameter], one)
    with pytest.raises(InvalidInputError, match="levels"):
        grid_layout((2, 2), (4, 6), minimum=(0.1, 0.6), maximum=(0.9,))
