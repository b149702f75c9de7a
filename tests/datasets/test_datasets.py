"""Inputs and labels are read as they are, or refused with the field's name."""

import numpy as np
import pytest
from PIL import Image

from localsmooth.datasets import Item, ItemSet, load_arrays, load_pictures
from localsmooth.errors import InvalidInputError


def item(index: int = 0, label: np.ndarray | None = None) -> Item:
    return Item(index, f"item {index}", np.zeros((1, 2, 3), np.float32), label)


def test_arrays_round_trip(tmp_path) -> None:
    generator = np.random.default_rng(0)
    images = generator.random((3, 2, 4, 5), dtype=np.float32)
    labels = generator.integers(0, 7, (3, 4, 5), dtype=np.uint8)
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", labels)
    loaded = load_arrays(tmp_path / "x.npy", tmp_path / "y.npy", items=[2, 0])
    assert [i.index for i in loaded] == [2, 0]
    for entry in loaded:
        np.testing.assert_array_equal(entry.image, images[entry.index])
        assert entry.label is not None
        np.testing.assert_array_equal(entry.label, labels[entry.index])


def test_arrays_that_cannot_be_used_are_refused(tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 4, 4)))
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "archive.npz", a=np.zeros(3))
    np.save(tmp_path / "flat.npy", np.zeros(3))
    np.save(tmp_path / "fractions.npy", np.zeros((2, 4, 4)))
    np.save(tmp_path / "short.npy", np.zeros((1, 4, 4), int))
    (tmp_path / "noise.npy").write_bytes(b"not an array")
    for name in ("objects.npy", "archive.npz", "flat.npy", "noise.npy"):
        with pytest.raises(InvalidInputError, match=r"^images: "):
            load_arrays(tmp_path / name)
    for name in ("fractions.npy", "short.npy"):
        with pytest.raises(InvalidInputError, match=r"^labels: "):
            load_arrays(tmp_path / "x.npy", tmp_path / name)
    with pytest.raises(InvalidInputError, match="item 2 of 2"):
        load_arrays(tmp_path / "x.npy", items=[2])


def test_nan_and_repeated_or_missing_items_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="NaN"):
        Item(0, "a", np.full((1, 2, 2), np.nan, np.float32))
    with pytest.raises(InvalidInputError, match="nothing to certify"):
        ItemSet([])
    with pytest.raises(InvalidInputError, match="twice"):
        ItemSet([item(1), item(1)])
    with pytest.raises(InvalidInputError, match="Label all items or none"):
        ItemSet([item(0), item(1, np.zeros((2, 3), int))])


def test_labels_out_of_range_are_refused_unless_ignored() -> None:
    label = np.array([[0, 1, 255], [2, 0, 1]])
    with pytest.raises(InvalidInputError, match="label 255, outside 0 … 2"):
        ItemSet([item(0, label)]).require_labels_within(3, [(2, 3)])
    ItemSet([item(0, label)], ignore_label=255).require_labels_within(3, [(2, 3)])
    with pytest.raises(InvalidInputError, match="outside 0 … 1"):
        ItemSet([item(0, label)], ignore_label=255).require_labels_within(2, [(2, 3)])
    with pytest.raises(InvalidInputError, match="shape"):
        ItemSet([item(0, label)], ignore_label=255).require_labels_within(3, [(3, 2)])


def test_pictures_and_their_labels(tmp_path) -> None:
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.mkdir()
    labels.mkdir()
    generator = np.random.default_rng(1)
    colour = generator.integers(0, 256, (4, 6, 3), dtype=np.uint8)
    grey = generator.integers(0, 256, (4, 6), dtype=np.uint8)
    Image.fromarray(colour).save(images / "a.png")
    Image.fromarray(grey).save(images / "b.png")
    Image.fromarray(grey // 100).save(labels / "a.png")
    Image.fromarray(grey // 90).save(labels / "b.png")
    loaded = load_pictures(images, labels)
    assert [i.name for i in loaded] == ["a", "b"]
    first, second = loaded
    np.testing.assert_allclose(first.image, colour.transpose(2, 0, 1) / 255.0, rtol=1e-6)
    assert second.image.shape == (3, 4, 6)
    np.testing.assert_allclose(second.image[2], grey / 255.0, rtol=1e-6)
    assert second.label is not None
    np.testing.assert_array_equal(second.label, grey // 90)

    (labels / "b.png").unlink()
    with pytest.raises(InvalidInputError, match=r"no label picture for b\.png"):
        load_pictures(images, labels)
    Image.fromarray(colour).save(labels / "b.png")
    with pytest.raises(InvalidInputError, match="mode RGB"):
        load_pictures(images, labels)
    (images / "c.png").write_bytes(b"\x89PNG broken")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        load_pictures(images)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidInputError, match="holds no pictures"):
        load_pictures(empty)


def test_one_picture_with_one_label_file(tmp_path) -> None:
    Image.fromarray(np.full((3, 4), 51, np.uint8)).save(tmp_path / "scene.png")
    Image.fromarray(np.ones((3, 4), np.uint8)).save(tmp_path / "truth.png")
    (only,) = load_pictures(tmp_path / "scene.png", tmp_path / "truth.png")
    np.testing.assert_allclose(only.image, 0.2, rtol=1e-6)
    assert only.label is not None
    assert (only.label == 1).all()


def test_pictures_of_sixteen_bits_keep_their_values(tmp_path) -> None:
    ramp = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    Image.fromarray(ramp).save(tmp_path / "deep.png")
    (only,) = load_pictures(tmp_path / "deep.png", scale=65535.0)
    np.testing.assert_allclose(only.image[0], ramp / 65535, rtol=1e-6)


def test_items_that_cannot_share_a_run_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="share a name"):
        ItemSet([item(0), Item(1, "item 0", np.zeros((1, 2, 3), np.float32))])
    with pytest.raises(InvalidInputError, match="differ in axes or channels"):
        ItemSet([item(0), Item(1, "b", np.zeros((3, 2, 3), np.float32))])
    with pytest.raises(InvalidInputError, match="is ignored"):
        ItemSet([item(0, np.full((2, 3), 9))], ignore_label=9).require_labels_within(3, [(2, 3)])
