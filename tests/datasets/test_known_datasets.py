"""Pascal VOC, the Semantic Boundaries Dataset and Cityscapes, on tiny folders in their own formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from localsmooth.datasets import Cityscapes, CityscapesSplit, PascalVoc, VocSplit
from localsmooth.datasets.resizing import shrink_image, shrink_labels
from localsmooth.errors import InvalidInputError

SIZE = (9, 14)


def write_picture(path: Path, seed: int) -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Flat pictures survive JPEG nearly as they are.
    pixels = np.full((*SIZE, 3), seed, np.uint8)
    Image.fromarray(pixels).save(path, quality=100)
    return pixels


def write_palette(path: Path, labels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(labels.astype(np.uint8), mode="P")
    picture.putpalette([value for n in range(256) for value in (n * 7 % 256, n * 3 % 256, n)])
    picture.save(path)


def write_list(path: Path, names: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(names) + "\n")


def mask(number: int) -> np.ndarray:
    labels = np.full(SIZE, number, dtype=np.int64)
    labels[:, -1] = 255
    return labels


@pytest.fixture
def voc(tmp_path: Path) -> tuple[Path, Path]:
    """VOC with a, b to train and c to validate; the boundaries add d, and masks of their own for a and c."""
    root, boundaries = tmp_path / "VOC2012", tmp_path / "benchmark_RELEASE" / "dataset"
    for number, name in enumerate("abc", start=1):
        write_picture(root / "JPEGImages" / f"2007_{name}.jpg", 10 * number)
        write_palette(root / "SegmentationClass" / f"2007_{name}.png", mask(number))
    write_list(root / "ImageSets" / "Segmentation" / "train.txt", ["2007_a", "2007_b"])
    write_list(root / "ImageSets" / "Segmentation" / "val.txt", ["2007_c"])
    for name in "acd":
        write_picture(boundaries / "img" / f"2007_{name}.jpg", 200)
        (boundaries / "cls").mkdir(parents=True, exist_ok=True)
        content = {"GTcls": {"Segmentation": mask(20).astype(np.uint8), "Boundaries": np.zeros((20, 1), object)}}
        savemat(boundaries / "cls" / f"2007_{name}.mat", content)
    write_list(boundaries / "train.txt", ["2007_d", "2007_a"])
    write_list(boundaries / "val.txt", ["2007_c"])
    return root, boundaries


@pytest.mark.parametrize(("split", "names"), [(VocSplit.TRAIN, "ab"), (VocSplit.VALIDATION, "c")])
def test_pascal_voc_in_full_size(split: VocSplit, names: str, voc: tuple[Path, Path]) -> None:
    data = PascalVoc(voc[0], split, scale=1.0)
    assert data.names == tuple(f"2007_{name}" for name in names)
    item = data[len(data) - 1]
    number = 1 + "abc".index(names[-1])
    assert item.image.shape == (3, *SIZE)
    assert item.image.dtype == np.float32
    np.testing.assert_allclose(item.image, 10 * number / 255, atol=2 / 255)
    assert item.label is not None
    np.testing.assert_array_equal(item.label, mask(number))


def test_the_augmented_split_leaks_nothing_and_prefers_the_finer_masks(voc: tuple[Path, Path]) -> None:
    data = PascalVoc(voc[0], VocSplit.TRAIN_AUGMENTED, voc[1], scale=1.0)
    assert data.names == ("2007_a", "2007_b", "2007_d")
    assert not set(data.names) & set(PascalVoc(voc[0], VocSplit.VALIDATION).names)
    for index, number in enumerate((1, 2, 20)):
        label = data[index].label
        assert label is not None
        np.testing.assert_array_equal(label, mask(number))
    np.testing.assert_allclose(data[2].image, 200 / 255, atol=2 / 255)


def test_what_is_missing_is_named(voc: tuple[Path, Path]) -> None:
    root, boundaries = voc
    with pytest.raises(InvalidInputError, match="boundaries: the augmented split"):
        PascalVoc(root, VocSplit.TRAIN_AUGMENTED)
    with pytest.raises(InvalidInputError, match=r"root: there is no .*train\.txt"):
        PascalVoc(root, VocSplit.TRAIN_AUGMENTED, boundaries / "img")
    with pytest.raises(InvalidInputError, match="items: item 7 of 1"):
        PascalVoc(root, VocSplit.VALIDATION).item_set([7])
    (boundaries / "cls" / "2007_d.mat").write_bytes(b"MATLAB 5.0 no more")
    with pytest.raises(InvalidInputError, match=r"boundaries: .*2007_d\.mat holds no mask"):
        PascalVoc(root, VocSplit.TRAIN_AUGMENTED, boundaries)[2]
    savemat(boundaries / "cls" / "2007_d.mat", {"other": 1})
    with pytest.raises(InvalidInputError, match=r"2007_d\.mat holds no mask"):
        PascalVoc(root, VocSplit.TRAIN_AUGMENTED, boundaries)[2]
    (root / "SegmentationClass" / "2007_c.png").unlink()
    with pytest.raises(InvalidInputError, match=r"2007_c\.png"):
        PascalVoc(root, VocSplit.VALIDATION)[0]
    write_list(root / "ImageSets" / "Segmentation" / "val.txt", ["../../etc/passwd"])
    with pytest.raises(InvalidInputError, match="is no name"):
        PascalVoc(root, VocSplit.VALIDATION)


@pytest.fixture
def cityscapes(tmp_path: Path) -> Path:
    for split, city, number in (("train", "bonn", 1), ("val", "ulm", 2), ("val", "aachen", 3)):
        stem = f"{split}/{city}/{city}_000000_00000{number}"
        picture = tmp_path / "leftImg8bit" / f"{stem}_leftImg8bit.png"
        write_picture(picture, 50 * number)
        numbers = np.tile(np.array([7, 33, 0, 4, 26, 255, 11], np.uint8), (SIZE[0], 2))
        labels = tmp_path / "gtFine" / f"{stem}_gtFine_labelIds.png"
        labels.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(numbers).save(labels)
    return tmp_path


def test_cityscapes_in_full_size(cityscapes: Path) -> None:
    data = Cityscapes(cityscapes, CityscapesSplit.VALIDATION, scale=1.0)
    assert data.names == ("aachen/aachen_000000_000003", "ulm/ulm_000000_000002")
    items = data.item_set([1])
    assert items.ignore_label == 255
    assert items.class_names is not None
    assert (len(items.class_names), items.class_names[13]) == (19, "car")
    item = data[1]
    np.testing.assert_array_equal(item.image, np.float32(100 / 255))
    assert item.label is not None
    np.testing.assert_array_equal(item.label[0], [0, 18, 255, 255, 13, 255, 2] * 2)


def test_cityscapes_that_cannot_be_used(cityscapes: Path) -> None:
    with pytest.raises(InvalidInputError, match="holds no pictures"):
        Cityscapes(cityscapes / "leftImg8bit", CityscapesSplit.TRAIN)
    path = next((cityscapes / "gtFine" / "train").rglob("*.png"))
    Image.fromarray(np.full(SIZE, 99, np.uint8)).save(path)
    with pytest.raises(InvalidInputError, match=r"labels: .*outside 0 … 33"):
        Cityscapes(cityscapes, CityscapesSplit.TRAIN)[0]
    Image.fromarray(np.full((3, 3), 7, np.uint8)).save(path)
    with pytest.raises(InvalidInputError, match="labels of"):
        Cityscapes(cityscapes, CityscapesSplit.TRAIN)[0]


def test_half_the_size_averages_areas_and_picks_labels(voc: tuple[Path, Path]) -> None:
    item = PascalVoc(voc[0], VocSplit.VALIDATION)[0]
    assert item.image.shape == (3, 4, 7)
    assert item.label is not None
    assert item.label.shape == (4, 7)
    assert set(np.unique(item.label)) == {3, 255}, "labels are never mixed"


@pytest.mark.parametrize("shape", [(333, 500), (500, 375), (1024, 2048)])
def test_sizes_of_the_paper(shape: tuple[int, int]) -> None:
    smaller = shrink_labels(np.zeros(shape, np.int64), 0.5).shape
    assert smaller == (shape[0] // 2, shape[1] // 2)
    assert shrink_image(np.zeros((1, *shape), np.float32), 0.5).shape[1:] == smaller


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_shrinking_by_a_whole_number_is_the_mean_of_blocks(height: int, width: int, factor: int, seed: int) -> None:
    image = np.random.default_rng(seed).random((2, height * factor, width * factor), dtype=np.float32)
    blocks = image.reshape(2, height, factor, width, factor).mean(axis=(2, 4))
    np.testing.assert_allclose(shrink_image(image, 1 / factor + 1e-9 if factor > 1 else 1.0), blocks, rtol=1e-5)
    labels = np.arange(height * width).reshape(height, width)
    np.testing.assert_array_equal(
        shrink_labels(np.kron(labels, np.ones((factor, factor), np.int64)), min(1.0, 1 / factor + 1e-9)), labels
    )


@pytest.mark.parametrize("scale", [0.0, -1.0, 1.5, float("nan"), 0.01])
def test_impossible_scales(scale: float) -> None:
    with pytest.raises(InvalidInputError, match="scale"):
        shrink_labels(np.zeros(SIZE, np.int64), scale)
