"""Several ways to bound the counts of one target, all true on one event: the best one stands, budget by budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from localsmooth.bounds import CountRule
from localsmooth.certificates import BaseCertificates
from localsmooth.collective import Bound, Envelope
from localsmooth.results import CertifiedCurve
from localsmooth.tasks.stakes import Alike
from localsmooth.tasks.strategies import Strategies

__all__ = ["best_curves", "certified_ways"]


@runtime_checkable
class _Certified(Protocol):
    @property
    def base(self) -> BaseCertificates: ...


_Proven = TypeVar("_Proven", bound=Strategies)
_Made = TypeVar("_Made", bound=_Certified)


def certified_ways(
    ways: Sequence[_Proven], outputs: Alike, certify: Callable[[_Proven, Alike], _Made], kept: dict[int, _Made]
) -> list[_Made]:
    """Base certificates of one target by each of the ways, the first choice first.

    Parameters
    ----------
    ways
        The settings' ways, their rule settled.
    outputs
        Which outputs the target values alike.
    certify
        Makes the certificates.
    kept
        Certificates by the number of their way that serve every target; those of every output are put there.
    """
    made: list[_Made] = []
    for number, way in enumerate(ways):
        counts = isinstance(way.simultaneous, CountRule)
        if number and counts and not made[0].base.gives_away:
            continue  # nothing is shared: strata are apart already
        found = kept.get(number)
        if found is None:
            found = certify(way, outputs)
            if not counts:
                kept[number] = found
        made.append(found)
    return made


def best_curves(
    bounds: Mapping[str, Bound], ways: int, solve: Callable[[int, str, Bound], CertifiedCurve]
) -> dict[str, CertifiedCurve]:
    """Solve for one target by every way, and keep the best at each budget.

    Bounds that search do so by one way alone, by which the envelope certifies the most.

    Parameters
    ----------
    bounds
        Collective bounds by name.
    ways
        How many ways there are.
    solve
        Solves by the way of a number, by the bound of a name.
    """

    def best(name: str, bound: Bound) -> tuple[int, CertifiedCurve]:
        found = [solve(way, name, bound) for way in range(ways)]
        first = max(range(ways), key=lambda way: float(found[way].lower.sum()))
        curve = found[first]
        for other in found:
            curve = curve.at_least(other)
        return first, curve

    made: dict[str, CertifiedCurve] = {}
    swift: tuple[int, CertifiedCurve] | None = None
    for name, bound in bounds.items():
        if ways == 1:
            made[name] = solve(0, name, bound)
        elif bound.searches:
            swift = best(Envelope.name, Envelope()) if swift is None else swift
            made[name] = solve(swift[0], name, bound).at_least(swift[1])
        else:
            first = best(name, bound)
            swift = first if isinstance(bound, Envelope) else swift
            made[name] = first[1]
    return made
