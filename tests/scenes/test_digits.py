"""Scenes: disjoint digits, reproducible by index, images and labels in range."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from sklearn.datasets import load_digits

from localsmooth.errors import InvalidInputError
from localsmooth.scenes import BACKGROUND, CLASS_NAMES, SCENE_SHAPE, DigitScenes, Split, digit_indices
from localsmooth.scenes import digits as digits_module


def test_splits_partition_all_digits() -> None:
    parts = [digit_indices(split) for split in Split]
    everything = np.concatenate(parts)
    assert len(np.unique(everything)) == len(everything)
    np.testing.assert_array_equal(np.sort(everything), np.arange(len(load_digits().images)))


def test_no_picture_of_one_split_is_repeated_in_another() -> None:
    images = load_digits().images
    pictures = [{images[i].tobytes() for i in digit_indices(split)} for split in Split]
    assert not pictures[0] & pictures[1]
    assert not pictures[0] & pictures[2]
    assert not pictures[1] & pictures[2]


@pytest.mark.parametrize("split", list(Split))
def test_every_split_has_every_class(split: Split) -> None:
    counts = np.bincount(load_digits().target[digit_indices(split)], minlength=10)
    assert counts.min() >= 20


def test_the_partition_is_the_one_the_checkpoint_was_trained_with() -> None:
    # A change here would let test digits into the training set of the shipped checkpoint.
    assert [len(digit_indices(split)) for split in Split] == [1078, 269, 450]
    assert digit_indices(Split.TEST)[:8].tolist() == [6, 12, 15, 23, 25, 34, 36, 43]


def test_indices_are_a_copy() -> None:
    before = digit_indices(Split.TEST)
    digit_indices(Split.TEST)[:] = 0
    np.testing.assert_array_equal(digit_indices(Split.TEST), before)


def test_scenes_show_only_digits_of_their_split(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures, classes = digits_module._handwriting()
    marked = np.zeros_like(pictures)  # only test digits have ink
    marked[digit_indices(Split.TEST)] = 1.0
    monkeypatch.setattr(digits_module, "_handwriting", lambda: (marked, classes))
    for split, expect_ink in ((Split.TRAIN, False), (Split.VALIDATION, False), (Split.TEST, True)):
        _, labels = DigitScenes(split).stack(range(10))
        assert (labels != BACKGROUND).any(axis=(1, 2)).all() == expect_ink
        assert (labels != BACKGROUND).any() == expect_ink


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(list(Split)), st.integers(min_value=0, max_value=2**40), st.integers(min_value=0, max_value=2**40)
)
def test_scenes_are_in_range_and_reproducible(split: Split, seed: int, index: int) -> None:
    scene = DigitScenes(split, seed).scene(index)
    assert scene.image.shape == (1, *SCENE_SHAPE)
    assert scene.image.dtype == np.float32
    assert scene.image.min() >= 0.0
    assert scene.image.max() <= 1.0
    assert scene.labels.shape == SCENE_SHAPE
    assert scene.labels.dtype == np.int64
    assert scene.labels.min() == BACKGROUND
    assert scene.labels.max() < len(CLASS_NAMES)
    again = DigitScenes(split, seed).scene(index)
    np.testing.assert_array_equal(scene.image, again.image)
    np.testing.assert_array_equal(scene.labels, again.labels)


def test_scene_depends_on_index_seed_and_split_but_not_on_what_was_drawn_before() -> None:
    scenes = DigitScenes(Split.TEST, seed=5)
    alone = scenes.scene(3).image
    scenes.scene(0)
    np.testing.assert_array_equal(scenes.scene(3).image, alone)
    for other in (scenes.scene(4), DigitScenes(Split.TEST, seed=6).scene(3), DigitScenes(Split.TRAIN, seed=5).scene(3)):
        assert not np.array_equal(other.image, alone)


def test_each_scene_has_three_to_six_digits_that_do_not_touch() -> None:
    counts = []
    for index in range(60):
        labels = DigitScenes(Split.TRAIN, seed=2).scene(index).labels
        blobs, n_blobs = ndimage.label(labels != BACKGROUND, structure=np.ones((3, 3)))
        # A blob that spans two digits would carry two labels, or be larger than any digit's box.
        for box, blob in zip(ndimage.find_objects(blobs), range(1, n_blobs + 1), strict=True):
            assert len(np.unique(labels[blobs == blob])) == 1
            assert max(part.stop - part.start for part in box) <= 26
        counts.append(n_blobs)
    assert min(counts) >= 3
    assert {3, 4, 5, 6} <= set(counts)


def test_three_digits_always_find_room() -> None:
    # Two boxes of the greatest size wherever they may stand; the first pair leaves no room for a third such box.
    generator = np.random.default_rng(0)
    pairs = [((19, 20), (19, 50))]
    pairs += [tuple((generator.integers(0, 39), generator.integers(0, 71)) for _ in range(2)) for _ in range(300)]
    sizes = []
    for pair in pairs:
        occupied = np.zeros(SCENE_SHAPE, dtype=bool)
        for top, left in pair:
            occupied[max(top - 1, 0) : top + 27, max(left - 1, 0) : left + 27] = True
        box = digits_module._free_box(occupied, 26, 26, generator)
        assert box is not None
        assert not occupied[box].any()
        sizes.append(min(occupied[box].shape))
    assert 14 <= sizes[0] < 26
    assert min(sizes) >= 14


def test_a_box_without_room_is_left_out() -> None:
    occupied = np.ones(SCENE_SHAPE, dtype=bool)
    assert digits_module._free_box(occupied, 26, 20, np.random.default_rng(0)) is None


def test_stack_is_the_scenes_in_order() -> None:
    scenes = DigitScenes(Split.VALIDATION)
    images, labels = scenes.stack([4, 2])
    np.testing.assert_array_equal(images[1], scenes.scene(2).image)
    np.testing.assert_array_equal(labels[0], scenes.scene(4).labels)


def test_bilinear_interpolation_agrees_with_torch() -> None:
    picture = np.random.default_rng(1).uniform(size=(8, 8))
    ours = digits_module._resize(picture, 21, 17)
    theirs = torch.nn.functional.interpolate(
        torch.from_numpy(picture)[None, None], size=(21, 17), mode="bilinear", align_corners=False
    )
    np.testing.assert_allclose(ours, theirs[0, 0].numpy(), atol=1e-12)


def test_bad_arguments_name_themselves() -> None:
    with pytest.raises(InvalidInputError, match="seed"):
        DigitScenes(Split.TEST, seed=-1)
    with pytest.raises(InvalidInputError, match="index"):
        DigitScenes(Split.TEST).scene(-1)
    with pytest.raises(InvalidInputError, match="indices"):
        DigitScenes(Split.TEST).stack([])
