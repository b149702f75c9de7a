"""Comparing methods over their settings: fronts of quality against certified radius, and who dominates whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from localsmooth.errors import InvalidInputError
from localsmooth.metrics.sweeps import pareto_front

__all__ = ["Domination", "OperatingPoint", "dominates", "dominations", "front"]


@dataclass(frozen=True)
class OperatingPoint:
    """One setting of one method, and what it costs and gives.

    Parameters
    ----------
    method
        Name of the method.
    label
        The setting, such as "σ = 0.25".
    quality
        How well the smoothed classifier predicts (accuracy or mean IoU), larger is better.
    radii
        Average certifiable radius by collective bound, in the units of the budgets; larger is better.
    samples_per_output
        Noisy samples that every output's bounds rest on.
    total_samples
        Model calls for one item: the samples of all output groups.

    Raises
    ------
    InvalidInputError
        If quality or a radius is not a number.
    """

    method: str
    label: str
    quality: float
    radii: dict[str, float] = field(hash=False)
    samples_per_output: int
    total_samples: int

    def __post_init__(self) -> None:
        for name, value in {"quality": self.quality, **self.radii}.items():
            if not np.isfinite(value):
                raise InvalidInputError(name, f"is {value} at {self.method}, {self.label}", "Leave the point out")


@dataclass(frozen=True)
class Domination:
    """What beats one point, and by how much.

    Parameters
    ----------
    loser
        The point that is looked at.
    winner
        The dominating point with the largest radius (then the best quality); None where nothing dominates it.
    quality_gain, radius_gain
        Winner minus loser; 0 without a winner.
    """

    loser: OperatingPoint
    winner: OperatingPoint | None
    quality_gain: float
    radius_gain: float


def dominates(first: OperatingPoint, second: OperatingPoint, bound: str, loser_bound: str | None = None) -> bool:
    """Whether the first point is at least as good in quality and radius as the second, and better in one of them.

    Parameters
    ----------
    first, second
        The points.
    bound
        Collective bound whose radii are compared.
    loser_bound
        Bound of the second point; the same by default.

    Raises
    ------
    InvalidInputError
        If a point has no radius by its bound.
    """
    ours, theirs = _radius(first, bound), _radius(second, bound if loser_bound is None else loser_bound)
    return first.quality >= second.quality and ours >= theirs and (first.quality > second.quality or ours > theirs)


def _radius(point: OperatingPoint, bound: str) -> float:
    if bound not in point.radii:
        raise InvalidInputError(
            "bound", f"{point.method}, {point.label} has none called {bound}", f"It has {', '.join(point.radii)}"
        )
    return point.radii[bound]


def dominations(
    losers: Sequence[OperatingPoint], winners: Sequence[OperatingPoint], bound: str, loser_bound: str | None = None
) -> list[Domination]:
    """For every point of one side, the point of the other side that beats it most clearly.

    Parameters
    ----------
    losers, winners
        Points of the two sides.
    bound, loser_bound
        As in `dominates`.

    Returns
    -------
    list[Domination]
        One per loser, in their order.
    """
    made: list[Domination] = []
    for loser in losers:
        better = [winner for winner in winners if dominates(winner, loser, bound, loser_bound)]
        if not better:
            made.append(Domination(loser, None, 0.0, 0.0))
            continue
        winner = max(better, key=lambda point: (point.radii[bound], point.quality))
        radius = loser.radii[bound if loser_bound is None else loser_bound]
        made.append(Domination(loser, winner, winner.quality - loser.quality, winner.radii[bound] - radius))
    return made


def front(points: Sequence[OperatingPoint], bound: str) -> list[OperatingPoint]:
    """The points that no other of them dominates, by falling quality.

    Parameters
    ----------
    points
        Points of one or several methods; those without this bound are left out.
    bound
        Collective bound whose radii are compared.
    """
    usable = [point for point in points if bound in point.radii]
    if not usable:
        return []
    kept = pareto_front(np.array([[point.quality, point.radii[bound]] for point in usable], dtype=np.float64))
    chosen = [point for point, on in zip(usable, kept, strict=True) if on]
    return sorted(chosen, key=lambda point: (-point.quality, point.radii[bound]))
