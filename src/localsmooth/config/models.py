"""The sections that name a model; what they build imports and runs the user's own code."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypedDict, no_type_check

import torch
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from localsmooth.config.checkpoint import load_weights
from localsmooth.config.faults import ConfigurationError
from localsmooth.config.modules import build_module, import_attribute
from localsmooth.config.programs import load_program
from localsmooth.config.sampling import SamplingSection
from localsmooth.config.section import AnyOf, ExistingPath, Section, value_of
from localsmooth.disk import expanded
from localsmooth.models import (
    CallableModel,
    Denoiser,
    HuggingFaceFolder,
    HuggingFaceModel,
    Model,
    OnnxModel,
    OutputKind,
    Preprocessing,
    TorchModel,
    is_hub_name,
    segmentation_network,
)
from localsmooth.registry import Registry
from localsmooth.scenes import CLASS_NAMES, TOLD_CHECKPOINT, load_unet
from localsmooth.seeds import torch_seeded
from localsmooth.tasks.tokens import HuggingFaceTagger

__all__ = [
    "MODEL_SECTIONS",
    "AnyModel",
    "CallableModelSection",
    "DenoiserSection",
    "DigitScenesModelSection",
    "ExportedModelSection",
    "HuggingFaceModelSection",
    "ModelSection",
    "OnnxModelSection",
    "SegmentationModelSection",
    "TorchModelSection",
    "evaluation",
]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_PRECISIONS = {"float32": None, "float16": torch.float16, "bfloat16": torch.bfloat16}


class _Evaluation(TypedDict):
    precision: torch.dtype | None
    compile: bool


def evaluation(sampling: SamplingSection) -> _Evaluation:
    """Arguments of torch models that say in which precision they are evaluated."""
    return {"precision": _PRECISIONS[sampling.precision], "compile": sampling.compile}


def _warn_if_ignored(sampling: SamplingSection) -> None:
    if sampling.precision != "float32" or sampling.compile:
        warnings.warn("sampling.precision and sampling.compile apply to torch models only", stacklevel=3)


def _preprocessing(mean: list[float] | None, std: list[float] | None, pad_multiple: int | None) -> Preprocessing:
    if len(mean or ()) != len(std or ()):
        raise ConfigurationError("model.mean, model.std: give both, with one number per channel.")
    return Preprocessing(mean, std, pad_multiple=pad_multiple)


class _Described(TypedDict):
    bounds: tuple[float, float] | None
    classes: int | None
    output: OutputKind
    preprocessing: Preprocessing
    threshold: float | None
    upsample: bool | tuple[int, ...] | None
    class_axis: int | Literal["none"] | None
    told: bool
    denoiser: Denoiser | None


class DenoiserSection(Section):
    """A torch module in front of the model: noisy inputs in, inputs of the same shape and units out."""

    factory: str
    """`package.module:function`; called without arguments, returns the module."""
    checkpoint: ExistingPath | None = None
    """Weights to load into it: safetensors, or a torch state dict (read with weights_only)."""
    told: bool = False
    """Whether it takes a second argument: the noise level of every element, of shape 1 × 1 × places, 0 for none and inf
    where inputs are hidden."""

    def build(self) -> Denoiser:
        """Make the denoiser.

        Raises
        ------
        ConfigurationError
            Naming the key at fault.
        """
        return Denoiser(build_module(self.factory, self.checkpoint, "model.denoiser"), told=self.told)


class ModelSection(Section):
    """Base of the sections of models; each has a key `kind` with one value."""

    @abstractmethod
    def build(self, sampling: SamplingSection) -> Model:
        """Make the model.

        Parameters
        ----------
        sampling
            Says how it is evaluated.
        """


class AdaptedModelSection(ModelSection):
    """What every model needs to say about itself."""

    classes: int | None = Field(default=None, ge=2)
    """Number of classes, where it cannot be read off the model."""
    bounds: tuple[float, float] | None = None
    """Smallest and largest clean input value, in the units of the noise levels and budgets."""
    output: Literal["logits", "probabilities", "labels"] = "logits"
    """What the model returns."""
    threshold: float | None = None
    """For a one-channel output: an output is class 1 above this, in the units of that channel."""
    mean: list[float] | None = None
    """Mean per channel, subtracted before the model sees its input."""
    std: list[Positive] | None = None
    """Standard deviation per channel, divided by before the model sees its input."""
    pad_multiple: int | None = Field(default=None, ge=1)
    """Inputs are mirrored up to a multiple of this; outputs are cropped back."""
    upsample: bool | list[Annotated[int, Field(ge=1)]] | None = None
    """True: interpolate scores to the size of the input. A list of sizes: to these. By default what comes as `.logits`
    of several spatial axes."""
    class_axis: int | Literal["none"] | None = None
    """Axis of the output that holds the classes, the batch being axis 0: -1 where they lie last. Of labels, an axis of
    size 1 to leave out; "none" for a map without such an axis, with a threshold. By default axis 1 of scores."""
    told: bool = False
    """Whether the model takes one channel more than the inputs have, behind their own, that tells it the noise: the
    logarithm of every level in units of the bounds' range, between −5 (no noise) and 5 (hidden)."""
    denoiser: DenoiserSection | None = None
    """Applied to noisy inputs before anything else."""

    @field_validator("bounds")
    @classmethod
    def _interval(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and not value[0] < value[1]:
            raise ValueError("the lower bound must be below the upper bound")
        return value

    def _described(self) -> _Described:
        return {
            "bounds": self.bounds,
            "classes": self.classes,
            "output": OutputKind[self.output.upper()],
            "preprocessing": _preprocessing(self.mean, self.std, self.pad_multiple),
            "threshold": self.threshold,
            "upsample": tuple(self.upsample) if isinstance(self.upsample, list) else self.upsample,
            "class_axis": self.class_axis,
            "told": self.told,
            "denoiser": None if self.denoiser is None else self.denoiser.build(),
        }


class TorchModelSection(AdaptedModelSection):
    """A torch module made by a function of the user's own."""

    kind: Literal["torch"]
    factory: str
    """`package.module:function`; called without arguments, returns the module."""
    checkpoint: ExistingPath | None = None
    """Weights to load into the module: safetensors, or a torch state dict (read with weights_only)."""
    select: str | int | None = None
    """Which of several tensors that the module returns is the prediction: its key or attribute, or its position."""
    reset: str | None = None
    """Name of a method of the module, called before every batch: for modules that keep a state between calls."""
    device: str = "cpu"
    """Where torch runs the model, such as "cuda"."""

    def build(self, sampling: SamplingSection) -> Model:
        """Make the module, and a model of it.

        Parameters
        ----------
        sampling
            Says in which precision it is evaluated.

        Raises
        ------
        ConfigurationError
            Naming the key at fault.
        """
        module = build_module(self.factory, self.checkpoint)
        return TorchModel(
            module,
            select=self.select,
            reset=self.reset,
            device=self.device,
            **self._described(),
            **evaluation(sampling),
        )


class ExportedModelSection(AdaptedModelSection):
    """A program of torch.export, exported in evaluation mode; its batch may be free or fixed."""

    kind: Literal["torch-export"]
    path: ExistingPath
    """What `torch.export.save` wrote."""
    select: str | int | None = None
    """Which of several tensors that the program returns is the prediction: its key, or its position."""
    device: str = "cpu"
    """Where torch runs the model, such as "cuda"."""

    def build(self, sampling: SamplingSection) -> Model:
        """Load the program, and make a model of it.

        Parameters
        ----------
        sampling
            Says in which precision it is evaluated.

        Raises
        ------
        ConfigurationError
            If the file is none, or holds something that may run as code.
        """
        program = load_program(self.path)
        return TorchModel(program, select=self.select, device=self.device, **self._described(), **evaluation(sampling))


class OnnxModelSection(AdaptedModelSection):
    """An ONNX file, run by ONNX Runtime."""

    kind: Literal["onnx"]
    path: ExistingPath
    """The file."""
    output_name: str | None = None
    """Which output to read; needed where the file has several."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    """Values of further inputs, by name, such as { sr = 16000 }: numbers or lists of them, the same in every call."""

    def build(self, sampling: SamplingSection) -> Model:
        """Open the file.

        Parameters
        ----------
        sampling
            Not heeded, with a warning where it asks for something.
        """
        _warn_if_ignored(sampling)
        return OnnxModel(self.path, output_name=self.output_name, inputs=self.inputs, **self._described())


class CallableModelSection(AdaptedModelSection):
    """A function from a numpy batch to a numpy array of scores or labels."""

    kind: Literal["callable"]
    function: str
    """`package.module:function`."""

    def build(self, sampling: SamplingSection) -> Model:
        """Import the function, and make a model of it.

        Parameters
        ----------
        sampling
            Not heeded, with a warning where it asks for something.

        Raises
        ------
        ConfigurationError
            If there is no such function.
        """
        _warn_if_ignored(sampling)
        function = import_attribute("model.function", self.function)
        return CallableModel(function, name=f"{self.function} {_module_source(function)}", **self._described())


def _module_source(function: Callable[..., Any]) -> str:
    """The file in which a function is defined, so that what it calls there counts too; empty if there is none."""
    module = inspect.getmodule(function) or inspect.getmodule(type(function))
    try:
        return "" if module is None else inspect.getsource(module)
    except (OSError, TypeError):
        return ""


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
            if pictured := sorted(self.model_fields_set - {"kind", "path", "pickled", "device"}):
                raise ConfigurationError(f"model.{pictured[0]}: a classifier of tokens has none. Leave it out.")
            return HuggingFaceTagger(self.path, pickled=self.pickled, device=self.device, **evaluation(sampling))
        own = self.mean is not None or self.std is not None
        return HuggingFaceModel(
            self.path,
            bounds=self.bounds,
            preprocessing=_preprocessing(self.mean, self.std, self.pad_multiple) if own else None,
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
            preprocessing=_preprocessing(self.mean, self.std, self.pad_multiple),
            device=self.device,
            told=self.told,
            **evaluation(sampling),
        )


MODEL_SECTIONS = Registry[ModelSection](
    "section of a model",
    value_of("kind"),
    TorchModelSection,
    ExportedModelSection,
    OnnxModelSection,
    CallableModelSection,
    HuggingFaceModelSection,
    DigitScenesModelSection,
    SegmentationModelSection,
)
"""Sections by kind of model."""

AnyModel = Annotated[ModelSection, AnyOf(MODEL_SECTIONS, "kind")]
