"""Errors that name what is wrong and what to do about it."""

from __future__ import annotations

__all__ = ["InvalidInputError", "LocalsmoothError", "ModelFailedError", "OutputError"]


class LocalsmoothError(Exception):
    """Base class of every error that the package raises on purpose."""


class InvalidInputError(LocalsmoothError, ValueError):
    """An argument cannot be used.

    Parameters
    ----------
    field
        Name of the argument or configuration key at fault.
    problem
        What is wrong with it, with the offending value where it is short.
    remedy
        What to pass instead.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        self.field = field
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{field}: {problem}. {remedy}")


class ModelFailedError(LocalsmoothError, RuntimeError):
    """A model's runtime raised an error of its own while it predicted."""


class OutputError(LocalsmoothError, OSError):
    """A file cannot be written.

    Parameters
    ----------
    path
        The file.
    problem
        What the system says.
    remedy
        What to do about it.
    """

    REMEDY = "Free some space, restore access, or name another file"

    def __init__(self, path: object, problem: str, remedy: str = REMEDY) -> None:
        self.problem = problem
        super().__init__(f"{path} cannot be written ({problem}). {remedy}")
