"""Networks that are told the noise, from networks that are not."""

from __future__ import annotations

import copy

import torch
from torch import nn

from localsmooth.errors import InvalidInputError

__all__ = ["widened"]


def widened(network: nn.Module, channels: int, *, first: str | None = None) -> nn.Module:
    """Copy a network and let its first convolution take one channel more, with weights of zero.

    The copy predicts what the network predicts, whatever it is told, until it is trained (`GroupNoise(told=True)`); it
    is certified as `TorchModel(copy, told=True)`. What stands before the first convolution has to let the channel
    through behind the others: normalisation by channel belongs into the model's `Preprocessing`, and what moves places
    of one channel into channels side by side (`pixel_unshuffle`) may stay.

    Parameters
    ----------
    network
        Any network with convolutions.
    channels
        Channels of its inputs.
    first
        Name of the first convolution, as in `named_modules`; by default the first in that order.

    Raises
    ------
    InvalidInputError
        If there is no such convolution, or one that cannot be widened.
    """
    made = copy.deepcopy(network)
    found = {name: part for name, part in made.named_modules() if isinstance(part, nn.Conv1d | nn.Conv2d | nn.Conv3d)}
    name = next(iter(found), "") if first is None else first
    if name not in found:
        known = ", ".join(repr(known) for known in found) or "none"
        raise InvalidInputError("first", f"{first!r} is no convolution of the network", f"It has {known}")
    convolution = found[name]
    each, rest = divmod(convolution.in_channels, channels) if channels > 0 else (0, 0)
    if rest or not each or convolution.groups != 1:
        raise InvalidInputError(
            "network",
            f"its first convolution {name!r} takes {convolution.in_channels} channels in {convolution.groups} groups, "
            f"and inputs have {channels}",
            "Name the convolution that takes the input, which has one group",
        )
    old = convolution.weight
    added = old.new_zeros((old.shape[0], each, *old.shape[2:]))
    weight = torch.cat([old.detach(), added], dim=1).contiguous()
    convolution.weight = nn.Parameter(weight, requires_grad=old.requires_grad)
    convolution.in_channels += each
    return made
