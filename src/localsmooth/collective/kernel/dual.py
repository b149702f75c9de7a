"""The safe bound: what a set of dual numbers proves, in floating point with error control and in exact rationals.

For any slopes g, any row multipliers y ≥ 0 and any shares λ ≥ 0 that sum to at most one over a group's certificates,

    V ≥ Σ_p min_{s ∈ [a_p, z_p)} (λ_p F_p(s) − g_p s) + min_{lower ≤ b ≤ upper} Σ_l (Σ_p g_p W_pl + (Aᵀy)_l) b_l − y·c

bounds what is left of the targets from below (Lagrangian duality; F_p is the step function of inequality p). Whoever
found the numbers, a poor choice weakens the bound and never breaks it: no solver's word enters a certificate.

Counts and bounds are in whole units of the targets' values (`Worth`), which are targets where each counts 1. What an
inequality is fed, s = W_p · b, has the unit of its thresholds η (none), b that of the threat's budgets (Σ|δ|^p, or
flips). So slopes g are targets per unit fed, multipliers y targets per unit of a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from localsmooth.collective.kernel.problem import Pieces
from localsmooth.collective.kernel.region import TINY, UNIT, Region, underflows
from localsmooth.collective.kernel.steps import Steps

__all__ = ["Cell", "DualPoint", "evaluate", "evaluate_exactly", "padded", "root_cell"]


@dataclass(frozen=True, eq=False)
class Cell:
    """Part of the adversary's set: W_p · b between left ends start_p and stop_p, lower ≤ b ≤ upper.

    Parameters
    ----------
    start, stop
        Indices of left ends: inequality p is fed at least ``thresholds[start]`` of its step function, and less than
        ``thresholds[stop]``, or whatever it can be fed where ``stop`` is their number. Empty where stop ≤ start.
    ceiling
        The most each inequality can be fed (for the step that ``stop`` does not close), +∞ where nothing bounds it.
    lower, upper
        Bounds on the spending b in each column, in the unit of the budgets; switches, from 0 to 1, included.
    """

    start: Int[np.ndarray, "pieces"]
    stop: Int[np.ndarray, "pieces"]
    ceiling: Float[np.ndarray, "pieces"]
    lower: Float[np.ndarray, "columns"]
    upper: Float[np.ndarray, "columns"]

    def roof(self, piece: int, steps: Steps) -> float:
        """Return the supremum of what one inequality is fed in this cell.

        Parameters
        ----------
        piece
            Index of the inequality.
        steps
            Its step function.
        """
        stop, ceiling = int(self.stop[piece]), float(self.ceiling[piece])
        return min(ceiling, float(steps.thresholds[stop])) if stop < len(steps.thresholds) else ceiling

    def feeds(self, pieces: Pieces) -> tuple[Float[np.ndarray, "pieces"], Float[np.ndarray, "pieces"]]:
        """Return the least feed and the roof of every inequality.

        Parameters
        ----------
        pieces
            The inequalities, with their step functions.
        """
        least = [steps.thresholds[start] for steps, start in zip(pieces.steps, self.start.tolist(), strict=True)]
        closed = [
            steps.thresholds[stop] if stop < len(steps.thresholds) else math.inf
            for steps, stop in zip(pieces.steps, self.stop.tolist(), strict=True)
        ]
        return np.array(least, dtype=np.float64), np.minimum(self.ceiling, np.array(closed, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Dual numbers that prove a lower bound.

    Parameters
    ----------
    slopes
        g, targets lost per unit fed to each inequality (≤ 0, save in the middle of a search tree).
    shares
        λ in [0, 1], how much of a group's count each of its certificates answers for.
    multipliers
        y ≥ 0, the price of each row of the region, in targets per unit of the row's limit.
    """

    slopes: Float[np.ndarray, "pieces"]
    shares: Float[np.ndarray, "pieces"]
    multipliers: Float[np.ndarray, "rows"]

    @classmethod
    def idle(cls, pieces: Pieces, region: Region, cell: Cell) -> DualPoint:
        """Return the point that proves the naive bound: every inequality on its own, the strongest of each group.

        Parameters
        ----------
        pieces, region
            The inequalities and the adversary's set.
        cell
            The part of it that the bound is for.
        """
        floors = [float(s.counts[max(int(stop) - 1, 0)]) for s, stop in zip(pieces.steps, cell.stop, strict=True)]
        shares = np.zeros(len(pieces))
        for owner in range(pieces.groups):
            own = np.flatnonzero(pieces.owner == owner)
            shares[max(own, key=lambda piece: floors[int(piece)])] = 1.0
        return cls(np.zeros(len(pieces)), shares, np.zeros(len(region.limits)))


def root_cell(pieces: Pieces, region: Region, ceilings: Float[np.ndarray, "pieces"]) -> Cell:
    """Return the cell that holds the adversary's whole set.

    Parameters
    ----------
    pieces, region
        The inequalities and the adversary's set.
    ceilings
        The most that each inequality can be fed anywhere in the set; proven elsewhere (`Supports`).
    """
    stop = [steps.reached(float(ceiling)) for steps, ceiling in zip(pieces.steps, ceilings, strict=True)]
    return Cell(
        np.zeros(len(pieces), dtype=np.int64),
        np.array(stop, dtype=np.int64),
        ceilings,
        np.zeros(len(region.upper)),
        region.upper,
    )


def conjugate(steps: Steps, start: int, stop: int, roof: float, share: float, slope: float) -> float:
    """Return min over s of share · F(s) − slope · s, in targets and rounded down; −∞ where nothing bounds it.

    Parameters
    ----------
    steps
        F.
    start, stop
        Indices of left ends: s lies in [thresholds[start], thresholds[stop]).
    roof
        The supremum of s there, which counts where the slope is positive.
    share
        λ ≥ 0.
    slope
        g, in targets per unit fed.
    """
    counts = steps.counts[start:stop]
    if slope == 0.0:
        return share * float(counts[-1]) * (1 - UNIT)
    if slope < 0:
        # Both terms are ≥ 0, so each rounding is relative to the result.
        return steps.lowest(start, stop, slope, share)[1] * (1 - 4 * UNIT)
    if not math.isfinite(roof):
        return -math.inf
    # Both terms fall, towards the end of the last step.
    return share * float(counts[-1]) - slope * roof - 4 * UNIT * (share * float(counts[-1]) + slope * roof)


def _sound(pieces: Pieces, point: DualPoint) -> bool:
    """Whether shares and multipliers may be used at all: y ≥ 0 finite, λ ≥ 0, Σλ ≤ 1 in each group with rounding."""
    shares = point.shares
    if not (bool(((shares >= 0) & (shares <= 1)).all()) and bool((point.multipliers >= 0).all())):
        return False
    if not (bool(np.isfinite(point.slopes).all()) and bool(np.isfinite(point.multipliers).all())):
        return False
    if len(pieces) == pieces.groups:
        return True
    totals = np.bincount(pieces.owner, shares, pieces.groups)
    holders = np.bincount(pieces.owner, shares > 0, pieces.groups)
    return bool(((totals <= 1 - 8 * len(pieces) * UNIT) | (holders <= 1)).all())


def evaluate(pieces: Pieces, region: Region, cell: Cell, point: DualPoint) -> float:
    """Return how many targets the dual numbers prove to be left, rounded down; −∞ for nothing, +∞ for no b at all.

    Parameters
    ----------
    pieces, region
        The inequalities and the adversary's set.
    cell
        The part of the set that the bound is for.
    point
        g, λ and y; whatever they are, what is returned is true.
    """
    if bool(np.any(cell.stop <= cell.start)):
        return math.inf
    if not _sound(pieces, point):
        return -math.inf
    weights = padded(pieces, region)
    terms: list[float] = []
    roofs = cell.feeds(pieces)[1]
    for steps, start, stop, roof, share, slope in zip(
        pieces.steps,
        cell.start.tolist(),
        cell.stop.tolist(),
        roofs.tolist(),
        point.shares.tolist(),
        point.slopes.tolist(),
        strict=True,
    ):
        if share == 0.0 and slope == 0.0:
            continue
        value = conjugate(steps, start, stop, roof, share, slope)
        if value == -math.inf:
            return value
        terms.append(value)
    # What one unit of b costs in each column, less what the roundings of the sum over pieces and rows can have added.
    operations = len(pieces) + len(region.limits) + 8
    cost = point.slopes @ weights + point.multipliers @ region.rows
    error = operations * UNIT * (np.abs(point.slopes) @ weights + point.multipliers @ np.abs(region.rows))
    prices = np.concatenate([point.slopes, point.multipliers])[None]
    error = error + operations * TINY * underflows(prices, np.concatenate([weights, region.rows]))[0]
    least = cost - error
    if not bool(np.isfinite(least).all()):
        return -math.inf
    with np.errstate(invalid="ignore"):
        cheapest = np.where(least > 0, least * cell.lower, np.where(least < 0, least * cell.upper, 0.0))
    terms.extend(cheapest.tolist())
    terms.extend((-point.multipliers * region.limits).tolist())
    if not all(math.isfinite(term) for term in terms):
        return -math.inf
    # fsum rounds once; every product above carries one rounding of its own, and may have underflowed.
    return math.fsum([*terms, *(-4 * UNIT * abs(term) for term in terms), -4 * TINY * len(terms)])


def evaluate_exactly(pieces: Pieces, region: Region, cell: Cell, point: DualPoint) -> Fraction | None:
    """Return what the dual numbers prove about a cell that is not empty, in exact rationals; None for nothing.

    No floating-point result is used: only the given numbers, each as the rational it stands for.

    Parameters
    ----------
    pieces, region, cell, point
        As in `evaluate`.
    """
    parts = (point.slopes, point.shares, point.multipliers)
    if not all(bool(np.all(np.isfinite(part))) for part in parts):
        return None
    slopes, shares, multipliers = ([Fraction(float(value)) for value in part] for part in parts)
    totals = [Fraction(0)] * pieces.groups
    for piece, owner in enumerate(pieces.owner):
        totals[int(owner)] += shares[piece]
    if any(value < 0 for value in (*shares, *multipliers)) or any(total > 1 for total in totals):
        return None
    value = Fraction(0)
    for piece, steps in enumerate(pieces.steps):
        share, slope = shares[piece], slopes[piece]
        if share == 0 and slope == 0:
            continue
        start, stop = int(cell.start[piece]), int(cell.stop[piece])
        lowest = _exact_conjugate(steps, start, stop, cell.roof(piece, steps), share, slope)
        if lowest is None:
            return None
        value += lowest
    weights = padded(pieces, region)
    for column in range(len(region.upper)):
        cost = _dot(slopes, weights[:, column]) + _dot(multipliers, region.rows[:, column])
        if cost != 0:
            cheapest = float(cell.lower[column] if cost > 0 else cell.upper[column])
            if not math.isfinite(cheapest):
                return None
            value += cost * Fraction(cheapest)
    return value - _dot(multipliers, region.limits)


def _exact_conjugate(
    steps: Steps, start: int, stop: int, roof: float, share: Fraction, slope: Fraction
) -> Fraction | None:
    """Return what `conjugate` does, not rounded; None where nothing bounds it."""
    if slope > 0 and not math.isfinite(roof):
        return None
    ends: Sequence[float] = steps.thresholds[start:stop].tolist()
    if slope > 0:
        ends = [*ends[1:], roof]
    ratios = [end.as_integer_ratio() for end in ends]
    common = math.lcm(slope.denominator, share.denominator) * max(denominator for _, denominator in ratios)
    by_count, by_end = int(share * common), slope.numerator * (common // slope.denominator)
    # Floats are binary fractions, so the largest denominator is a multiple of all of them and every division is exact.
    least = min(
        by_count * int(count) - by_end * numerator // denominator
        for count, (numerator, denominator) in zip(steps.counts[start:stop].tolist(), ratios, strict=True)
    )
    return Fraction(least, common)


def _dot(left: Sequence[Fraction], right: Float[np.ndarray, "_"]) -> Fraction:
    """Return the inner product; what is multiplied by 0 may be infinite."""
    return sum((a * Fraction(float(b)) for a, b in zip(left, right, strict=True) if a != 0 and b != 0), Fraction(0))


def padded(pieces: Pieces, region: Region) -> Float[np.ndarray, "pieces columns"]:
    """Return the weights W with a zero for each switch, which feeds nothing.

    Parameters
    ----------
    pieces
        With weights of the columns that feed.
    region
        Whose columns are those and the switches.
    """
    extra = len(region.upper) - region.real
    return np.pad(pieces.weights, ((0, 0), (0, extra))) if extra else pieces.weights
