# Modules that TorchScript compiles, which cannot read annotations that are kept as text.
import torch
from torch import nn


class Scale:
    def __init__(self, power: int) -> None:
        self.power = power

    def on(self, batch: torch.Tensor) -> torch.Tensor:
        return batch * 2.0**self.power


def scaled(batch: torch.Tensor) -> torch.Tensor:
    return Scale(1).on(batch)


class ByClass(nn.Module):
    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return Scale(1).on(batch)


class ByFunction(nn.Module):
    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return scaled(batch)


class ByObject(nn.Module):
    scale: Scale

    def __init__(self) -> None:
        super().__init__()
        self.scale = Scale(1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.scale.on(batch)
