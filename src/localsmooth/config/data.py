"""The sections that name items: arrays, pictures, and well-known data sets."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from localsmooth.config.section import AnyOf, ExistingPath, Section, value_of
from localsmooth.datasets import (
    Cityscapes,
    CityscapesSplit,
    Item,
    ItemSet,
    PascalVoc,
    VocSplit,
    load_arrays,
    load_pictures,
)
from localsmooth.models import Model
from localsmooth.registry import Registry
from localsmooth.scenes import CLASS_NAMES, DigitScenes, Split
from localsmooth.tasks.arrays import ArrayTask

__all__ = [
    "DATA_SECTIONS",
    "AnyData",
    "ArraysSection",
    "CityscapesSection",
    "DataSection",
    "DigitScenesSection",
    "ImageFilesSection",
    "ItemsSection",
    "PascalVocSection",
]


class DataSection(Section):
    """Base of the sections of data; each has a key `kind` with one value, and makes the task of its kind of input.

    Attributes
    ----------
    lays_out
        Kind of the layout that goes with it.
    """

    lays_out: ClassVar[str] = "grid"

    @property
    @abstractmethod
    def labelled(self) -> bool:
        """Whether there are labels."""

    @abstractmethod
    def task(self, model: Model) -> ArrayTask:
        """Load what is certified.

        Parameters
        ----------
        model
            What it is certified for.
        """


class ItemsSection(DataSection):
    """Base of the sections of arrays."""

    @property
    def labelled(self) -> bool:
        """Whether there are labels; wherever they need not be named."""
        return getattr(self, "labels", True) is not None

    @abstractmethod
    def build(self) -> ItemSet:
        """Load the items."""

    def task(self, model: Model) -> ArrayTask:
        """Load the items to certify."""
        return ArrayTask(model, self.build())


class ArraysSection(ItemsSection):
    """Inputs and labels from .npy files."""

    kind: Literal["arrays"]
    images: ExistingPath
    """Array of shape items × channels × spatial axes."""
    labels: ExistingPath | None = None
    """Integer array of shape items × outputs."""
    items: list[int] | None = None
    """Which items to certify; all by default."""
    ignore_label: int | None = None
    """Label of outputs that count neither for nor against the model."""
    class_names: list[str] | None = None
    """Name of every class, in order."""

    def build(self) -> ItemSet:
        """Load the items."""
        return load_arrays(
            self.images,
            self.labels,
            items=self.items,
            class_names=self.class_names,
            ignore_label=self.ignore_label,
        )


class ImageFilesSection(ItemsSection):
    """Inputs and labels from picture files; labels are single-channel pictures of class numbers."""

    kind: Literal["images"]
    images: ExistingPath
    """A picture, or a folder of pictures, taken in the order of their names and turned as their EXIF tags say."""
    labels: ExistingPath | None = None
    """A picture, or a folder with one picture of the same stem for each input; turned likewise."""
    items: list[int] | None = None
    """Positions of the pictures to certify; all by default."""
    scale: float = Field(default=255.0, gt=0, allow_inf_nan=False)
    """Pixel values are divided by this: 255 for pictures of 8 bits, 65535 for grey ones of 16."""
    ignore_label: int | None = None
    """Label of outputs that count neither for nor against the model."""
    class_names: list[str] | None = None
    """Name of every class, in order."""

    def build(self) -> ItemSet:
        """Load the items."""
        return load_pictures(
            self.images,
            self.labels,
            items=self.items,
            scale=self.scale,
            class_names=self.class_names,
            ignore_label=self.ignore_label,
        )


class DigitScenesSection(ItemsSection):
    """Scenes of real handwritten digits."""

    kind: Literal["digit-scenes"]
    split: Literal["test", "validation"] = "test"
    """Digits that the scenes show; no digit is in two splits."""
    items: list[int] = Field(default=[0, 1, 2], min_length=1)
    """Numbers of the scenes."""
    seed: int = Field(default=0, ge=0)
    """Another seed gives other scenes of the same digits."""
    eight_bits: bool = False
    """Round brightness to multiples of 1/255, as pictures of 8 bits have it: noise is on that grid then."""

    def build(self) -> ItemSet:
        """Make the scenes."""
        scenes = DigitScenes(Split(self.split), seed=self.seed)
        made = [(index, scenes.scene(index)) for index in self.items]
        items = [
            Item(index, f"scene {index}", _of_eight_bits(one.image) if self.eight_bits else one.image, one.labels)
            for index, one in made
        ]
        return ItemSet(items, CLASS_NAMES)


def _of_eight_bits(image: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    return (np.rint(255 * image) / 255).astype(np.float32)


class PascalVocSection(ItemsSection):
    """Pascal VOC 2012, from a local folder."""

    kind: Literal["pascal-voc"]
    root: ExistingPath
    """The folder `VOC2012`."""
    split: Literal["train", "val", "trainaug"] = "val"
    """Which pictures; `trainaug` adds the Semantic Boundaries Dataset without the validation pictures."""
    boundaries: ExistingPath | None = None
    """The folder `dataset` of the Semantic Boundaries Dataset, for `trainaug`."""
    items: list[int] = Field(min_length=1)
    """Positions in the split."""
    scale: float = Field(default=0.5, gt=0, le=1)
    """Ratio by which pictures (averaging areas) and labels (nearest) are shrunk."""

    @model_validator(mode="after")
    def _complete(self) -> PascalVocSection:
        if self.split == "trainaug" and self.boundaries is None:
            raise ValueError("trainaug needs boundaries, the folder of the Semantic Boundaries Dataset")
        return self

    def build(self) -> ItemSet:
        """Load the items."""
        return PascalVoc(self.root, VocSplit(self.split), self.boundaries, scale=self.scale).item_set(self.items)


class CityscapesSection(ItemsSection):
    """Cityscapes with fine annotations, from a local folder."""

    kind: Literal["cityscapes"]
    root: ExistingPath
    """The folder with `leftImg8bit` and `gtFine`."""
    split: Literal["train", "val"] = "val"
    """Which pictures."""
    items: list[int] = Field(min_length=1)
    """Positions in the split, in the order of city and picture."""
    scale: float = Field(default=0.5, gt=0, le=1)
    """Ratio by which pictures (averaging areas) and labels (nearest) are shrunk."""

    def build(self) -> ItemSet:
        """Load the items."""
        return Cityscapes(self.root, CityscapesSplit(self.split), scale=self.scale).item_set(self.items)


DATA_SECTIONS = Registry[DataSection](
    "section of data",
    value_of("kind"),
    ArraysSection,
    ImageFilesSection,
    DigitScenesSection,
    PascalVocSection,
    CityscapesSection,
)
"""Sections by kind of data."""

AnyData = Annotated[DataSection, AnyOf(DATA_SECTIONS, "kind")]
