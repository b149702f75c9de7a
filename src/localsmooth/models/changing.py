"""Attributes that a module's own calls change: counters, lists of times, caches by size."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from torch import nn

from localsmooth.models.fingerprint import attribute_digests, describe, tensor_digest

__all__ = ["changing_attributes", "values_text", "watching"]

# What calls were seen to change, for as long as the module lives: a cache is filled once, and another model around the
# same module must know it by the same fingerprint.
_SEEN: WeakKeyDictionary[nn.Module, frozenset[str]] = WeakKeyDictionary()


def changing_attributes(module: nn.Module) -> frozenset[str]:
    """Names of the attributes and buffers, by part, that calls of a module were seen to change."""
    return _SEEN.get(module, frozenset())


def values_text(module: nn.Module) -> str:
    """Digests of a module's weights and buffers by name, but for those that calls were seen to change."""
    values = {**dict(module.named_buffers()), **module.state_dict()}
    described = {
        name: tensor_digest(values[name]) if isinstance(values[name], torch.Tensor) else describe(values[name])
        for name in sorted(values.keys() - changing_attributes(module))
    }
    return "".join(f"{name} {content}" for name, content in described.items())


@contextmanager
def watching(module: nn.Module) -> Generator[None]:
    """Note which attributes the calls within the context change.

    Warns
    -----
    UserWarning
        Naming attributes that were not known to change.
    """
    before = attribute_digests(module)
    yield
    after = attribute_digests(module)
    known = changing_attributes(module)
    fresh = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} - known
    if fresh:
        _SEEN[module] = known | fresh
        names = ", ".join(f"module.{name}" for name in sorted(fresh))
        warnings.warn(
            f"module: {names} changed while it predicted. A stored run does not know the model by what changes: use "
            "another run directory if you change that by hand",
            stacklevel=3,
        )
