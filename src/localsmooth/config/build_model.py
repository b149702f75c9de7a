"""From the section of a model to the model that it describes; this imports and runs the user's own code."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from localsmooth.config.checkpoint import load_weights
from localsmooth.config.explain import ConfigurationError
from localsmooth.config.known import SegmentationModelSection
from localsmooth.config.schema import (
    CallableModelSection,
    Configuration,
    DigitScenesModelSection,
    OnnxModelSection,
    SamplingSection,
    TorchModelSection,
)
from localsmooth.models import CallableModel, Model, OnnxModel, OutputKind, TorchModel
from localsmooth.models.exported import evaluated
from localsmooth.models.segmentation import segmentation_network
from localsmooth.scenes import CLASS_NAMES, load_unet
from localsmooth.seeds import torch_seeded

__all__ = ["build_model", "build_module", "import_attribute"]

_PRECISIONS = {"float32": None, "float16": torch.float16, "bfloat16": torch.bfloat16}
_OUTPUTS = {"logits": OutputKind.LOGITS, "probabilities": OutputKind.PROBABILITIES, "labels": OutputKind.LABELS}


def import_attribute(key: str, reference: str) -> Callable[..., Any]:
    """Import `package.module:attribute`, which runs the module's code: models are code.

    Raises
    ------
    ConfigurationError
        Naming `key` if there is no such module or attribute.
    """
    module_name, _, attribute = reference.partition(":")
    if not (module_name and attribute):
        raise ConfigurationError(f'{key}: "{reference}" does not have the form package.module:function.')
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{key}: {error}. Install it, or run where Python can import it.") from None
    except AttributeError:
        raise ConfigurationError(f'{key}: module {module_name} has no "{attribute}".') from None
    if not callable(found):
        raise ConfigurationError(f"{key}: {reference} cannot be called.")
    return found


@torch_seeded(0)  # weights that the user's code draws are the same every time
def build_module(factory: str, checkpoint: Path | None) -> nn.Module:
    """Make a module by a function of the user's own, in evaluation mode.

    Parameters
    ----------
    factory
        `package.module:function`, or a module itself.
    checkpoint
        Weights to load into it.

    Raises
    ------
    ConfigurationError
        If there is no such function, or it makes something else.
    """
    module = import_attribute("model.factory", factory)
    if not isinstance(module, nn.Module):
        module = module()
    if not isinstance(module, nn.Module):
        raise ConfigurationError(f"model.factory: {factory} returned {type(module).__name__}, no torch module.")
    if checkpoint is not None:
        load_weights(module, checkpoint)
    return evaluated(module)


def _normalise(
    section: TorchModelSection | OnnxModelSection | CallableModelSection | SegmentationModelSection,
) -> tuple[list[float], list[float]] | None:
    if section.mean is None and section.std is None:
        return None
    if section.mean is None or section.std is None or len(section.mean) != len(section.std):
        raise ConfigurationError("model.mean, model.std: give both, with one number per channel.")
    return section.mean, section.std


def _upsample(section: TorchModelSection | OnnxModelSection | CallableModelSection) -> bool | tuple[int, ...] | None:
    return tuple(section.upsample) if isinstance(section.upsample, list) else section.upsample


def _torch_model(section: TorchModelSection, sampling: SamplingSection) -> Model:
    return TorchModel(
        build_module(section.factory, section.checkpoint),
        bounds=section.bounds,
        classes=section.classes,
        output=_OUTPUTS[section.output],
        normalise=_normalise(section),
        pad_multiple=section.pad_multiple,
        threshold=section.threshold,
        upsample=_upsample(section),
        device=section.device,
        precision=_PRECISIONS[sampling.precision],
        compile=sampling.compile,
    )


def _segmentation_model(section: SegmentationModelSection, sampling: SamplingSection) -> Model:
    with torch_seeded(0):
        module = segmentation_network(
            section.architecture, encoder=section.encoder, classes=section.classes, channels=section.channels
        )
    load_weights(module, section.checkpoint)
    return TorchModel(
        module,
        bounds=section.bounds,
        classes=section.classes,
        normalise=_normalise(section),
        pad_multiple=section.pad_multiple,
        device=section.device,
        precision=_PRECISIONS[sampling.precision],
        compile=sampling.compile,
    )


def build_model(configuration: Configuration) -> Model:
    """Make the base classifier; this imports and runs the user's own model code.

    Raises
    ------
    ConfigurationError
        Naming the key at fault.
    """
    section, sampling = configuration.model, configuration.sampling
    if isinstance(section, TorchModelSection):
        return _torch_model(section, sampling)
    if isinstance(section, SegmentationModelSection):
        return _segmentation_model(section, sampling)
    if isinstance(section, DigitScenesModelSection):
        return TorchModel(
            load_unet(),
            bounds=(0.0, 1.0),
            classes=len(CLASS_NAMES),
            precision=_PRECISIONS[sampling.precision],
            compile=sampling.compile,
        )
    if sampling.precision != "float32" or sampling.compile:
        warnings.warn("sampling.precision and sampling.compile apply to torch models only", stacklevel=2)
    if isinstance(section, OnnxModelSection):
        return OnnxModel(
            section.path,
            bounds=section.bounds,
            classes=section.classes,
            output=_OUTPUTS[section.output],
            normalise=_normalise(section),
            pad_multiple=section.pad_multiple,
            threshold=section.threshold,
            upsample=_upsample(section),
            output_name=section.output_name,
        )
    return _callable_model(section)


def _callable_model(section: CallableModelSection) -> Model:
    function = import_attribute("model.function", section.function)
    return CallableModel(
        function,
        name=f"{section.function} {_module_source(function)}",
        bounds=section.bounds,
        classes=section.classes,
        output=_OUTPUTS[section.output],
        normalise=_normalise(section),
        pad_multiple=section.pad_multiple,
        threshold=section.threshold,
        upsample=_upsample(section),
    )


def _module_source(function: Callable[..., Any]) -> str:
    """The file in which a function is defined, so that what it calls there counts too; empty if there is none."""
    module = inspect.getmodule(function) or inspect.getmodule(type(function))
    try:
        return "" if module is None else inspect.getsource(module)
    except (OSError, TypeError):
        return ""
