"""The source text of classes, from files that are parsed once: networks have many classes in few long files."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Iterator

__all__ = ["class_source"]


@functools.lru_cache(maxsize=1024)  # many layers share one
def class_source(kind: type) -> str:
    """Source text of a class, as `inspect.getsource` returns it; empty if it was defined at a prompt, or is compiled.

    Parameters
    ----------
    kind
        The class.
    """
    try:
        path = inspect.getsourcefile(kind) or ""
        linecache.checkcache(path)
        lines = linecache.getlines(path)
        starts = _starts("".join(lines)).get(kind.__qualname__, ())
        if len(starts) != 1:  # `inspect` has rules for classes that are defined twice
            return inspect.getsource(kind)
        return "".join(inspect.getblock(lines[starts[0] - 1 :]))
    except (OSError, TypeError, SyntaxError):
        return ""


@functools.lru_cache(maxsize=32)
def _starts(text: str) -> dict[str, list[int]]:
    """Line on which each class of a file begins, its decorators included, by qualified name."""
    found: dict[str, list[int]] = {}
    for name, node in _classes(ast.parse(text), ""):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        found.setdefault(name, []).append(first)
    return found


def _classes(node: ast.AST, within: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        inside = within
        if isinstance(child, ast.ClassDef):
            yield within + child.name, child
            inside = f"{within}{child.name}."
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = f"{within}{child.name}.<locals>."
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _classes(child, inside)
