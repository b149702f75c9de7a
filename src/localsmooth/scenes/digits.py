"""Scenes of real handwritten digits with a label for every pixel."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import ndimage
from sklearn.datasets import load_digits

from localsmooth.errors import InvalidInputError

__all__ = ["BACKGROUND", "CLASS_NAMES", "SCENE_SHAPE", "DigitScenes", "Scene", "Split", "digit_indices"]

SCENE_SHAPE = (64, 96)
"""Height and width of a scene in pixels."""

BACKGROUND = 0
"""Label of every pixel that belongs to no digit; digit ``d`` has the label ``d + 1``."""

CLASS_NAMES = ("background", *(f"digit {digit}" for digit in range(10)))
"""Names of the labels 0 to 10."""

_MIN_DIGITS, _MAX_DIGITS = 3, 6
_MIN_SIZE, _MAX_SIZE = 14, 26
_GAP = 1  # pixels kept free between the boxes of two digits
_INK_THRESHOLD = 0.25  # of full ink: what counts as part of the digit before it is dilated
_SPLIT_SEED = 20230501  # fixed for good: a test digit must never move into the training set


class Split(enum.Enum):
    """Which digits a scene may show; no digit belongs to two splits."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


_SPLIT_SHARES = {Split.TRAIN: 0.6, Split.VALIDATION: 0.15, Split.TEST: 0.25}


@dataclasses.dataclass(frozen=True)
class Scene:
    """One picture and the label of each of its pixels.

    Attributes
    ----------
    image
        Grey values in [0, 1], with a leading channel axis.
    labels
        0 for background, ``d + 1`` for the digit ``d``.
    """

    image: Float[np.ndarray, "1 height width"]
    labels: Int[np.ndarray, "height width"]


@functools.cache
def _handwriting() -> tuple[Float[np.ndarray, "digits 8 8"], Int[np.ndarray, " digits"]]:
    """Real digits in [0, 1] and their classes, from the copy that scikit-learn carries."""
    pixels, classes = load_digits(return_X_y=True)
    return np.asarray(pixels, dtype=np.float64).reshape(-1, 8, 8) / 16.0, np.asarray(classes, dtype=np.int64)


@functools.cache
def _split_indices() -> dict[Split, Int[np.ndarray, " digits"]]:
    """Partition of all digits into splits, class by class so that every split has every class."""
    _, classes = _handwriting()
    generator = np.random.default_rng(_SPLIT_SEED)
    parts: dict[Split, list[Int[np.ndarray, " digits"]]] = {split: [] for split in Split}
    for digit in range(10):
        members = generator.permutation(np.flatnonzero(classes == digit))
        ends = np.rint(np.cumsum(list(_SPLIT_SHARES.values())) * len(members)).astype(int)
        for split, part in zip(_SPLIT_SHARES, np.split(members, ends[:-1]), strict=True):
            parts[split].append(part)
    return {split: np.sort(np.concatenate(chunks)) for split, chunks in parts.items()}


def digit_indices(split: Split) -> Int[np.ndarray, " digits"]:
    """Indices into ``sklearn.datasets.load_digits()`` of the digits that a split may show.

    The partition is fixed: it depends on no seed that a caller can choose, so scenes of the test split never show a
    digit that the shipped checkpoint was trained on. The data set does not say who wrote which digit, so one writer's
    digits may appear in several splits.

    Parameters
    ----------
    split
        The split.

    Returns
    -------
    Int[np.ndarray, " digits"]
        Sorted indices; those of different splits are disjoint and together all 1797.
    """
    return _split_indices()[split].copy()


class DigitScenes:
    """An endless, reproducible sequence of scenes.

    Each scene shows three to six digits of varied size, shape and contrast, without overlap, on an uneven background
    with a few strokes and specks that are not digits.

    Parameters
    ----------
    split
        Which digits may be shown.
    seed
        Seed of the sequence, a non-negative integer: together with the split and the index it determines a scene.

    Raises
    ------
    InvalidInputError
        If the seed is negative.
    """

    class_names: tuple[str, ...] = CLASS_NAMES

    def __init__(self, split: Split, seed: int = 0) -> None:
        if seed < 0:
            raise InvalidInputError("seed", f"{seed} is negative", "Pass a non-negative integer")
        self.split = split
        self.seed = seed
        self._digits = digit_indices(split)

    def scene(self, index: int) -> Scene:
        """Scene number ``index``; the same index always gives the same scene.

        Parameters
        ----------
        index
            A non-negative integer.

        Returns
        -------
        Scene
            Image of shape (1, 64, 96) and type float32, labels of shape (64, 96) and type int64.

        Raises
        ------
        InvalidInputError
            If the index is negative.
        """
        if index < 0:
            raise InvalidInputError("index", f"{index} is negative", "Pass a non-negative integer")
        generator = np.random.default_rng([self.seed, list(Split).index(self.split), index])
        pictures, classes = _handwriting()
        image = _background(generator)
        labels = np.full(SCENE_SHAPE, BACKGROUND, dtype=np.int64)
        occupied = np.zeros(SCENE_SHAPE, dtype=bool)
        for chosen in generator.choice(self._digits, size=generator.integers(_MIN_DIGITS, _MAX_DIGITS + 1)):
            height = int(generator.integers(_MIN_SIZE, _MAX_SIZE + 1))
            width = max(_MIN_SIZE, int(height * generator.uniform(0.8, 1.0)))
            box = _free_box(occupied, height, width, generator)
            if box is None:
                continue
            rows, columns = box
            occupied[
                max(rows.start - _GAP, 0) : rows.stop + _GAP, max(columns.start - _GAP, 0) : columns.stop + _GAP
            ] = 1
            ink = _resize(pictures[chosen], rows.stop - rows.start, columns.stop - columns.start)
            # Ink covers what lies below it, whatever the background's brightness there.
            image[box] = (1.0 - ink) * image[box] + ink * generator.uniform(0.7, 1.0)
            labels[box][_blob(ink)] = classes[chosen] + 1
        return Scene(np.clip(image, 0.0, 1.0).astype(np.float32)[None], labels)

    def stack(
        self, indices: Iterable[int]
    ) -> tuple[Float[np.ndarray, "scenes 1 height width"], Int[np.ndarray, "scenes height width"]]:
        """Several scenes as one array of images and one of labels.

        Parameters
        ----------
        indices
            Indices of the scenes, at least one.

        Returns
        -------
        tuple
            Images of shape (scenes, 1, 64, 96) and labels of shape (scenes, 64, 96).

        Raises
        ------
        InvalidInputError
            If there is no index, or a negative one.
        """
        scenes = [self.scene(index) for index in indices]
        if not scenes:
            raise InvalidInputError("indices", "there are none", "Pass at least one index")
        return np.stack([scene.image for scene in scenes]), np.stack([scene.labels for scene in scenes])


def _blob(ink: Float[np.ndarray, "height width"]) -> Bool[np.ndarray, "height width"]:
    """The pixels that count as the digit: its ink, one pixel around it, and what it encloses."""
    return np.asarray(ndimage.binary_fill_holes(ndimage.binary_dilation(ink > _INK_THRESHOLD)), dtype=bool)


def _free_box(
    occupied: Bool[np.ndarray, "height width"], height: int, width: int, generator: np.random.Generator
) -> tuple[slice, slice] | None:
    """A box drawn uniformly from all that lie on free pixels, smaller than asked for where there is none.

    With at most two boxes on the canvas one of the smallest size is always free: it fits above or below the first,
    and the columns there that the second leaves free are wide enough. So every scene has its three digits.
    """
    integral = np.pad(occupied, ((1, 0), (1, 0))).astype(np.int64).cumsum(0).cumsum(1)
    while True:
        # Number of occupied pixels in each box, by its top left corner.
        inside = (
            integral[height:, width:]
            - integral[:-height, width:]
            - integral[height:, :-width]
            + integral[:-height, :-width]
        )
        corners = np.argwhere(inside == 0)
        if len(corners):
            top, left = (int(value) for value in corners[generator.integers(len(corners))])
            return slice(top, top + height), slice(left, left + width)
        if height == _MIN_SIZE and width == _MIN_SIZE:
            return None
        height, width = max(height - 1, _MIN_SIZE), max(width - 1, _MIN_SIZE)


def _resize(picture: Float[np.ndarray, "rows columns"], height: int, width: int) -> Float[np.ndarray, "height width"]:
    """Bilinear interpolation between pixel centres, constant beyond the outermost centres."""
    rows, columns = (_interpolation(old, new) for old, new in zip(picture.shape, (height, width), strict=True))
    return rows @ picture @ columns.T


@functools.lru_cache(maxsize=128)
def _interpolation(old: int, new: int) -> Float[np.ndarray, "new old"]:
    """Matrix that linearly interpolates ``old`` values at the centres of ``new`` pixels."""
    centres = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    return np.clip(1.0 - np.abs(centres[:, None] - np.arange(old)), 0.0, None)


def _background(generator: np.random.Generator) -> Float[np.ndarray, "height width"]:
    """Uneven grey with a few strokes and specks."""
    image = _resize(generator.uniform(0.0, 0.25, size=(4, 6)), *SCENE_SHAPE)
    rows, columns = np.indices(SCENE_SHAPE)
    for _ in range(generator.integers(2, 6)):
        row, column = generator.uniform(0, SCENE_SHAPE[0]), generator.uniform(0, SCENE_SHAPE[1])
        angle = generator.uniform(0, np.pi)
        half_length, half_width = generator.uniform(0.5, 6.0), generator.uniform(0.5, 1.5)
        along = (rows - row) * np.sin(angle) + (columns - column) * np.cos(angle)
        across = (columns - column) * np.sin(angle) - (rows - row) * np.cos(angle)
        distance = np.hypot(np.maximum(np.abs(along) - half_length, 0.0), across)
        coverage = np.clip(half_width + 0.5 - distance, 0.0, 1.0)
        image += coverage * (generator.uniform(0.3, 0.7) - image)
    return image
