"""The small segmentation network of the embedded default, and its checkpoint."""

from __future__ import annotations

import copy
from collections import OrderedDict
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from localsmooth.errors import InvalidInputError
from localsmooth.scenes.digits import CLASS_NAMES
from localsmooth.seeds import torch_seeded

__all__ = ["CHECKPOINT", "DEFAULT_WIDTH", "TOLD_CHECKPOINT", "UNet", "load_unet"]

CHECKPOINT = Path(__file__).parent / "digits_unet.safetensors"
"""Weights that ``scripts/train_scenes.py`` trained on digit scenes with Gaussian noise."""

TOLD_CHECKPOINT = Path(__file__).parent / "digits_unet_told.safetensors"
"""Weights of the network that is told the noise, which ``scripts/train_told_scenes.py`` trained for all layouts."""

DEFAULT_WIDTH = 16
"""Width of the network in the checkpoint."""

_STRIDE = 8  # of the coarsest feature map


def _convolution(channels_in: int, channels_out: int, batch_norm: bool) -> nn.Sequential:
    """3×3 convolution and ReLU, with batch normalisation between them while training."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["convolution"] = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=not batch_norm)
    if batch_norm:
        layers["normalisation"] = nn.BatchNorm2d(channels_out)
    layers["activation"] = nn.ReLU()
    return nn.Sequential(layers)


def _double_convolution(channels_in: int, channels_out: int, batch_norm: bool) -> nn.Sequential:
    return nn.Sequential(
        _convolution(channels_in, channels_out, batch_norm), _convolution(channels_out, channels_out, batch_norm)
    )


class UNet(nn.Module):
    """U-Net (Ronneberger et al. 2015) on 2×2 patches, with three resolutions and logits for every pixel.

    Images enter as patches of 2×2 pixels and logits leave the same way, so that all convolutions work at half the
    resolution or less: four times as fast as a U-Net whose first level has the resolution of the image.

    The network is trained with batch normalisation, which ``fused`` folds into the convolutions. What remains treats
    every sample on its own and, unlike normalisation over a whole image, lets strong noise in one corner of an image
    leave the features in another corner alone.

    Parameters
    ----------
    width
        Channels at the finest resolution; the number of parameters grows with its square (16: 110 thousand,
        72: 2.2 million).
    classes
        Number of classes.
    channels
        Channels of the input: 1 for a picture, 2 for a picture and the noise that it is told.
    batch_norm
        Whether to normalise after each 3×3 convolution, for training only.

    Raises
    ------
    InvalidInputError
        If the width, the number of classes or that of channels is not positive.
    """

    def __init__(
        self,
        width: int = DEFAULT_WIDTH,
        classes: int = len(CLASS_NAMES),
        *,
        channels: int = 1,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        for field, value in (("width", width), ("classes", classes), ("channels", channels)):
            if value < 1:
                raise InvalidInputError(field, f"{value} is not positive", "Pass an integer of at least 1")
        self.encode_fine = _double_convolution(4 * channels, width, batch_norm)
        self.encode_middle = _double_convolution(width, 2 * width, batch_norm)
        self.coarse = _double_convolution(2 * width, 4 * width, batch_norm)
        self.up_middle = nn.Conv2d(4 * width, 2 * width, 1)
        self.decode_middle = _double_convolution(4 * width, 2 * width, batch_norm)
        self.up_fine = nn.Conv2d(2 * width, width, 1)
        self.decode_fine = _double_convolution(2 * width, width, batch_norm)
        self.head = nn.Conv2d(width, 4 * classes, 1)

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch classes height width"]:
        """Logits of every class for every pixel.

        Parameters
        ----------
        images
            One channel (two for a network that is told the noise); height and width are multiples of 8. Values are
            meant for [0, 1] plus noise.

        Returns
        -------
        Float[Tensor, "batch classes height width"]
            Logits.

        Raises
        ------
        InvalidInputError
            If the images have another number of channels or a size that 8 does not divide.
        """
        first = next(part for part in self.encode_fine.modules() if isinstance(part, nn.Conv2d))
        channels = first.in_channels // 4  # as widened, too
        if images.shape[1] != channels or images.shape[2] % _STRIDE or images.shape[3] % _STRIDE:
            raise InvalidInputError(
                "images",
                f"their shape is {tuple(images.shape)}",
                f"Pass (batch, {channels}, height, width) with height and width multiples of {_STRIDE}",
            )
        fine = self.encode_fine(functional.pixel_unshuffle(images, 2))
        middle = self.encode_middle(functional.max_pool2d(fine, 2))
        features = self.coarse(functional.max_pool2d(middle, 2))
        features = functional.interpolate(self.up_middle(features), scale_factor=2.0)
        features = self.decode_middle(torch.cat([features, middle], dim=1))
        features = functional.interpolate(self.up_fine(features), scale_factor=2.0)
        features = self.decode_fine(torch.cat([features, fine], dim=1))
        return functional.pixel_shuffle(self.head(features), 2)

    def fused(self) -> UNet:
        """The same function in evaluation mode, with batch normalisation folded into the convolutions.

        Returns
        -------
        UNet
            A copy in evaluation mode that has no batch normalisation.
        """
        network = copy.deepcopy(self).eval()
        for block in [module for module in network.modules() if hasattr(module, "normalisation")]:
            convolution, normalisation = block.get_submodule("convolution"), block.get_submodule("normalisation")
            assert isinstance(convolution, nn.Conv2d)
            assert isinstance(normalisation, nn.BatchNorm2d)
            block.convolution = fuse_conv_bn_eval(convolution, normalisation)
            del block.normalisation
        return network


def load_unet(checkpoint: Path = CHECKPOINT) -> nn.Module:
    """The trained network for digit scenes, in evaluation mode, on the CPU.

    Parameters
    ----------
    checkpoint
        A safetensors file with the weights of ``UNet()``, the one in the package by default; or of
        ``UNet(channels=2)``, which is told the noise, such as `TOLD_CHECKPOINT`.

    Returns
    -------
    nn.Module
        Maps images of shape (batch, channels, 64, 96) to logits of shape (batch, 11, 64, 96).

    Raises
    ------
    InvalidInputError
        If the file is missing, is not a safetensors file, or holds other tensors than the network has, tensors of
        other shapes or values that are not finite.
    """
    remedy = "Install the package again, or train a checkpoint with scripts/train_scenes.py"
    try:
        weights = load_file(checkpoint)
    except (OSError, SafetensorError) as error:
        raise InvalidInputError("checkpoint", f"{checkpoint} cannot be read ({error})", remedy) from error
    first = weights.get("encode_fine.0.convolution.weight")
    told = first is not None and first.ndim == 4 and first.shape[1] == 8
    with torch_seeded(0):  # what is drawn here is overwritten
        network = UNet(channels=2 if told else 1)
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in weights.items()}
    if found != expected:
        wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        raise InvalidInputError(
            "checkpoint", f"{checkpoint} does not fit the network: {wrong[0]} is missing, unknown or misshapen", remedy
        )
    if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
        raise InvalidInputError("checkpoint", f"{checkpoint} holds values that are not finite", remedy)
    network.load_state_dict(weights)
    return network.eval().requires_grad_(False)
