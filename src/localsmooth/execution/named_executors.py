"""Executors by the names that files and commands use, for who wants nothing but their defaults."""

from __future__ import annotations

from typing import Literal

from localsmooth.errors import InvalidInputError
from localsmooth.execution.executor import Executor, SerialExecutor
from localsmooth.execution.processes import ProcessExecutor
from localsmooth.execution.ray_cluster import RayExecutor
from localsmooth.execution.threads import ThreadExecutor

__all__ = ["EXECUTORS", "ExecutorName", "named_executor"]

ExecutorName = Literal["serial", "threads", "processes", "ray"]

EXECUTORS: dict[str, type[Executor]] = {
    "serial": SerialExecutor,
    "threads": ThreadExecutor,
    "processes": ProcessExecutor,
    "ray": RayExecutor,
}


def named_executor(executor: object) -> Executor:
    """Return the executor, or make the one of that name.

    Parameters
    ----------
    executor
        An executor, or one of "serial", "threads", "processes" and "ray" for one with its default settings.

    Raises
    ------
    InvalidInputError
        If it is neither, or Ray is asked for and not installed.
    """
    if isinstance(executor, Executor):
        return executor
    # Whoever calls may not check types: a class in place of its object is as likely as a misspelt name.
    if not isinstance(executor, str) or executor not in EXECUTORS:
        raise InvalidInputError(
            "executor",
            f"got {executor!r}",
            f"Pass one of {', '.join(map(repr, EXECUTORS))}, or an object such as ThreadExecutor(workers=4)",
        )
    return EXECUTORS[executor]()
