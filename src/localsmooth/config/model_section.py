"""What the sections of all models have in common."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Annotated, Literal, TypedDict

import torch
from pydantic import Field, field_validator

from localsmooth.config.faults import ConfigurationError
from localsmooth.config.modules import build_module
from localsmooth.config.sampling import SamplingSection
from localsmooth.config.section import ExistingPath, Section
from localsmooth.models import Denoiser, Model, OutputKind, Preprocessing

__all__ = [
    "AdaptedModelSection",
    "DenoiserSection",
    "Described",
    "ModelSection",
    "Positive",
    "evaluation",
    "preprocessing",
    "warn_if_ignored",
]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_PRECISIONS = {"float32": None, "float16": torch.float16, "bfloat16": torch.bfloat16}


class _Evaluation(TypedDict):
    precision: torch.dtype | None
    compile: bool


def evaluation(sampling: SamplingSection) -> _Evaluation:
    """Arguments of torch models that say in which precision they are evaluated."""
    return {"precision": _PRECISIONS[sampling.precision], "compile": sampling.compile}


def warn_if_ignored(sampling: SamplingSection) -> None:
    """Warn where something is asked for that torch models alone do."""
    if sampling.precision != "float32" or sampling.compile:
        warnings.warn("sampling.precision and sampling.compile apply to torch models only", stacklevel=3)


def preprocessing(mean: list[float] | None, std: list[float] | None, pad_multiple: int | None) -> Preprocessing:
    """Normalisation and padding, as the model does them itself.

    Parameters
    ----------
    mean, std
        One number per channel, or neither.
    pad_multiple
        Inputs are mirrored up to a multiple of this.

    Raises
    ------
    ConfigurationError
        If mean and standard deviation do not fit each other.
    """
    if len(mean or ()) != len(std or ()):
        raise ConfigurationError("model.mean, model.std: give both, with one number per channel.")
    return Preprocessing(mean, std, pad_multiple=pad_multiple)


class Described(TypedDict):
    """Arguments that every adapted model takes."""

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

    def described(self) -> Described:
        """What the section says, as arguments of the models of the package."""
        return {
            "bounds": self.bounds,
            "classes": self.classes,
            "output": OutputKind[self.output.upper()],
            "preprocessing": preprocessing(self.mean, self.std, self.pad_multiple),
            "threshold": self.threshold,
            "upsample": tuple(self.upsample) if isinstance(self.upsample, list) else self.upsample,
            "class_axis": self.class_axis,
            "told": self.told,
            "denoiser": None if self.denoiser is None else self.denoiser.build(),
        }
