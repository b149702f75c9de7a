"""When an item has samples enough: once more of them hardly raise its certified count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import xarray as xr

__all__ = ["Settling"]

_RATIO = 1.25


@dataclass(eq=False)
class Settling:
    """Certifies an item from its complete rounds, at growing numbers of samples, and ends it when it has settled.

    That is when its certified count (of the first target, by the last bound that does not search, in the mean over the
    budgets) is less than a share higher than at half as many samples. Items that certify nothing yet go on. Which
    rounds are looked at depends on numbers of samples alone.

    What was seen is not kept: a run that goes on after an interruption looks anew, and ends an item no sooner than when
    it has doubled the samples since. Where it ends may then differ, and what is promised there does not.

    Valid for what holds at every number of samples at once, and for nothing else.

    Parameters
    ----------
    certify
        Makes a result of one item's votes so far.
    end
        Draws no more of an item.
    share
        By which doubling the samples has to raise the count.
    tell
        Told of items that have settled.
    """

    certify: Callable[[int], xr.Dataset]
    end: Callable[[int], None]
    share: float
    tell: Callable[[str], None]
    _seen: dict[int, list[tuple[int, float]]] = field(default_factory=dict[int, list[tuple[int, float]]])

    def __call__(self, item: int, n: int) -> None:
        """Look at an item after a round that brought it to so many samples, if it is time."""
        seen = self._seen.setdefault(item, [])
        if seen and n < _RATIO * seen[-1][0]:
            return
        result = self.certify(item).isel(item=0, target=0, bound=-1)
        now = float(result["certified"].mean())
        before = [count for samples, count in seen if 2 * samples <= n]
        seen.append((n, now))
        if before and now > 0 and now - before[-1] < self.share * now:
            self.end(item)
            self.tell(f"{result['item'].item()}: settled at {n:,} samples of each output group")
