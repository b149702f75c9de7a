"""What public functions raise is part of what they promise."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import localsmooth

PACKAGE = Path(localsmooth.__file__).parent
COMMANDS = PACKAGE / "cli"
"""Commands print what goes wrong; nobody calls them from Python."""

ELSEWHERE = {
    "FileStore.begin",
    "FileStore.get_array",
    "Flips.threat",
    "StopWhenDecided.require_fit",
}
"""Documented by the functions that they implement or stand in for."""

MADE_BY = ("__init__", "__post_init__")


def _public(body: list[ast.stmt], outer: tuple[ast.ClassDef, ...] = ()) -> Iterator[tuple[str, ast.FunctionDef, str]]:
    """Names, public functions and methods, and what documents each of them; classes document how they are made."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public(node.body, (*outer, node))
        elif isinstance(node, ast.FunctionDef) and (not node.name.startswith(("_", "test_")) or node.name in MADE_BY):
            documented = outer[-1] if node.name in MADE_BY else node
            name = ".".join([*(one.name for one in outer), node.name])
            yield name, node, ast.get_docstring(documented) or ""


def _raises(function: ast.FunctionDef) -> bool:
    """Whether it raises something itself; what it raises again, or inner functions raise, does not count."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            todo.extend(ast.iter_child_nodes(node))
    return False


def test_public_functions_say_what_they_raise() -> None:
    silent = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if COMMANDS not in path.parents
        for name, function, documentation in _public(ast.parse(path.read_text(encoding="utf-8")).body)
        if name not in ELSEWHERE and _raises(function) and "Raises\n------" not in documentation
    ]
    assert not silent, "write a section Raises:\n" + "\n".join(silent)
