"""Pascal VOC 2012 segmentation, with the further training masks of the Semantic Boundaries Dataset."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int
from scipy.io import loadmat

from localsmooth.datasets.folder import SegmentationFolder
from localsmooth.datasets.pictures import read_classes, read_pixels
from localsmooth.disk import expanded, read_text
from localsmooth.errors import InvalidInputError

__all__ = ["PascalVoc", "VocSplit"]


class VocSplit(enum.Enum):
    """Which pictures."""

    TRAIN = "train"
    VALIDATION = "val"
    TRAIN_AUGMENTED = "trainaug"
    """The training pictures, and those of the Semantic Boundaries Dataset that are not in the validation split."""


class PascalVoc(SegmentationFolder):
    """Pascal VOC 2012.

    Parameters
    ----------
    root
        The folder `VOC2012`, with `JPEGImages`, `SegmentationClass` and `ImageSets`.
    split
        Which pictures.
    boundaries
        The folder `dataset` of the Semantic Boundaries Dataset, with `img`, `cls`, `train.txt` and `val.txt`; for the
        augmented training split only. Where both have a mask, Pascal VOC's own is taken.
    scale
        Ratio by which everything is shrunk; ½ in Schuchardt et al. 2023.

    Raises
    ------
    InvalidInputError
        Naming the folder or list that is missing.
    """

    class_names = (
        "background",
        "aeroplane",
        "bicycle",
        "bird",
        "boat",
        "bottle",
        "bus",
        "car",
        "cat",
        "chair",
        "cow",
        "dining table",
        "dog",
        "horse",
        "motorbike",
        "person",
        "potted plant",
        "sheep",
        "sofa",
        "train",
        "tv monitor",
    )

    def __init__(self, root: Path, split: VocSplit, boundaries: Path | None = None, *, scale: float = 0.5) -> None:
        self._root = root = expanded(root)
        self._boundaries = boundaries = None if boundaries is None else expanded(boundaries)
        lists = root / "ImageSets" / "Segmentation"
        if split is not VocSplit.TRAIN_AUGMENTED:
            super().__init__(_names(lists / f"{split.value}.txt"), scale)
            self._own = frozenset(self.names)
            return
        if boundaries is None:
            raise InvalidInputError(
                "boundaries", "the augmented split needs the Semantic Boundaries Dataset", "Pass its folder `dataset`"
            )
        own = set(_names(lists / "train.txt"))
        held_out = set(_names(lists / "val.txt"))
        further = {name for part in ("train", "val") for name in _names(boundaries / f"{part}.txt")}
        # Most of VOC's validation pictures have a mask there, too: they must not be trained on.
        super().__init__(sorted((own | further) - held_out), scale)
        self._own = frozenset(own)

    def read_image(self, name: str) -> Float[np.ndarray, "channels height width"]:
        """A picture in its full size, with values in [0, 1]."""
        path = self._root / "JPEGImages" / f"{name}.jpg"
        if not path.is_file() and self._boundaries is not None:
            path = self._boundaries / "img" / f"{name}.jpg"
        return read_pixels(path, 255.0)

    def read_labels(self, name: str) -> Int[np.ndarray, "height width"]:
        """Its labels in full size."""
        if name in self._own or self._boundaries is None:
            return read_classes(self._root / "SegmentationClass" / f"{name}.png")
        return _matlab_mask(self._boundaries / "cls" / f"{name}.mat")


def _names(path: Path) -> list[str]:
    if not path.is_file():
        raise InvalidInputError("root", f"there is no {path}", "Pass the folder as it is unpacked from the archive")
    names = read_text(path).split()
    for name in names:
        if not name.replace("_", "").replace("-", "").isalnum():
            raise InvalidInputError("root", f'{path} lists "{name}", which is no name', "Restore the list")
    return names


def _matlab_mask(path: Path) -> Int[np.ndarray, "height width"]:
    try:
        content = cast("dict[str, Any]", loadmat(path, simplify_cells=True))
        mask = np.asarray(content["GTcls"]["Segmentation"])
    except Exception as error:  # a damaged file can fail anywhere in the reader
        raise InvalidInputError("boundaries", f"{path} holds no mask ({error})", "Replace the file") from None
    if mask.ndim != 2 or not np.issubdtype(mask.dtype, np.integer):
        raise InvalidInputError("boundaries", f"{path} holds no mask of class numbers", "Replace the file")
    return mask.astype(np.int64)
