"""The certified count so far, while sampling goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from localsmooth.collective import Envelope
from localsmooth.execution import CertifiedSoFar, LiveProgress
from localsmooth.results import RATIO, budget_kinds, run_info, symbol
from localsmooth.tasks import FixedNumberError

__all__ = ["Live", "quick"]

_FIRST = 3.0
_SHARE = 0.02
_MORE = 1.25
_SHOWN = 3  # at quarters of the budgets


def quick(settings: Any) -> Any:
    """The settings with the first of their targets, and the best of their bounds that takes milliseconds."""
    swift = {name: bound for name, bound in settings.bounds.items() if not bound.searches}
    name, bound = next(reversed(swift.items()), (Envelope.name, Envelope()))
    return replace(settings, bounds={name: bound}, targets=settings.targets[:1] or (RATIO,))


@dataclass(eq=False)
class Live:
    """Certifies an item from its complete rounds, at growing intervals, and tells what came of it.

    Items whose rule, chosen from the candidate stage, does not allow for that are passed over.

    For what holds at every number of samples at once. Tallies and the final result are none of its business. It takes
    about a fiftieth of the time at most: it waits for fifty times what it took so far and takes next.

    Parameters
    ----------
    certify
        Makes a result of one item's votes so far.
    told
        Who is told.
    rule
        What makes it hold at every number of samples.
    clock
        Seconds, monotonic.
    """

    certify: Callable[[int], xr.Dataset]
    told: LiveProgress
    rule: str
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        self._begun = self.clock()
        self._spent, self._next = 0.0, _FIRST * _SHARE
        self._seen: tuple[int, int] = -1, 0
        self._fixed: set[int] = set()

    def __call__(self, item: int, n: int) -> None:
        """Look at an item after a round that brought it to so many samples, if it is time."""
        now = self.clock()
        soon = item == self._seen[0] and n < _MORE * self._seen[1]
        if item in self._fixed or soon or _SHARE * (now - self._begun) < self._spent + self._next:
            return
        try:
            found = _found(self.certify(item), n, self.rule)
        except FixedNumberError:
            self._fixed.add(item)
            return
        except Exception as error:  # sampling is worth more than a look at it
            self._spent = math.inf
            self.told.message(f"No certificate is shown while sampling goes on: {type(error).__name__}: {error}")
            return
        self._seen, self._next = (item, n), self.clock() - now
        self._spent += self._next
        self.told.certified_so_far(found)


def _found(result: xr.Dataset, n: int, rule: str) -> CertifiedSoFar:
    kinds, run = budget_kinds(result), run_info(result)
    first = result.isel(item=0, target=0, bound=-1)
    budgets: list[tuple[str, float]] = []
    certified: list[float] = []
    for kind in kinds:
        curve = first["certified"].isel({other: 0 for other in kinds if other != kind}).values
        positive = np.flatnonzero(result[kind].values > 0)
        inner = np.linspace(0, positive.size - 1, _SHOWN + 2)[1:-1].round().astype(int)
        for place in positive[np.unique(inner)] if positive.size else ():
            budgets.append((symbol(kind), float(result[kind].values[place])))
            certified.append(float(curve[place]))
    return CertifiedSoFar(
        item=str(first["item"].values),
        target=str(first["target"].values),
        rule=rule,
        alpha=run.alpha,
        n=n,
        planned=run.n_bound,
        budgets=tuple(budgets),
        certified=tuple(certified),
        total=float(first["total"].values),
    )
