"""Inputs and labels are read as they are, or refused with the field's name."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from localsmooth.datasets import Item, ItemSet, load_arrays, load_pictures
from localsmooth.datasets.pictures import read_classes
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
    with pytest.raises(InvalidInputError, match=r"label 255, outside 0 … 2.*ignore_label.*\[calibration\]"):
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


def test_pictures_that_are_left_out_are_named(tmp_path) -> None:
    for name in ("a.png", "b.gif", "notes.txt"):
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / name, format="PNG")
    with pytest.warns(UserWarning, match=r"images: .* also holds b\.gif, which are not of the kinds"):
        assert len(load_pictures(tmp_path)) == 1


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


def deep_png(path: Path, depth: int, colour_type: int, rows: np.ndarray) -> None:
    """Write a PNG file of any depth, which Pillow cannot."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], depth, colour_type, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


@pytest.mark.parametrize(("colour_type", "channels"), [(2, 3), (6, 4), (4, 2)])
def test_deep_colours_are_refused_and_not_read_as_eight_bits(tmp_path, colour_type: int, channels: int) -> None:
    pixels = np.full((8, 8, channels), 40000, ">u2")
    deep_png(tmp_path / "deep.png", 16, colour_type, pixels)
    (tmp_path / "deep.ppm").write_bytes(b"P6\n8 8\n65535\n" + pixels[..., :1].repeat(3, axis=2).tobytes())
    for name in ("deep.png", "deep.ppm"):
        with pytest.raises(InvalidInputError, match=r"^images: .*deep\.p.* has 16 bits in each of several channels"):
            load_pictures(tmp_path / name, scale=65535.0)


def test_deep_tiff_colours_are_refused(tmp_path) -> None:
    """An uncompressed TIFF file of 2 × 2 pixels with three channels of 16 bits, in one strip."""
    pixels = np.full((2, 2, 3), 40000, "<u2").tobytes()
    tags = {256: 2, 257: 2, 258: 0, 259: 1, 262: 2, 273: 0, 277: 3, 278: 2, 279: len(pixels)}
    bits_at = 8 + 2 + 12 * len(tags) + 4
    tags |= {258: bits_at, 273: bits_at + 6}
    entries = b"".join(struct.pack("<HHII", tag, 3, 3 if tag == 258 else 1, value) for tag, value in tags.items())
    file = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + struct.pack("<IHHH", 0, 16, 16, 16) + pixels
    (tmp_path / "deep.tif").write_bytes(file)
    with pytest.raises(InvalidInputError, match="has 16 bits in each of several channels"):
        load_pictures(tmp_path / "deep.tif", scale=65535.0)


def test_shallow_and_packed_pictures_are_still_read(tmp_path) -> None:
    deep_png(tmp_path / "four.png", 4, 0, np.full((8, 4), 0x5A, np.uint8)[:, :4])
    grey = Image.fromarray(np.arange(16, dtype=np.uint8).reshape(4, 4))
    for name, picture in (
        ("p.png", grey.convert("P")),
        ("one.png", grey.convert("1")),
        ("c.jpg", grey.convert("CMYK")),
    ):
        picture.save(tmp_path / name)
        assert load_pictures(tmp_path / name).items[0].image.shape[1:] == (4, 4)
    grey.convert("P").save(tmp_path / "packed.png", bits=4)
    Image.fromarray(np.full((4, 4), 0.5, np.float32)).save(tmp_path / "f.tif")
    assert load_pictures(tmp_path / "f.tif", scale=1.0).items[0].image.max() == 0.5
    mask = np.eye(4, dtype=bool)
    Image.fromarray(mask).save(tmp_path / "mask.png")
    np.testing.assert_array_equal(read_classes(tmp_path / "mask.png"), mask.astype(int))


@pytest.mark.parametrize("ending", [".tif", ".png", ".webp"])
def test_files_of_several_pictures_are_refused(tmp_path, ending: str) -> None:
    pages = [Image.fromarray(np.full((8, 8), value, np.uint8)) for value in (0, 250)]
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
        pages[0].save(tmp_path / folder / "plain.png")
    pages[0].save(tmp_path / f"stack{ending}", save_all=True, append_images=pages[1:])
    with pytest.raises(InvalidInputError, match=r"^images: .*stack.* holds 2 pictures"):
        load_pictures(tmp_path / f"stack{ending}")
    with pytest.raises(InvalidInputError, match=r"^labels: .*stack.* holds 2 pictures"):
        load_pictures(tmp_path / "images" / "plain.png", tmp_path / f"stack{ending}")


def test_previews_of_cameras_are_no_pictures(tmp_path) -> None:
    picture, preview = (Image.fromarray(np.full((16, 16, 3), value, np.uint8)) for value in (200, 10))
    picture.save(tmp_path / "camera.jpg", format="MPO", save_all=True, append_images=[preview])
    (only,) = load_pictures(tmp_path / "camera.jpg")
    np.testing.assert_allclose(only.image, 200 / 255, atol=0.02)


def test_labels_of_equal_stem_are_refused(tmp_path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    grey = Image.fromarray(np.zeros((4, 4), np.uint8))
    for path in ("images/a.png", "labels/a.png", "labels/a.tif"):
        grey.save(tmp_path / path)
    with pytest.raises(InvalidInputError, match=r"^labels: a\.png and a\.tif are of the same stem"):
        load_pictures(tmp_path / "images", tmp_path / "labels")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_masks_are_turned_as_their_pictures(tmp_path, orientation: int) -> None:
    tag = Image.Exif()
    tag[ExifTags.Base.Orientation] = orientation
    values = np.random.default_rng(0).integers(0, 5, (6, 9), dtype=np.uint8)
    for name in ("picture.png", "mask.png"):
        Image.fromarray(values).save(tmp_path / name, exif=tag)
    Image.fromarray(values).save(tmp_path / "untagged.png")
    (item,) = load_pictures(tmp_path / "picture.png", tmp_path / "mask.png", scale=1.0)
    np.testing.assert_array_equal(item.image[0], item.label)
    np.testing.assert_array_equal(read_classes(tmp_path / "mask.png"), item.label)
    if orientation >= 5:  # a quarter turn
        assert item.image.shape == (1, 9, 6)
        for one, other in (("picture.png", "untagged.png"), ("untagged.png", "picture.png")):
            with pytest.raises(InvalidInputError, match=r"^labels: .*picture\.png was turned by its EXIF tag"):
                load_pictures(tmp_path / one, tmp_path / other)
    elif orientation > 1:
        with pytest.warns(UserWarning, match=r"picture\.png was turned by its EXIF tag"):
            load_pictures(tmp_path / "picture.png", tmp_path / "untagged.png")
