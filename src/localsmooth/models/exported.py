"""Programs made by torch.export, which keep the mode in which they were exported."""

from __future__ import annotations

from torch import fx, nn

__all__ = ["evaluated", "is_exported"]


def is_exported(module: nn.Module) -> bool:
    """Whether the mode of a module is baked in: its flag says nothing, and `eval()` raises."""
    return isinstance(module, fx.GraphModule) and "eval" in module.__dict__


def evaluated(module: nn.Module) -> nn.Module:
    """Bring a module into evaluation mode; one whose mode is baked in stays as it is.

    Whether such a program is random, or mixes the samples of a batch, is what trial calls show.
    """
    return module if is_exported(module) else module.eval()
