"""Which kinds of input there are: one line each, and a folder with all that is theirs."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from localsmooth.errors import InvalidInputError

if TYPE_CHECKING:
    from localsmooth.tasks.base import Task

__all__ = ["TASKS", "import_from_folders", "task_of"]

TASKS: dict[str, str] = {
    "arrays": "localsmooth.tasks.arrays",
    "graphs": "localsmooth.tasks.graphs",
    "points": "localsmooth.tasks.points",
    "tokens": "localsmooth.tasks.tokens",
}
"""Folder of each kind of input. Its module `task` names the class as `TASK`, and `panel`, if there is one, an object
that draws its items as `PANEL`. Its modules `threat` and `sections`, if there are such, register threats, and sections
of configuration files. All are imported when they are needed."""


def task_of(name: str) -> type[Task[Any, Any]]:
    """Return the kind of input of that name.

    Raises
    ------
    InvalidInputError
        If no kind is known under it.
    """
    if name not in TASKS:
        raise InvalidInputError("task", f'"{name}" is not known here', f"Known are {', '.join(TASKS)}")
    return importlib.import_module(f"{TASKS[name]}.task").TASK


def import_from_folders(module: str) -> None:
    """Import the module of that name from every folder that has one, so that it registers what is in it."""
    for folder in TASKS.values():
        if find_spec(f"{folder}.{module}") is not None:
            importlib.import_module(f"{folder}.{module}")
