"""How many outputs one adversary can attack, where each base certificate is a set in the space of budgets.

Source: Schuchardt et al. 2021. An output that sees the columns of its field falls only where the budget spent there
reaches one of its *corners* in every kind of perturbation. With t = 1 for the corner that is reached,

    max Σ t   such that  t·corner[kind] ≤ Σ_{columns in the field} b[kind, column],  Σ_corners t ≤ 1,  0 ≤ t ≤ 1,

b within the threat, bounds the number of attacked outputs; t and b are relaxed to real numbers. What is certified is
the value of a dual point y ≥ 0 with bounded primal variables x ∈ [0, u],

    c·x ≤ y·h + Σ_j u_j·max(0, c_j − (Aᵀy)_j),

evaluated with control of the rounding; the solver only proposes y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int
from scipy import optimize

from localsmooth.collective import Constraints
from localsmooth.errors import InvalidInputError

__all__ = ["Attack", "BudgetSets", "most_attacked"]

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class BudgetSets:
    """Base certificates as sets: an output falls only at one of its corners, or above it, within its field.

    Parameters
    ----------
    seen
        Distinct fields of view.
    field
        Field of each output.
    owner
        Output that each corner belongs to; an output without corners never falls.
    corner
        Budget per kind that has to be reached, rounded down.

    Raises
    ------
    InvalidInputError
        If the arrays do not fit together, or a corner is negative or NaN.
    """

    seen: Bool[np.ndarray, "fields columns"]
    field: Int[np.ndarray, "outputs"]
    owner: Int[np.ndarray, "corners"]
    corner: Float[np.ndarray, "corners kinds"]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.corner).all() and (self.corner >= 0).all()):
            raise InvalidInputError("corner", "a budget is negative, infinite or NaN", "Corners are finite and >= 0")
        if self.owner.size and not 0 <= self.owner.min() <= self.owner.max() < self.field.size:
            raise InvalidInputError("owner", "a corner belongs to no output", "Number the outputs from 0")
        if self.field.size and not 0 <= self.field.min() <= self.field.max() < len(self.seen):
            raise InvalidInputError("field", "an output has no field", "Number the fields from 0")

    @property
    def kinds(self) -> int:
        """Number of kinds of perturbation that are told apart."""
        return self.corner.shape[1]


@dataclass(frozen=True, eq=False)
class Attack:
    """What is known about the strongest attack within one budget.

    Parameters
    ----------
    alone
        Number of targets that can be attacked if each one could have a perturbation of its own (the naive bound).
    together
        Upper bound on the number that one perturbation attacks; at most `alone`.
    spending
        Budget per kind and column in the relaxation's solution.
    """

    alone: int
    together: float
    spending: Float[np.ndarray, "kinds columns"]


def most_attacked(sets: BudgetSets, constraints: Constraints, targets: Bool[np.ndarray, "outputs"]) -> list[Attack]:
    """Bound the number of targets that one adversary attacks, at every budget of a threat.

    Parameters
    ----------
    sets
        The base certificates.
    constraints
        A threat over columns (kind, column): rows with non-negative coefficients, caps. Integrality and limits on the
        number of groups are relaxed.
    targets
        Outputs that count.

    Raises
    ------
    InvalidInputError
        If the threat is for other columns or has negative coefficients.
    """
    if constraints.caps.size != sets.kinds * sets.seen.shape[1]:
        raise InvalidInputError(
            "threat", f"it has {constraints.caps.size} columns", f"Give it {sets.kinds * sets.seen.shape[1]}"
        )
    if not bool((constraints.rows >= 0).all()):
        raise InvalidInputError("threat", "a coefficient is negative", "Give non-negative rows")
    return [_attack(sets, constraints, budget, targets) for budget in constraints.budgets]


def _attack(
    sets: BudgetSets,
    constraints: Constraints,
    budget: Float[np.ndarray, "rows"],
    targets: Bool[np.ndarray, "outputs"],
) -> Attack:
    reachable = _reachable(sets, constraints, budget) & targets[sets.owner]
    alone = int(np.unique(sets.owner[reachable]).size)
    nothing = np.zeros((sets.kinds, sets.seen.shape[1]))
    if alone == 0:
        return Attack(0, 0.0, nothing)
    program = _program(sets, constraints, budget, np.flatnonzero(reachable))
    together, x = program.bound()
    spending = x[: nothing.size].reshape(nothing.shape) if x.size else nothing
    return Attack(alone, min(float(alone), together), spending)


def _reachable(
    sets: BudgetSets, constraints: Constraints, budget: Float[np.ndarray, "rows"]
) -> Bool[np.ndarray, "corners"]:
    """Corners that the threat may allow for their output alone: each row at the cheapest columns, caps added up."""
    columns = sets.seen.shape[1]
    caps = constraints.caps.reshape(sets.kinds, columns)
    rows = constraints.rows.reshape(-1, sets.kinds, columns)
    field = sets.field[sets.owner]
    slack = 1 + 4 * (columns + sets.kinds) * _EPSILON
    fits = np.ones(sets.owner.size, dtype=np.bool_)
    cost = np.zeros((len(rows), sets.owner.size))
    for kind in range(sets.kinds):
        needed = sets.corner[:, kind]
        with np.errstate(invalid="ignore"):
            room = np.where(sets.seen, caps[kind], 0.0).sum(axis=1)
        fits &= needed <= room[field] * slack
        cheapest = np.where(sets.seen[None], rows[:, None, kind], np.inf).min(axis=2, initial=np.inf)
        cost += np.where(needed > 0, needed * np.where(np.isfinite(cheapest), cheapest, 0.0)[:, field], 0.0)
    return fits & (cost <= budget[:, None] * slack).all(axis=0)


@dataclass(frozen=True, eq=False)
class _Program:
    """Maximise gain·x over rows·x ≤ right, 0 ≤ x ≤ upper."""

    gain: Float[np.ndarray, "variables"]
    rows: Any
    right: Float[np.ndarray, "rows"]
    upper: Float[np.ndarray, "variables"]

    def bound(self) -> tuple[float, Float[np.ndarray, "_"]]:
        """Return a proven upper bound, and a solution if the solver has one."""
        bounds = np.stack([np.zeros(self.upper.size), self.upper], axis=1)
        solved: Any = optimize.linprog(-self.gain, A_ub=self.rows, b_ub=self.right, bounds=bounds, method="highs")
        idle = self.value(np.zeros(self.right.size))
        if solved.status != 0 or solved.x is None:
            return idle, np.zeros(0)
        prices = np.maximum(-np.asarray(solved.ineqlin.marginals, dtype=np.float64), 0.0)
        x = np.clip(np.asarray(solved.x, dtype=np.float64), 0.0, self.upper)
        proven = self.value(prices)
        # A NaN proves nothing.
        return (min(idle, proven) if proven >= 0 else idle), np.where(np.isfinite(x), x, 0.0)

    def value(self, prices: Float[np.ndarray, "rows"]) -> float:
        """Return what a dual point proves, rounded up."""
        transposed = self.rows.T.tocsr()
        terms = int(np.diff(transposed.indptr).max(initial=0)) + 4
        spent = transposed @ prices
        error = 2 * terms * _EPSILON * (abs(transposed) @ prices + self.gain)
        left = np.maximum(self.gain - spent + error, 0.0) * (1 + 4 * _EPSILON)
        total = math.fsum((self.right * prices).tolist()) + math.fsum((self.upper * left).tolist())
        return total * (1 + 16 * _EPSILON) + 1e-300


def _program(
    sets: BudgetSets,
    constraints: Constraints,
    budget: Float[np.ndarray, "rows"],
    corners: Int[np.ndarray, "reachable"],
) -> _Program:
    """Make the relaxed program over the corners that can be reached; equal outputs share their variables."""
    columns = sets.seen.shape[1]
    spend = sets.kinds * columns
    upper = constraints.caps.copy()
    for row, most in zip(constraints.rows, budget.tolist(), strict=True):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            alone = np.where(row > 0, np.nextafter(most / row, np.inf), np.inf)
        upper = np.minimum(upper, alone)
    if not bool(np.isfinite(upper).all()):
        raise InvalidInputError("threat", "it does not bound the spending in every column", "Add a ball, or caps")
    gains: list[float] = []
    entries: list[tuple[int, int, float]] = []
    right: list[float] = []
    for (field, points), count in _alike(sets, corners).items():
        seen = np.flatnonzero(sets.seen[field])
        first = spend + len(gains)
        for point in points:
            variable = spend + len(gains)
            gains.append(float(count))
            for kind, needed in enumerate(point):
                if needed > 0:
                    entries.append((len(right), variable, needed))
                    entries.extend((len(right), kind * columns + int(column), -1.0) for column in seen)
                    right.append(0.0)
        if len(points) > 1:
            entries.extend((len(right), variable, 1.0) for variable in range(first, spend + len(gains)))
            right.append(1.0)
    for row, most in zip(constraints.rows, budget.tolist(), strict=True):
        if math.isfinite(most):
            entries.extend((len(right), int(column), float(row[column])) for column in np.flatnonzero(row))
            right.append(most)
    variables = spend + len(gains)
    row, column, value = (np.array(part) for part in zip(*entries, strict=True)) if entries else (np.zeros(0, int),) * 3
    matrix = sp.csr_array((value.astype(np.float64), (row, column)), shape=(len(right), variables))
    return _Program(
        np.concatenate([np.zeros(spend), gains]), matrix, np.array(right), np.concatenate([upper, np.ones(len(gains))])
    )


def _alike(
    sets: BudgetSets, corners: Int[np.ndarray, "reachable"]
) -> dict[tuple[int, tuple[tuple[float, ...], ...]], int]:
    """Number of outputs for each pair of a field and the corners that can be reached there."""
    points: dict[int, list[tuple[float, ...]]] = {}
    for owner, point in zip(sets.owner[corners].tolist(), sets.corner[corners].tolist(), strict=True):
        points.setdefault(owner, []).append(tuple(point))
    counted: dict[tuple[int, tuple[tuple[float, ...], ...]], int] = {}
    for owner, own in points.items():
        key = int(sets.field[owner]), tuple(sorted(own))
        counted[key] = counted.get(key, 0) + 1
    return counted
