"""Which kinds of input there are: one line each, and a folder with all that is theirs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from localsmooth.errors import InvalidInputError

if TYPE_CHECKING:
    from localsmooth.tasks.base import Task

__all__ = ["TASKS", "task_of"]

TASKS: dict[str, str] = {
    "arrays": "localsmooth.tasks.arrays",
    "graphs": "localsmooth.tasks.graphs",
    "points": "localsmooth.tasks.points",
    "tokens": "localsmooth.tasks.tokens",
}
"""Folder of each kind of input. Its module `task` names the class as `TASK`, and `panel`, if there is one, an object
that draws its items as `PANEL`; both are imported when they are needed."""


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
