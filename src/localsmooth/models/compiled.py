"""What modules of TorchScript compute: their compiled code, and the numbers that it reads."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

__all__ = ["compiled_parts", "is_compiled_method"]

_compiled: Any = getattr(torch, "_C")  # noqa: B009 (classes without a public name)
# Classes get a number behind their name where another of this name was loaded before.
_NUMBERED = re.compile(r"___torch_mangle_\d+\.")
_NAME = re.compile(r"\.(\w+)")
_WHERE = re.compile(r' # [^"\n]*$', re.MULTILINE)  # file and line that an instruction was written in


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
        method = held._get_method(name)
        code, constants = method.code_with_constants
        yield name, _NUMBERED.sub("", code), dict(constants)
        # The code names functions and classes; what these do is only in the graph, where they are inlined.
        yield _WHERE.sub("", _NUMBERED.sub("", str(method.inlined_graph)))
        read = sorted({each for each in _NAME.findall(code) if held.hasattr(each)})
        try:
            values = [(each, held.getattr(each)) for each in read]
        except RuntimeError:  # objects of a compiled class, which Python does not get to see after loading
            yield from _kept(module)
            return
        yield from (pair for pair in values if not isinstance(pair[1], _compiled.ScriptModule))


def _kept(module: torch.jit.ScriptModule) -> Iterator[object]:
    """What a file of the module holds: everything."""
    file = io.BytesIO()
    torch.jit.save(module, file)
    with zipfile.ZipFile(file) as archive:
        for name in sorted(archive.namelist()):
            folder, _, place = name.partition("/")  # the first folder has the file's name
            if not place.endswith(".debug_pkl") and folder:
                content = re.sub(_NUMBERED.pattern.encode(), b"", archive.read(name))
                yield _NUMBERED.sub("", place), hashlib.sha256(content).hexdigest()
