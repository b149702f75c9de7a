"""What modules of TorchScript compute: their compiled code, and the numbers that it reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

__all__ = ["compiled_parts", "is_compiled_method"]

_compiled: Any = getattr(torch, "_C")  # noqa: B009 (classes without a public name)
# Classes get a number behind their name where another of this name was loaded before.
_NUMBERED = re.compile(r"___torch_mangle_\d+\.")
_NAME = re.compile(r"\.(\w+)")


def is_compiled_method(value: object) -> bool:
    """Whether it is a compiled method, which a module notes down as an attribute when it is first called."""
    return isinstance(value, _compiled.ScriptMethod)


def compiled_parts(module: nn.Module) -> Iterator[object]:
    """Code, constants and attributes of one module's compiled methods; nothing for other modules.

    Parameters
    ----------
    module
        The module; its parts are not looked at.
    """
    if not isinstance(module, torch.jit.ScriptModule):
        return
    held: Any = module._c
    for name in sorted(held._method_names()):
        code, constants = held._get_method(name).code_with_constants
        yield name, _NUMBERED.sub("", code), dict(constants)
        read = sorted({each for each in _NAME.findall(code) if held.hasattr(each)})
        values = ((each, held.getattr(each)) for each in read)
        yield from (pair for pair in values if not isinstance(pair[1], _compiled.ScriptModule))
