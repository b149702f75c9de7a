"""Text and hashes that change when functions, objects or torch modules compute something else, as far as can be told.

What is looked at: the instructions of functions with their constants, defaults, enclosed variables and the global
variables and functions that they use; the attributes of objects; the source text of classes; weights and buffers.
What compiled extensions, files or other processes do remains hidden.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from localsmooth.models.class_source import class_source
from localsmooth.models.compiled import compiled_parts, is_compiled_method

__all__ = ["attribute_digests", "describe", "describe_module", "hooks_of", "lasting_name", "tensor_digest"]

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_DEEPEST = 8
_KNOWN = frozenset({*sys.stdlib_module_names, "torch", "numpy", "localsmooth"})
_PRINTED = frozenset({"collections", "datetime", "decimal", "fractions", "numpy", "pathlib", "re", "torch", "types"})
_MOVED = re.compile(r"^localsmooth\.tasks\.graphs\b")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_BOOKKEEPING = frozenset(nn.Module().__dict__) | {"_is_hf_initialized", "_output_capturing_hooks_installed"}
# Where transformers has hooks that it adds at the first call, and that only collect what passes, for one thread.
_COLLECTING = "transformers.utils.output_capturing"


def describe(value: object) -> str:
    """Describe a value: the same text for equal values, in every process.

    Parameters
    ----------
    value
        Anything. Functions are described by what they do, those of installed packages by their name; objects by their
        class and attributes, those of the standard library and torch by what they print.
    """
    return _Description().of(value, 0)


def describe_module(module: nn.Module, without: Set[str] = frozenset()) -> str:
    """Describe what a torch module computes with apart from its weights and buffers.

    Structure, attributes that are no tensors, forward hooks, and the source of every class outside torch.

    Parameters
    ----------
    module
        The module.
    without
        Attributes to leave out, named as by `attribute_digests`.
    """
    return _Description().of_module(module, 0, without)


def attribute_digests(module: nn.Module) -> dict[str, str]:
    """Describe every attribute of every part that is no parameter and no part, and every buffer, by its dotted name."""
    found = {
        _dotted(part_name, name): _Description().of(value, 0)
        for part_name, part in module.named_modules()
        for name, value in _own(part).items()
    }
    return found | {name: tensor_digest(buffer) for name, buffer in module.named_buffers()}


def hooks_of(part: nn.Module) -> list[list[object]]:
    """Forward hooks of one part and its hooks before the forward pass, but for those of a library's own that only look.

    Parameters
    ----------
    part
        A module; hooks of its parts are not looked at.
    """
    return [
        [hook for hook in part.__dict__.get(kind, {}).values() if getattr(hook, "__module__", None) != _COLLECTING]
        for kind in _HOOKS
    ]


def _own(part: nn.Module) -> dict[str, object]:
    found = {name: value for name, value in part.__dict__.items() if name not in _BOOKKEEPING}
    return {name: value for name, value in found.items() if not is_compiled_method(value)}


def _dotted(part: str, name: str) -> str:
    return f"{part}.{name}" if part else name


def lasting_name(value: type | FunctionType) -> str:
    """Full name of a class or function; what has moved within this package keeps the name that stored runs know."""
    return f"{_lasting(value.__module__)}.{value.__qualname__}"


def _lasting(module: str | None) -> str:
    return _MOVED.sub("localsmooth.graphs", str(module))


def tensor_digest(value: torch.Tensor) -> str:
    """Type, shape and hexadecimal SHA-256 of a tensor's content."""
    if value.is_quantized or value.layout is not torch.strided or value.device.type == "meta":
        return _ADDRESS.sub("", repr(value))
    content = value.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy()
    return f"{value.dtype} {tuple(value.shape)} {hashlib.sha256(content.data).hexdigest()}"


def _root(value: object) -> str:
    return str(getattr(value, "__module__", None) or "").partition(".")[0]


class _Description:
    """Follows references, describing each object once."""

    def __init__(self) -> None:
        self._described: dict[int, tuple[object, str]] = {}  # holds the objects, so that no address is used again

    def of(self, value: object, depth: int) -> str:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, torch.Tensor):
            return tensor_digest(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            array = np.ascontiguousarray(value)
            return f"{array.dtype.str} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"
        if isinstance(value, Enum):
            return f"{type(value).__qualname__}.{value.name}"
        if isinstance(value, ModuleType):
            return _lasting(value.__name__)
        if isinstance(value, type):
            return lasting_name(value)
        if depth > _DEEPEST:
            return f"{lasting_name(type(value))} …"
        if id(value) not in self._described:
            self._described[id(value)] = value, "cycle"
            text = self._of_composite(value, depth + 1)
            self._described[id(value)] = value, hashlib.sha256(text.encode()).hexdigest()
        return self._described[id(value)][1]

    def _of_composite(self, value: object, depth: int) -> str:
        if isinstance(value, nn.Module):
            state = {**dict(value.named_buffers()), **dict(value.named_parameters())}
            tensors = " ".join(f"{name} {tensor_digest(tensor)}" for name, tensor in sorted(state.items()))
            return f"{self.of_module(value, depth)} {tensors}"
        if isinstance(value, Mapping):
            pairs = cast("Mapping[object, object]", value).items()
            entries = [f"{self.of(k, depth)}: {self.of(v, depth)}" for k, v in pairs]
            return f"{type(value).__name__} {entries}"
        if isinstance(value, Set):
            return f"{type(value).__name__} {sorted(self.of(v, depth) for v in cast('Set[object]', value))}"
        if isinstance(value, list | tuple):
            return f"{type(value).__name__} {[self.of(v, depth) for v in cast('Sequence[object]', value)]}"
        if isinstance(value, CodeType):
            names = (value.co_name, value.co_code.hex(), value.co_names)
            return f"{names} {[self.of(constant, depth) for constant in value.co_consts]}"
        if isinstance(value, functools.partial):
            whole = cast("functools.partial[object]", value)
            return f"partial {self.of((whole.func, whole.args, whole.keywords), depth)}"
        if isinstance(value, MethodType):
            return f"method {self.of((value.__func__, value.__self__), depth)}"
        if isinstance(value, FunctionType):
            return self._of_function(value, depth)
        if isinstance(value, BuiltinFunctionType):
            return f"{value.__module__}.{value.__qualname__}"
        wrapped = getattr(value, "__wrapped__", None)
        return f"{self._of_object(value, depth)} {self.of(wrapped, depth)}"

    def _of_function(self, function: FunctionType, depth: int) -> str:
        name = lasting_name(function)
        if _root(function) in _KNOWN or "site-packages" in function.__code__.co_filename:
            return name
        enclosed = [_content(cell) for cell in function.__closure__ or ()]
        used = {
            name: function.__globals__[name]
            for name in sorted(set(_names(function.__code__)))
            if name in function.__globals__
        }
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, enclosed, used)
        return f"{name} {', '.join(self.of(part, depth) for part in parts)}"

    def _of_object(self, value: object, depth: int) -> str:
        kind = type(value)
        name = lasting_name(kind)
        if _root(kind) in _KNOWN:
            return _ADDRESS.sub("", f"{name} {value!r}") if _root(kind) in _PRINTED else name
        attributes = cast("dict[str, object]", getattr(value, "__dict__", {}))
        slots = {n: getattr(value, n) for base in kind.__mro__ for n in _slots(base) if hasattr(value, n)}
        held = [f"{n}={self.of(v, depth)}" for n, v in sorted({**attributes, **slots}.items())]
        return f"{name} ({', '.join(held)}) {self._of_classes(kind, '__call__', depth)}"

    def _of_classes(self, kind: type, method: str, depth: int) -> str:
        """The source of a class and of its bases outside torch, and the instructions of one of its methods."""
        bases = [base for base in kind.__mro__ if _root(base) not in _KNOWN and base is not object]
        if not bases:
            return ""
        called = cast("Callable[..., object] | None", getattr(kind, method, None))
        sources = [hashlib.sha256(class_source(base).encode()).hexdigest() for base in bases]
        return f"{sources} {self.of(called, depth) if isinstance(called, FunctionType) else ''}"

    def of_module(self, module: nn.Module, depth: int, without: Set[str] = frozenset()) -> str:
        lines = [_ADDRESS.sub("", repr(module))]
        for name, part in module.named_modules():
            kind = type(part)
            own = {n: v for n, v in _own(part).items() if _dotted(name, n) not in without}
            hooks = hooks_of(part)
            compiled = "".join(self.of(each, depth) for each in compiled_parts(part))
            lines.append(
                f"{name} {lasting_name(kind)} {self.of(own, depth)} {self.of(hooks, depth)} "
                f"{self._of_classes(kind, 'forward', depth)}{compiled}"
            )
        return "\n".join(lines)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _slots(kind: type) -> tuple[str, ...]:
    named = kind.__dict__.get("__slots__", ())
    return (named,) if isinstance(named, str) else tuple(named)
