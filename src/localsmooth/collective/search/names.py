"""The bounds by name, and what may stand for a bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from localsmooth.collective.search.bound import Bound
from localsmooth.collective.search.envelope import Envelope
from localsmooth.collective.search.exact import Exact
from localsmooth.collective.search.milp import Milp
from localsmooth.collective.search.naive import Naive
from localsmooth.collective.search.paper import LinearProgram
from localsmooth.errors import InvalidInputError
from localsmooth.registry import Registry

__all__ = ["BOUNDS", "AnyBound", "AnyBounds", "as_bound", "as_bounds"]

BOUNDS = Registry[Bound](
    "collective bound", lambda kind: getattr(kind, "name", None), Naive, LinearProgram, Envelope, Exact, Milp
)
"""Bounds by name, weakest first; `Milp` is a reference."""

AnyBound = Bound | type[Bound] | str
"""A bound, its class, or its name."""

AnyBounds = AnyBound | Iterable[AnyBound] | Mapping[str, AnyBound]
"""One bound, several, or several under names of one's own."""


def as_bound(value: object, field: str = "bound") -> Bound:
    """Return the bound that an instance, a class or a name stands for.

    Raises
    ------
    InvalidInputError
        If it stands for none.
    """
    if isinstance(value, Bound):
        return value
    if isinstance(value, type) and issubclass(value, Bound):
        return value()
    if isinstance(value, str) and value in BOUNDS:
        return BOUNDS[value]()
    raise InvalidInputError(
        field, f"got {value!r}", f"give {', '.join(map(repr, BOUNDS))}, or a Bound such as Envelope() or Exact()"
    )


def as_bounds(values: object, field: str = "bounds") -> dict[str, Bound]:
    """Return bounds under the names that they get in a result, in the order given.

    Raises
    ------
    InvalidInputError
        If something stands for no bound, or two bounds have one name.
    """
    if isinstance(values, Mapping):
        given = cast(Mapping[object, object], values)
        return {str(name): as_bound(value, field) for name, value in given.items()}
    several = isinstance(values, Iterable) and not isinstance(values, str | Bound | type)
    named: dict[str, Bound] = {}
    for value in cast(Iterable[object], values) if several else (values,):
        bound = as_bound(value, field)
        name = str(vars(type(bound)).get("name", type(bound).__name__))
        if name in named:
            raise InvalidInputError(field, f"{name} is given twice", 'name them: {"quick": Exact(gap=9), …}')
        named[name] = bound
    return named
