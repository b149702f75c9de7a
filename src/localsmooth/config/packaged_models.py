"""Sections of models whose networks other packages make, and of the one that comes with this."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, no_type_check

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from localsmooth.config.checkpoint import load_weights
from localsmooth.config.faults import ConfigurationError
from localsmooth.config.model_section import DenoiserSection, ModelSection, Positive, evaluation, preprocessing
from localsmooth.config.sampling import SamplingSection
from localsmooth.config.section import ExistingPath
from localsmooth.disk import expanded
from localsmooth.models import (
    HuggingFaceFolder,
    HuggingFaceModel,
    Model,
    TorchModel,
    is_hub_name,
    segmentation_network,
)
from localsmooth.scenes import CLASS_NAMES, TOLD_CHECKPOINT, load_unet
from localsmooth.seeds import torch_seeded
from localsmooth.tasks.tokens import HuggingFaceTagger

__all__ = ["DigitScenesModelSection", "HuggingFaceModelSection", "SegmentationModelSection"]


@no_type_check  # the annotation is a protocol that cannot be checked at run time
def _folder_or_name(source: str, info: ValidationInfo) -> str:
    beside: Path = (info.context or {}).get("folder", Path()) / expanded(source)
    if beside.is_dir():
        return str(beside.absolute())  # runs remember it, and are read elsewhere
    if not is_hub_name(source):
        raise ValueError(f"no such folder: {beside.absolute()}")
    return source


class HuggingFaceModelSection(ModelSection):
    """A semantic segmenter or, for `kind = "sentences"` in [data], a classifier of tokens, as transformers keeps them.

    The extra `huggingface` installs it. What is said of pictures here is for segmenters.
    """

    arguments: ClassVar[Mapping[str, str]] = {"source": "path", "preprocessing": "mean"}

    kind: Literal["huggingface"]
    path: Annotated[str, AfterValidator(_folder_or_name)]
    """The folder that `save_pretrained` wrote, or a name on the hub that transformers resolves. Number and names of the
    classes are its configuration's; normalisation is its image processor's."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """Values of black and white in the items."""
    mean: list[float] | None = None
    """Mean per channel, in place of the image processor's, in the units of the items."""
    std: list[Positive] | None = None
    """Standard deviation per channel, in place of the image processor's."""
    resize: bool | Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2)] = True
    """Interpolate pictures inside the model, to the size that the image processor makes of them, or to [height, width];
    false to give the network pictures in their own size."""
    pad_multiple: int | None = Field(default=None, ge=1)
    """Inputs are mirrored up to a multiple of this; outputs are cropped back."""
    threshold: float | None = None
    """For a head with one channel: an output is class 1 where its logit is above this."""
    upsample: bool | list[Annotated[int, Field(ge=1)]] = True
    """Interpolate scores to the size of the input, or to a list of sizes."""
    pickled: bool = False
    """Also take weights that are pickled, which could run code."""
    denoiser: DenoiserSection | None = None
    """Applied to noisy inputs before anything else."""
    device: str = "cpu"
    """Where torch runs the model, such as "cuda"."""

    def build(self, sampling: SamplingSection) -> Model:
        """Load the segmenter, or the classifier of tokens.

        Parameters
        ----------
        sampling
            Says in which precision it is evaluated.

        Raises
        ------
        ConfigurationError
            If something is said of the pictures of a classifier of tokens.
        """
        if HuggingFaceFolder(self.path).tags_tokens:
            # A run keeps every key with its value, also those that nobody wrote.
            said = {name for name, key in type(self).model_fields.items() if getattr(self, name) != key.default}
            if pictured := sorted(said - {"kind", "path", "pickled", "device"}):
                raise ConfigurationError(f"model.{pictured[0]}: a classifier of tokens has none. Leave it out.")
            return HuggingFaceTagger(self.path, pickled=self.pickled, device=self.device, **evaluation(sampling))
        own = self.mean is not None or self.std is not None
        return HuggingFaceModel(
            self.path,
            bounds=self.bounds,
            preprocessing=preprocessing(self.mean, self.std, self.pad_multiple) if own else None,
            resize=self.resize if isinstance(self.resize, bool) else (self.resize[0], self.resize[1]),
            pad_multiple=None if own else self.pad_multiple,
            threshold=self.threshold,
            upsample=tuple(self.upsample) if isinstance(self.upsample, list) else self.upsample,
            pickled=self.pickled,
            denoiser=None if self.denoiser is None else self.denoiser.build(),
            device=self.device,
            **evaluation(sampling),
        )


class DigitScenesModelSection(ModelSection):
    """The small U-Net for scenes of handwritten digits that comes with the package."""

    kind: Literal["digit-scenes"]
    told: bool = False
    """The network of the same size that is told the noise, and was trained for all layouts and windows at once."""

    def build(self, sampling: SamplingSection) -> Model:
        """Load the network.

        Parameters
        ----------
        sampling
            Says in which precision it is evaluated.
        """
        network = load_unet(TOLD_CHECKPOINT) if self.told else load_unet()
        return TorchModel(network, bounds=(0.0, 1.0), classes=len(CLASS_NAMES), told=self.told, **evaluation(sampling))


class SegmentationModelSection(ModelSection):
    """A network of segmentation-models-pytorch, which the extra `segmentation` installs."""

    kind: Literal["segmentation-models"]
    architecture: Literal["unet", "deeplabv3"] = "unet"
    """The decoder."""
    encoder: str = "resnet18"
    """Name of the encoder, as in that package."""
    classes: int = Field(ge=1)
    """Number of classes; 1 with a threshold."""
    threshold: float | None = None
    """For one channel: an output is class 1 where its logit is above this."""
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
    told: bool = False
    """Whether the network has one channel more, that tells it the noise; see the kind "torch"."""
    device: str = "cpu"
    """Where torch runs the model, such as "cuda"."""

    @model_validator(mode="after")
    def _one_channel(self) -> SegmentationModelSection:
        if self.classes == 1 and self.threshold is None:
            raise ValueError("threshold: one channel says which outputs are class 1 by a threshold; 0.0 for logits")
        if self.classes > 1 and self.threshold is not None:
            raise ValueError(f"threshold: it is for one channel, and there are {self.classes} (classes)")
        return self

    def build(self, sampling: SamplingSection) -> Model:
        """Make the network, and load its weights.

        Parameters
        ----------
        sampling
            Says in which precision it is evaluated.

        Raises
        ------
        ConfigurationError
            If the weights are not this network's.
        """
        with torch_seeded(0):
            module = segmentation_network(
                self.architecture, encoder=self.encoder, classes=self.classes, channels=self.channels + self.told
            )
        load_weights(module, self.checkpoint)
        return TorchModel(
            module,
            bounds=self.bounds,
            classes=None if self.threshold is not None else self.classes,
            threshold=self.threshold,
            preprocessing=preprocessing(self.mean, self.std, self.pad_multiple),
            device=self.device,
            told=self.told,
            **evaluation(sampling),
        )
