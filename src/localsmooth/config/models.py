"""The sections that name a model; what they build imports and runs the user's own code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from localsmooth.config.model_section import AdaptedModelSection, ModelSection, evaluation, warn_if_ignored
from localsmooth.config.modules import build_module, import_attribute
from localsmooth.config.packaged_models import (
    DigitScenesModelSection,
    HuggingFaceModelSection,
    SegmentationModelSection,
)
from localsmooth.config.programs import load_program
from localsmooth.config.sampling import SamplingSection
from localsmooth.config.section import AnyOf, ExistingPath, value_of
from localsmooth.models import CallableModel, Model, OnnxModel, TorchModel
from localsmooth.registry import Registry

__all__ = [
    "MODEL_SECTIONS",
    "AnyModel",
    "CallableModelSection",
    "ExportedModelSection",
    "OnnxModelSection",
    "TorchModelSection",
]


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
            **self.described(),
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
        return TorchModel(program, select=self.select, device=self.device, **self.described(), **evaluation(sampling))


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
        warn_if_ignored(sampling)
        return OnnxModel(self.path, output_name=self.output_name, inputs=self.inputs, **self.described())


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
        warn_if_ignored(sampling)
        function = import_attribute("model.function", self.function)
        return CallableModel(function, name=f"{self.function} {_module_source(function)}", **self.described())


def _module_source(function: Callable[..., Any]) -> str:
    """The file in which a function is defined, so that what it calls there counts too; empty if there is none."""
    module = inspect.getmodule(function) or inspect.getmodule(type(function))
    try:
        return "" if module is None else inspect.getsource(module)
    except (OSError, TypeError):
        return ""


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
