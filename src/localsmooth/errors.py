"""Errors that name what is wrong and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real

__all__ = [
    "InvalidInputError",
    "LocalsmoothError",
    "ModelFailedError",
    "OutputError",
    "require_distinct",
    "require_kind",
    "require_number",
    "require_several",
    "require_whole_number",
]


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


def require_kind(field: str, value: object, *kinds: type) -> None:
    """Refuse what is of none of some classes, classes where objects are wanted, and True and False as numbers.

    Raises
    ------
    InvalidInputError
        Naming the field and the classes.
    """
    number = isinstance(value, bool) and not {bool, object} & {*kinds}
    if isinstance(value, kinds) and not isinstance(value, type) and not number:
        return
    got = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
    names = ["None" if kind is type(None) else kind.__name__ for kind in kinds]
    raise InvalidInputError(field, f"got {got}", f"Pass a {' or '.join(names)}")


def require_several(field: str, value: object, what: str) -> None:
    """Refuse what is no list, tuple, array or the like: single objects, texts, iterators that can be read once.

    Raises
    ------
    InvalidInputError
        Naming the field, and what it is a list of.
    """
    indexed = hasattr(value, "__len__") and hasattr(value, "__getitem__") and getattr(value, "ndim", 1) > 0
    if not indexed or isinstance(value, str | bytes | Mapping):
        raise InvalidInputError(field, f"got a {type(value).__name__}", f"Pass a list of {what}")


def require_distinct(field: str, names: Sequence[object], what: str) -> None:
    """Refuse names of which two read alike: whoever asks for one of them by name would get the other.

    Raises
    ------
    InvalidInputError
        Naming the field, and the name that comes twice.
    """
    known: set[str] = set()
    for name in map(str, names):
        if name in known:
            raise InvalidInputError(field, f'two {what} are called "{name}"', "Give each a name of its own")
        known.add(name)


def require_whole_number(field: str, value: object, least: int, remedy: str) -> None:
    """Refuse what is no whole number, or a smaller one.

    Raises
    ------
    InvalidInputError
        Naming the field and the value.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InvalidInputError(field, f"got {value!r}", remedy)


def require_number(field: str, value: object, remedy: str) -> None:
    """Refuse what is no real number; True and False are none.

    Raises
    ------
    InvalidInputError
        Naming the field and the value.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInputError(field, f"got {value!r}", remedy)


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
