"""Arguments of earlier versions that one object holds now: understood, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from localsmooth.errors import InvalidInputError

__all__ = ["also_apart"]

P = ParamSpec("P")
T = TypeVar("T")


def also_apart(name: str, bundle: Callable[..., Any]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function that takes an object by keyword also take, by keyword, what the object is made of.

    Parameters
    ----------
    name
        Argument that takes the object.
    bundle
        Makes it of the earlier arguments, which are its own.
    """
    earlier = list(signature(bundle).parameters)

    def understanding(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            given = {each: kwargs.pop(each) for each in earlier if each in kwargs}
            if given:
                if kwargs.get(name) is not None:
                    raise InvalidInputError(next(iter(given)), f"given beside {name}", f"Put it into {name}")
                made = bundle(**given)
                kwargs[name] = made
                text = f"{', '.join(given)}: write {name}={made!r} instead"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return call

    return understanding
