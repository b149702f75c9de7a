"""Networks of segmentation-models-pytorch, as in Schuchardt et al. 2023, Section 8."""

from __future__ import annotations

import importlib
from typing import Any, Literal

from torch import nn

from localsmooth.errors import InvalidInputError

__all__ = ["segmentation_network"]

_CLASSES = {"unet": "Unet", "deeplabv3": "DeepLabV3"}


def segmentation_network(
    architecture: Literal["unet", "deeplabv3"], *, encoder: str = "resnet18", classes: int, channels: int = 3
) -> nn.Module:
    """Build a network with random weights, in evaluation mode.

    Parameters
    ----------
    architecture
        The decoder.
    encoder
        Name of the encoder, as in that package.
    classes, channels
        Numbers of output and input channels.

    Raises
    ------
    InvalidInputError
        If the package is not installed, or does not know the encoder.
    """
    try:
        package: Any = importlib.import_module("segmentation_models_pytorch")
    except (ImportError, RuntimeError) as error:  # torch and torchvision of different releases raise the latter
        raise InvalidInputError(
            "model",
            f"segmentation-models-pytorch cannot be imported ({error})",
            "Install localsmooth[segmentation], with torch and torchvision of the same release",
        ) from None
    try:
        network = getattr(package, _CLASSES[architecture])(
            encoder, encoder_weights=None, in_channels=channels, classes=classes
        )
    except KeyError as error:
        raise InvalidInputError("encoder", f"{error}", "Name an encoder of segmentation-models-pytorch") from None
    return network.eval()
