"""Classes by the names that configuration files and stored runs call them by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from localsmooth.errors import InvalidInputError

__all__ = ["Registry"]

Kind = TypeVar("Kind")
Registered = TypeVar("Registered")

_NAME = re.compile(r"[A-Za-z0-9]+([_-][A-Za-z0-9]+)*")


class Registry(Mapping[str, type[Kind]], Generic[Kind]):
    """Classes of one kind by name; what users register is known wherever the package's own are.

    Parameters
    ----------
    what
        What the classes are, in messages.
    name_of
        Where a class says its name.
    kinds
        What the package itself offers, in order.
    """

    def __init__(self, what: str, name_of: Callable[[type[Kind]], object], *kinds: type[Kind]) -> None:
        self._what = what
        self._name_of = name_of
        self._kinds: dict[str, type[Kind]] = {}
        for kind in kinds:
            self.register(kind)

    def register(self, kind: type[Registered]) -> type[Registered]:
        """Add a class, and return it; a class that is defined anew, as in a notebook, replaces its earlier self.

        Parameters
        ----------
        kind
            The class.

        Raises
        ------
        InvalidInputError
            If it says no name, or another class has it.
        """
        added: type[Kind] = kind  # pyright: ignore[reportAssignmentType]
        name = self._name_of(added)
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise InvalidInputError(
                "name", f"{kind.__qualname__} is called {name!r}", "Name the class with letters, digits and hyphens"
            )
        known = self._kinds.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
            raise InvalidInputError(
                "name", f"{known.__module__}.{known.__qualname__} is called {name!r}, too", "Choose another name"
            )
        self._kinds[name] = added
        return kind

    def withdraw(self, name: str) -> None:
        """Forget a class, as tests do with theirs; no error if there is none of that name."""
        self._kinds.pop(name, None)

    def known_as(self, kind: type) -> str | None:
        """The name under which a class is known, None if it is not."""
        return next((name for name, known in self._kinds.items() if known is kind), None)

    def __getitem__(self, name: str) -> type[Kind]:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        return f"<{self._what}: {', '.join(self)}>"
