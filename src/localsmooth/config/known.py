"""Sections for well-known data sets and networks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from localsmooth.config.section import ExistingPath, Section

__all__ = ["CityscapesSection", "PascalVocSection", "SegmentationModelSection"]


class SegmentationModelSection(Section):
    """A network of segmentation-models-pytorch, which the extra `segmentation` installs."""

    kind: Literal["segmentation-models"]
    architecture: Literal["unet", "deeplabv3"] = "unet"
    """The decoder."""
    encoder: str = "resnet18"
    """Name of the encoder, as in that package."""
    classes: int = Field(ge=2)
    """Number of classes."""
    channels: int = Field(default=3, ge=1)
    """Number of input channels."""
    checkpoint: ExistingPath
    """Weights: safetensors, or a torch state dict (read with weights_only)."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest clean input value, in the units of the noise levels and budgets."""
    mean: list[float] | None = None
    """Mean per channel, subtracted inside the model."""
    std: list[float] | None = None
    """Standard deviation per channel, divided by inside the model."""
    pad_multiple: int = Field(default=32, ge=1)
    """Inputs are mirrored up to a multiple of this; outputs are cropped back."""
    device: str = "cpu"
    """Where torch runs the model, such as "cuda"."""


class PascalVocSection(Section):
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


class CityscapesSection(Section):
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
