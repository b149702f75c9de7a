"""Proofs: dual points, or a tree of them, that anyone can check without the solver that found them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.ceiling import Ceiling
from localsmooth.collective.kernel.dual import Cell, DualPoint
from localsmooth.collective.kernel.region import LARGEST_SPLIT

__all__ = ["LARGEST_SPLIT", "Leaf", "Node", "Proof", "SplitFeed", "SplitSpending", "Tighten", "children"]


@dataclass(frozen=True, eq=False)
class Leaf:
    """A cell bounded by the best of some dual points."""

    points: tuple[DualPoint, ...]


@dataclass(frozen=True, eq=False)
class SplitFeed:
    """A cell cut in two: inequality ``piece`` is fed less than its left end ``at``, or at least as much."""

    piece: int
    at: int
    below: Node
    above: Node


@dataclass(frozen=True, eq=False)
class SplitSpending:
    """A cell cut in two at a whole number: b ≤ ``at`` or b ≥ ``at`` + 1 in an integer ``column``."""

    column: int
    at: int
    below: Node
    above: Node


@dataclass(frozen=True, eq=False)
class Tighten:
    """A cell made smaller without loss: ceilings that hold throughout it."""

    ceilings: tuple[Ceiling, ...]
    child: Node


Node = Leaf | SplitFeed | SplitSpending | Tighten


@dataclass(frozen=True, eq=False)
class Proof:
    """Everything that shows a lower bound at one budget.

    Parameters
    ----------
    index
        The budget.
    ceilings
        The most that each inequality can be fed.
    multipliers
        Row multipliers that prove the ceilings.
    root
        A dual point, or a tree.
    """

    index: int
    ceilings: Float[np.ndarray, "pieces"]
    multipliers: Float[np.ndarray, "pieces rows"]
    root: Node


def children(cell: Cell, node: SplitFeed | SplitSpending) -> tuple[Cell, Cell]:
    """Return the two parts of a cell; together they hold all of its spendings (whole ones in a split column)."""
    if isinstance(node, SplitFeed):
        stop, start = cell.stop.copy(), cell.start.copy()
        stop[node.piece], start[node.piece] = node.at, node.at
        return replace(cell, stop=stop), replace(cell, start=start)
    upper, lower = cell.upper.copy(), cell.lower.copy()
    upper[node.column], lower[node.column] = node.at, node.at + 1
    return replace(cell, upper=upper), replace(cell, lower=lower)
