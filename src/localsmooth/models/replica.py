"""Copies of a module for several threads."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

from localsmooth.models.fingerprint import hooks_of

__all__ = ["has_hooks", "replica_of"]

Module = TypeVar("Module", bound=nn.Module)


def has_hooks(module: nn.Module) -> bool:
    """Whether a part has forward hooks, which may reach beyond a copy of it."""
    return any(hooks for part in module.modules() for hooks in hooks_of(part))


def replica_of(module: Module) -> Module:
    """Copy every part of a module and its buffers, which a call may write to, on the same weights."""
    return copy.deepcopy(module, {id(tensor): tensor for tensor in module.parameters()})
