"""Threats, each with the inputs that it allows worked out by hand from the perturbation itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from ledger import Truth
from worlds import World

from localsmooth.collective import AtMostGroups, Ball, Caps, GroupBudgets, Integer, Rows, Threat
from localsmooth.layout import Layout
from localsmooth.noise import BinaryNoise, Noise, SparseFlips
from localsmooth.tasks.arrays import Flips, ItemThreat, Kind, NormBall, PerPosition

__all__ = ["COLLECTIVE_THREATS", "ITEM_THREATS", "Case", "cases_for"]

Allowed = Callable[[World, np.ndarray], np.ndarray]
"""From spending, points × columns, to whether the threat allows it, whatever the budget."""


@dataclass(frozen=True)
class Further(ItemThreat):
    """The norm ball of the noise, and more."""

    more: Callable[[int], Threat]
    called: str

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        columns = len(noise.kinds) * layout.inputs.count
        return NormBall().threat(budgets, image, layout, noise) & self.more(columns)

    def words(self, noise: Noise, units: str) -> str:
        return self.called


@dataclass(frozen=True)
class Case:
    """A threat, what it allows besides the budget, and which classes of the package it exercises."""

    name: str
    threat: ItemThreat
    allowed: Allowed
    covers: tuple[type, ...]
    one_ball: bool = False

    def fits(self, noise: Noise) -> bool:
        if isinstance(self.threat, PerPosition):
            return not isinstance(noise, BinaryNoise)
        return not isinstance(self.threat, Flips) or isinstance(noise, SparseFlips)

    def felt(self, world: World, truth: Truth) -> Truth:
        """The truth with the size of each perturbation as the threat measures it; inf where it does not allow it."""
        if not isinstance(self.threat, PerPosition):
            return truth
        moved = (world.points - world.points[0]).reshape(-1, *world.image.shape)
        size = np.linalg.norm(moved, ord=world.noise.norm, axis=1).max(axis=-1)
        return replace(truth, size=np.where(self.allowed(world, world.spending()), size, np.inf))

    def masks(self, world: World, budgets: Sequence[float], size: np.ndarray) -> list[np.ndarray]:
        """Points that are allowed at each budget."""
        inside = self.allowed(world, world.spending())
        return [inside & (size <= budget) for budget in budgets]


def _everything(world: World, spent: np.ndarray) -> np.ndarray:
    return np.ones(len(spent), bool)


def _share(world: World) -> float:
    """What further limits leave of one column: 1 flip, or a tenth of the largest budget that is finite."""
    return 1.0 if isinstance(world.noise, BinaryNoise) else 0.3**world.noise.norm


def cases_for(world: World) -> list[Case]:
    """All threats that the world's noise knows."""
    share, groups = _share(world), world.layout.inputs.count

    def labels(columns: int) -> np.ndarray:
        return np.arange(columns) % groups

    def caps(columns: int) -> np.ndarray:
        return np.where(np.arange(columns) % 2 == 0, share, np.inf)

    def rows(columns: int) -> np.ndarray:
        return np.stack([np.arange(columns) + 1.0, (np.arange(columns) == 0) - 0.5 * (np.arange(columns) == 1)])

    right = np.array([3 * share, share])
    every = [
        Case("ball", NormBall(), _everything, (NormBall, Ball, Integer), one_ball=True),
        Case(
            "additions",
            Flips(Kind.ADDITIONS),
            lambda w, b: (b[:, b.shape[1] // 2 :] == 0).all(axis=1),
            (Flips,),
            one_ball=True,
        ),
        Case(
            "deletions",
            Flips(Kind.DELETIONS),
            lambda w, b: (b[:, : b.shape[1] // 2] == 0).all(axis=1),
            (Flips,),
            one_ball=True,
        ),
        Case("flips", Flips(Kind.ANY), _everything, (Flips,), one_ball=True),
        Case("caps", Further(lambda c: Caps(caps(c)), "caps"), lambda w, b: (b <= caps(b.shape[1])).all(1), (Caps,)),
        Case(
            "one group",
            Further(lambda c: AtMostGroups(1, labels(c)), "one group"),
            lambda w, b: ((b @ (labels(b.shape[1])[:, None] == np.arange(groups))) > 0).sum(axis=1) <= 1,
            (AtMostGroups,),
        ),
        Case(
            "no group",
            Further(lambda c: AtMostGroups(0), "no group"),
            lambda w, b: (b == 0).all(axis=1),
            (AtMostGroups,),
        ),
        Case(
            "group budgets",
            Further(lambda c: GroupBudgets(labels(c), [share] * (groups - 1) + [2 * share]), "group budgets"),
            lambda w, b: (
                b @ (labels(b.shape[1])[:, None] == np.arange(groups)) <= np.array([share] * (groups - 1) + [2 * share])
            ).all(axis=1),
            (GroupBudgets,),
        ),
        Case(
            "rows",
            Further(lambda c: Rows(rows(c), right), "rows"),
            lambda w, b: (b @ rows(b.shape[1]).T <= right).all(axis=1),
            (Rows,),
        ),
    ]
    every += [
        Case("every position", PerPosition(), _everything, (PerPosition, Rows)),
        Case(
            "one position",
            PerPosition(most=1),
            lambda w, b: (w.points != w.points[0]).reshape(-1, *w.image.shape).any(axis=1).sum(axis=-1) <= 1,
            (PerPosition,),
        ),
    ]
    return [case for case in every if case.fits(world.noise)]


ITEM_THREATS = {NormBall, Flips, PerPosition}
COLLECTIVE_THREATS = {AtMostGroups, Ball, Caps, GroupBudgets, Integer, Rows}
