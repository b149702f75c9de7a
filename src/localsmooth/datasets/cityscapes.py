"""Cityscapes with fine annotations."""

from __future__ import annotations

import enum
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from localsmooth.datasets.folder import SegmentationFolder
from localsmooth.datasets.pictures import read_classes, read_pixels
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError

__all__ = ["Cityscapes", "CityscapesSplit"]

_IMAGE, _LABELS = "_leftImg8bit.png", "_gtFine_labelIds.png"
_HIGHEST_ID = 33
# Number in the files → class that is trained and evaluated; all other numbers are ignored.
_CLASSES = {
    7: "road",
    8: "sidewalk",
    11: "building",
    12: "wall",
    13: "fence",
    17: "pole",
    19: "traffic light",
    20: "traffic sign",
    21: "vegetation",
    22: "terrain",
    23: "sky",
    24: "person",
    25: "rider",
    26: "car",
    27: "truck",
    28: "bus",
    31: "train",
    32: "motorcycle",
    33: "bicycle",
}


class CityscapesSplit(enum.Enum):
    """Which pictures; those of the test split have no public labels."""

    TRAIN = "train"
    VALIDATION = "val"


class Cityscapes(SegmentationFolder):
    """Cityscapes with fine annotations, in its 19 classes.

    Parameters
    ----------
    root
        The folder that holds `leftImg8bit` and `gtFine`.
    split
        Which pictures.
    scale
        Ratio by which everything is shrunk; ½ in Schuchardt et al. 2023.

    Raises
    ------
    InvalidInputError
        Naming the folder that is missing or empty.
    """

    class_names = tuple(_CLASSES.values())

    def __init__(self, root: Path, split: CityscapesSplit, *, scale: float = 0.5) -> None:
        self._root = root = expanded(root)
        self._split = split
        folder = root / "leftImg8bit" / split.value
        names = sorted(path.relative_to(folder).as_posix().removesuffix(_IMAGE) for path in folder.glob(f"*/*{_IMAGE}"))
        if not names:
            raise InvalidInputError(
                "root", f"{folder} holds no pictures", "Pass the folder with leftImg8bit and gtFine, unpacked"
            )
        super().__init__(names, scale)
        self._class_of = np.full(256, self.ignore_label, dtype=np.int64)
        self._class_of[list(_CLASSES)] = np.arange(len(_CLASSES))

    def read_image(self, name: str) -> Float[np.ndarray, "channels height width"]:
        """A picture in its full size, with values in [0, 1]."""
        return read_pixels(self._root / "leftImg8bit" / self._split.value / f"{name}{_IMAGE}", 255.0)

    def read_labels(self, name: str) -> Int[np.ndarray, "height width"]:
        """Its labels in full size.

        Raises
        ------
        InvalidInputError
            If the file holds numbers that are no ids of Cityscapes.
        """
        path = self._root / "gtFine" / self._split.value / f"{name}{_LABELS}"
        numbers = read_classes(path)
        # The licence plates' number, −1, is stored as 255.
        if numbers.min() < 0 or not bool(((numbers <= _HIGHEST_ID) | (numbers == 255)).all()):
            raise InvalidInputError(
                "labels", f"{path} has numbers outside 0 … {_HIGHEST_ID}", "Pass the labelIds files"
            )
        return self._class_of[numbers]
