"""Copies of a module for several threads."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

__all__ = ["has_hooks", "replica_of"]

Module = TypeVar("Module", bound=nn.Module)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def has_hooks(module: nn.Module) -> bool:
    """Whether a part has forward hooks, which may reach beyond a copy of it."""
    return any(part.__dict__.get(name) for part in module.modules() for name in _HOOKS)


def replica_of(module: Module) -> Module:
    """Copy every part of a module and its buffers, which a call may write to, on the same weights."""
    return copy.deepcopy(module, {id(tensor): tensor for tensor in module.parameters()})
