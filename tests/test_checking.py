"""What the tests check of every call while they run: kinds, numbers, shapes, and sizes of axes across arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from jaxtyping import Bool, Float, Int, TypeCheckError

from localsmooth.bounds import clopper_pearson_lower
from localsmooth.layout import Partition
from tests.checking import checked

Array = TypeVar("Array", bound=Float[np.ndarray, "n"])


@checked
def weighed(
    values: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " k"], cut: int = 0
) -> Float[np.ndarray, " n"]:
    return (values @ weights)[cut:]


@checked
def first(several: Sequence[Float[torch.Tensor, " n"]], other: Int[np.ndarray, "n n"] | None = None) -> Any:
    return several[0]


@checked
def same(one: Array, two: Array) -> Array:
    return two


@checked
def leading(one: Float[np.ndarray, "*batch n"], two: Bool[np.ndarray, "*batch 3"]) -> None: ...


@checked
def numbers(count: int) -> Iterator[int]:
    yield from range(count)


@checked
def outer(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    # Axes of a call within have sizes of their own.
    same(np.ones(7), np.ones(7))
    return values


@checked
@dataclass
class Held:
    values: Float[np.ndarray, " n"]
    also: Int[np.ndarray, " n"]

    @property
    @checked
    def wrong(self) -> Int[np.ndarray, " n"]:
        return self.values


ONES = np.ones
GOOD: dict[str, Callable[[], object]] = {
    "sizes": lambda: weighed(ONES((2, 3)), ONES(3)),
    "by name": lambda: weighed(weights=ONES(3), values=ONES((2, 3))),
    "none": lambda: first([torch.ones(3)]),
    "square": lambda: first([torch.ones(3)], ONES((3, 3), int)),
    "variable": lambda: same(ONES(2), ONES(2)),
    "other axes": lambda: leading(ONES((2, 4, 5)), ONES((2, 4, 3), bool)),
    "generator": lambda: list(numbers(3)),
    "within": lambda: outer(ONES(2)),
    "data class": lambda: Held(ONES(2), ONES(2, int)),
}
BAD: dict[str, Callable[[], object]] = {
    "sizes": lambda: weighed(ONES((2, 3)), ONES(2)),
    "result": lambda: weighed(ONES((2, 3)), ONES(3), cut=1),
    "rank": lambda: weighed(ONES(3), ONES(3)),
    "numbers": lambda: weighed(ONES((2, 3)), ONES(3, int)),
    "array": lambda: weighed(ONES((2, 3)), torch.ones(3)),
    "no array": lambda: weighed([[1.0]], ONES(1)),
    "kind": lambda: weighed(ONES((2, 3)), ONES(3), cut="no"),
    "inside": lambda: first([ONES(3)]),
    "not square": lambda: first([torch.ones(3)], ONES((3, 4), int)),
    "across": lambda: first([torch.ones(3)], ONES((4, 4), int)),
    "other axes": lambda: leading(ONES((2, 4, 5)), ONES((2, 5, 3), bool)),
    "fixed": lambda: leading(ONES((2, 4, 5)), ONES((2, 4, 2), bool)),
    "generator": lambda: list(numbers("three")),
    "data class": lambda: Held(ONES(2), ONES(3, int)),
    "property": lambda: Held(ONES(2), ONES(2, int)).wrong,
    "the package": lambda: clopper_pearson_lower(ONES(3, int), 5, "often"),
    "a class of the package": lambda: Partition(np.zeros(3)),
}


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("call", GOOD.values(), ids=GOOD)
def test_what_fits_passes(call: Callable[[], object], twice: bool) -> None:
    for _ in range(1 + twice):
        call()


@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_what_does_not_fit_is_found(call: Callable[[], object]) -> None:
    for good in GOOD.values():
        good()
    for _ in range(2):
        with pytest.raises(TypeCheckError):
            call()
