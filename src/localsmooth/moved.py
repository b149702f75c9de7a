"""Names that lie in another room than they did, or are called otherwise: found there, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["finder"]

_RENAMED = {"RunConfiguration": "RunIdentity", "RunOverview": "Survey"}


def finder(module: str, rooms: Sequence[str], known: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """Make a module's `__getattr__` that looks for what the module has no more in some rooms.

    Parameters
    ----------
    module
        Name of the module.
    rooms
        Where to look, first things first.
    known
        Looks up what the module does have, if that is done lazily.
    """

    def find(name: str) -> Any:
        if known is not None:
            try:
                return known(name)
            except AttributeError:
                pass
        current = _RENAMED.get(name, name)
        for room in () if name.startswith("_") else rooms:
            place = importlib.import_module(room)
            if current in place.__all__:
                warnings.warn(f"{module}.{name} is {room}.{current} now", DeprecationWarning, stacklevel=2)
                return getattr(place, current)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find
