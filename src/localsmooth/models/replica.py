"""Copies of a module for several threads."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn
from torch.nn.parameter import is_lazy

from localsmooth.models.exported import holds_exported, is_exported
from localsmooth.models.fingerprint import hooks_of, tensor_digest

__all__ = ["can_be_copied", "has_hooks", "replica_of", "shared_words", "weight_digests"]

Module = TypeVar("Module", bound=nn.Module)


def has_hooks(module: nn.Module) -> bool:
    """Whether a part has forward hooks, which may reach beyond a copy of it."""
    return any(hooks for part in module.modules() for hooks in hooks_of(part))


def can_be_copied(module: nn.Module) -> bool:
    """Whether copies of a module share nothing that a call could change, as far as can be told."""
    return not (has_hooks(module) or holds_exported(module))


def replica_of(module: Module) -> Module:
    """Copy every part of a module and its buffers, which a call may write to, on the same weights.

    A program of torch.export, and what holds one, is returned as it is: a copy would forget that its mode is baked in.
    """
    if holds_exported(module):
        return module
    return copy.deepcopy(module, {id(tensor): tensor for tensor in module.parameters()})


def shared_words(module: nn.Module) -> str:
    """What calls could change, and copies of a module share, in words; empty where nothing is known to be.

    Operations of a program of torch.export change nothing but its own buffers, which are followed.
    """
    if has_hooks(module):
        return "hooks"
    return "a program of torch.export inside" if holds_exported(module) and not is_exported(module) else ""


def weight_digests(module: nn.Module) -> dict[str, str]:
    """Digests of a module's parameters, which copies share and no call may change; of those that have a size."""
    weights = {name: value for name, value in module.named_parameters() if not is_lazy(value)}
    return {name: tensor_digest(value) for name, value in weights.items()}
