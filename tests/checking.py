"""Check array shapes and types of every call into the package, at the price of one look at each argument and result.

`jaxtyping.install_import_hook` checks the same, but binds the arguments of every call to a signature, and looks at them
twice: before the call, and again beside its result. In tests that solve thousands of small problems that took more
than half of the time. Here beartype checks arguments and result in one pass, and a memory of axis sizes is opened only
for functions whose annotations name arrays.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, get_args, get_type_hints

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, TypeCheckError
from jaxtyping._storage import get_shape_memo, pop_shape_memo, push_shape_memo

__all__ = ["check_calls", "checked"]

_beartyped = beartype(conf=BeartypeConf(violation_type=TypeCheckError))


def checked(one: Any) -> Any:
    """Check the calls of a function, of what a descriptor holds, or of the constructor of a data class."""
    if isinstance(one, classmethod | staticmethod):
        return type(one)(checked(one.__func__))
    if isinstance(one, property):
        return property(*(part and checked(part) for part in (one.fget, one.fset, one.fdel)), one.__doc__)
    if inspect.isclass(one):
        # One that inherits its constructor has it checked already.
        if dataclasses.is_dataclass(one) and isinstance(made := vars(one).get("__init__"), FunctionType):
            one.__init__ = checked(made)
        return one
    return _checked_function(one) if isinstance(one, FunctionType) else one


def _checked_function(function: FunctionType) -> Callable[..., Any]:
    if not function.__annotations__ or hasattr(function, "__wrapped__"):
        return function
    hints = {name: _resolved(hint, function) for name, hint in function.__annotations__.items()}
    arrays = any(map(_names_arrays, hints.values()))
    if arrays and inspect.isgeneratorfunction(function):
        # What it yields is looked at after the call has returned.
        hints["return"] = Any
    written, function.__annotations__ = function.__annotations__, hints
    try:
        made = _beartyped(function)
    finally:
        function.__annotations__ = written
    if made is not function:
        made.__annotations__ = written
    return _with_axes(made) if arrays else made


def _with_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let names of axes mean one size during a call, from the arguments to the result."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        push_shape_memo({})
        try:
            return function(*args, **kwargs)
        finally:
            pop_shape_memo()

    return call


def _resolved(hint: Any, function: FunctionType) -> Any:
    """An annotation as an object; `Any` where it names what is known to type checkers alone."""

    def holder(value: Any) -> None: ...

    holder.__annotations__ = {"value": hint}
    try:
        return get_type_hints(holder, function.__globals__, include_extras=True)["value"]
    except Exception:
        return Any


def _names_arrays(hint: Any) -> bool:
    if isinstance(hint, TypeVar):
        return any(map(_names_arrays, (hint.__bound__, *hint.__constraints__)))
    if isinstance(hint, list | tuple):  # arguments of a callable
        return any(map(_names_arrays, hint))
    return (inspect.isclass(hint) and issubclass(hint, AbstractArray)) or any(map(_names_arrays, get_args(hint)))


_look_slowly = type(AbstractArray).__instancecheck__
_SIMPLE: dict[type, tuple[str | int, ...] | None] = {}
"""Axes of an array's annotation: names and sizes; None where there are others."""
_FITTING: set[tuple[type, type, Any]] = set()
"""Annotations with kinds of arrays and of numbers that fit them."""


def _is_instance(cls: Any, one: object) -> bool:
    """As jaxtyping has it, without copies of what it remembers where axes are names and sizes alone."""
    axes = _SIMPLE[cls] if cls in _SIMPLE else _SIMPLE.setdefault(cls, _simple_axes(cls))
    if axes is None or (cls, type(one), getattr(one, "dtype", None)) not in _FITTING:
        fits = _look_slowly(cls, one)
        if fits and axes is not None:
            _FITTING.add((cls, type(one), one.dtype))  # pyright: ignore[reportAttributeAccessIssue]
        return fits
    shape: Sequence[int] = one.shape  # pyright: ignore[reportAttributeAccessIssue]
    if len(shape) != len(axes):
        return False
    sizes, added = get_shape_memo()[0], []
    for axis, size in zip(axes, shape, strict=True):
        if isinstance(axis, str) and axis not in sizes:
            sizes[axis] = size
            added.append(axis)
        elif size != (axis if isinstance(axis, int) else sizes[axis]):
            for name in added:
                del sizes[name]
            return False
    return True


def _simple_axes(cls: Any) -> tuple[str | int, ...] | None:
    if cls is AbstractArray or getattr(cls, "index_variadic", None) is not None or cls._skip_instancecheck:
        return None
    axes = []
    for one in cls.dims:
        if getattr(one, "broadcastable", True) or getattr(one, "treepath", False):
            return None
        axes.append(getattr(one, "name", getattr(one, "size", None)))
    return tuple(axes) if all(isinstance(axis, str | int) for axis in axes) else None


_NAME = "_checked_by_the_tests"


class _Decorating(ast.NodeVisitor):
    """Decorate functions before all else, and classes after; what says `no_type_check` not at all."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._decorate(node, len(node.decorator_list))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._decorate(node, 0)

    def _decorate(self, node: ast.FunctionDef | ast.ClassDef, place: int) -> None:
        if not any(isinstance(one, ast.Name) and one.id == "no_type_check" for one in node.decorator_list):
            self.generic_visit(node)
            node.decorator_list.insert(place, ast.copy_location(ast.Name(_NAME, ast.Load()), node))


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compile it here, past the cache, which keeps what is not decorated."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        _Decorating().visit(tree)
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[_NAME] = checked
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.package and not fullname.startswith(f"{self.package}."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def check_calls(package: str) -> None:
    """Check every call into a package that is imported from now on."""
    type(AbstractArray).__instancecheck__ = _is_instance
    sys.meta_path.insert(0, _Finder(package))
