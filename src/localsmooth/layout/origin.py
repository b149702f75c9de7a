"""What levels and groups were computed from, so that they are not used to certify the very same thing.

The smoothed classifier at a perturbed input must be the one at the clean input. A level or a group that was computed
from what is perturbed would change with it, and the certificate would speak of two different classifiers.
"""

from __future__ import annotations

import hashlib
from typing import Any, cast

import numpy as np
from jaxtyping import Num, Shaped

__all__ = ["Derived", "derived", "item_digest", "origins_of"]


class Derived(np.ndarray):
    """An array that remembers digests of what it was computed from.

    Its views, its `copy()`, what is computed from it and what is unpickled remember them, too; `np.array` and
    the like make plain arrays, which do not.
    """

    origins: frozenset[str]

    def __array_finalize__(self, parent: object) -> None:
        """Take over what the parent remembers."""
        self.origins = getattr(parent, "origins", frozenset())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what is remembered, behind the array's own state."""
        make, arguments, state, *_ = cast("tuple[Any, ...]", super().__reduce__())
        return make, arguments, (*state, self.origins)

    def __setstate__(self, state: tuple[Any, ...]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take up what `__reduce__` gave."""
        super().__setstate__(state[:-1])
        self.origins = state[-1]

    def __array_wrap__(self, array: np.ndarray, context: object = None, return_scalar: bool = False) -> Any:
        """Leave single numbers, such as the largest of all, plain."""
        del context, return_scalar
        return derived(array, *self.origins) if array.ndim else array[()]


def derived(array: Shaped[np.ndarray, "..."], *origins: str) -> Shaped[np.ndarray, "..."]:
    """Mark an array as computed from some data; what it remembers already is kept.

    Parameters
    ----------
    array
        Group numbers, ranks or levels.
    origins
        `item_digest` of inputs, or `edges_digest` of graphs (in `localsmooth.tasks.graphs`).
    """
    known = origins_of(array) | frozenset(origins)
    if not known:
        return array
    marked = array.view(Derived)
    marked.origins = known
    return marked


def origins_of(*arrays: object) -> frozenset[str]:
    """What some arrays say that they were computed from."""
    return frozenset[str]().union(*(getattr(array, "origins", ()) for array in arrays))


def item_digest(image: Num[np.ndarray, "..."]) -> str:
    """Hexadecimal SHA-256 of an input's shape and its values in single precision."""
    values = np.ascontiguousarray(image, dtype=np.float32) + np.float32(0.0)  # −0 is 0
    return hashlib.sha256(f"{values.shape} ".encode() + values.tobytes()).hexdigest()
