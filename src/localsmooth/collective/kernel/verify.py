"""Check an answer in exact rational arithmetic, from its proof alone."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.answer import Answer, Status
from localsmooth.collective.kernel.attack import allowed, alone, survivors
from localsmooth.collective.kernel.ceiling import ceiling_exactly, lowered
from localsmooth.collective.kernel.dual import Cell, evaluate_exactly, root_cell
from localsmooth.collective.kernel.problem import Pieces, Problem
from localsmooth.collective.kernel.proof import LARGEST_SPLIT, Leaf, Node, Proof, SplitFeed, Tighten, children
from localsmooth.collective.kernel.region import Region, implied_uppers, region_at
from localsmooth.errors import LocalsmoothError

__all__ = ["CertificateError", "prove", "verify"]


class CertificateError(LocalsmoothError):
    """Exact arithmetic does not confirm a certificate."""


def verify(problem: Problem, answer: Answer) -> Answer:
    """Prove an answer's count again in exact rationals, independently of floating point.

    Returns
    -------
    Answer
        The same answer, with the exact lower bound in ``verified``.

    Raises
    ------
    CertificateError
        If the proof does not prove the count, or the attack does not leave what it is said to leave.
    """
    budgets = problem.constraints.budgets
    if not (0 <= answer.index < len(budgets) and 0 <= answer.proof.index < len(budgets)):
        raise CertificateError("the answer belongs to a budget that the problem does not have")
    # What holds for a more generous budget holds for this one.
    if not bool(np.all(budgets[answer.proof.index] >= budgets[answer.index])):
        raise CertificateError("the proof is about a smaller budget than the answer")
    value, worth = prove(problem, answer.proof), problem.worth
    # A whole number of units at or above the proven value is at or above its ceiling.
    proven = max(0, math.ceil(value / worth.unit))
    if not (proven * worth.unit >= answer.certified and max(Fraction(0), value) >= answer.lower):
        raise CertificateError(
            f"the proof shows {float(value):.6f} targets, the answer claims {answer.certified} (bound {answer.lower})"
        )
    if answer.attack.shape != (problem.columns,) or not allowed(problem, answer.index, answer.attack):
        raise CertificateError("the attack is not within the threat")
    left = survivors(problem, answer.attack)
    if worth.most(left) != answer.upper:
        raise CertificateError("the attack does not leave the number of targets that the answer says")
    optimal = answer.certified == worth.least(left) and not worth.lost
    if answer.certified > answer.upper or (answer.status is Status.EXACT and not optimal):
        raise CertificateError("bound, attack and status of the answer contradict each other")
    return replace(answer, verified=value)


def prove(problem: Problem, proof: Proof) -> Fraction:
    """Return the lower bound that a proof shows, in targets (or their values) and exact rationals.

    Raises
    ------
    CertificateError
        Where the proof is not a proof.
    """
    try:
        region = region_at(problem.constraints, proof.index, problem.column_enough)
        _check_box(problem, region, proof.index)
        _check_ceilings(problem, region, proof)
        pieces = problem.pieces_under(proof.ceilings)
        return problem.worth.unit * _prove_tree(problem, proof, pieces, region)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Numbers and shapes that no proof of this problem has.
        raise CertificateError(f"the proof is malformed ({error})") from error


def _check_box(problem: Problem, region: Region, index: int) -> None:
    """Show that the region's upper bounds leave out no spending that could break more."""
    constraints = problem.constraints
    keep = np.isfinite(constraints.budgets[index])
    rows, limits = constraints.rows[keep], constraints.budgets[index][keep]
    before = constraints.caps
    for upper in implied_uppers(rows, limits, constraints.caps, constraints.integer):
        for column in np.flatnonzero(np.isfinite(upper)):
            most = _column_bound(rows, limits, before, int(column))
            if most is not None and constraints.integer[column]:
                most = Fraction(math.floor(most))
            if most is None or most > Fraction(float(upper[column])):
                raise CertificateError("an upper bound on the spending is not proven")
        before = upper
    for column, upper in enumerate(region.upper[: region.real]):
        barred = any(most == 0 and labels[column] >= 0 for most, labels in constraints.limits)
        if barred or upper >= before[column]:
            continue
        # More than breaks everything is never needed, unless a row gives something back for it.
        if bool(np.any(rows[:, column] < 0)) or _enough(problem, column) > Fraction(float(upper)):
            raise CertificateError("an upper bound on the spending is not proven")


def _column_bound(
    rows: Float[np.ndarray, "rows columns"],
    limits: Float[np.ndarray, "rows"],
    before: Float[np.ndarray, "columns"],
    column: int,
) -> Fraction | None:
    """Return the least bound on a column that the bounds before and one row alone show."""
    bounds = [Fraction(float(before[column]))] if math.isfinite(before[column]) else []
    for row, limit in zip(rows, limits, strict=True):
        back = np.flatnonzero(row < 0)
        if row[column] > 0 and bool(np.all(np.isfinite(before[back]))):
            given = sum((-Fraction(float(row[k])) * Fraction(float(before[k])) for k in back), Fraction(float(limit)))
            bounds.append(given / Fraction(float(row[column])))
    return min(bounds, default=None)


def _enough(problem: Problem, column: int) -> Fraction:
    """Return the least spending in a column that breaks all that it can break."""
    needed = Fraction(0)
    for weights, steps in zip(problem.pieces.weights, problem.pieces.steps, strict=True):
        if weights[column] > 0:
            needed = max(needed, Fraction(float(steps.thresholds[-1])) / Fraction(float(weights[column])))
    return needed


def _check_ceilings(problem: Problem, region: Region, proof: Proof) -> None:
    """Show Σ_l W_l b_l ≤ y·c + Σ_l max(0, W_l − (Aᵀy)_l) · upper_l ≤ ceiling for every inequality."""
    weights = problem.pieces.weights
    shape = (len(weights), len(region.limits))
    if proof.multipliers.shape != shape or proof.ceilings.shape != shape[:1]:
        raise CertificateError("the proof belongs to another problem")
    if not bool(np.all(proof.multipliers >= 0) and np.all(np.isfinite(proof.multipliers))):
        raise CertificateError("a row multiplier is negative or not finite")
    rows = [[Fraction(float(value)) for value in row] for row in region.rows]
    limits = [Fraction(float(value)) for value in region.limits]
    for row, ceiling, multipliers in zip(weights, proof.ceilings, proof.multipliers, strict=True):
        if ceiling == math.inf:
            continue
        y = [Fraction(float(value)) for value in multipliers]
        most = sum((price * limit for price, limit in zip(y, limits, strict=True)), Fraction(0))
        for column, upper in enumerate(region.upper):
            weight = Fraction(float(row[column])) if column < region.real else Fraction(0)
            rest = weight - sum((price * rows[r][column] for r, price in enumerate(y)), Fraction(0))
            if rest > 0 and upper > 0:
                if not math.isfinite(upper):
                    raise CertificateError("an inequality's ceiling is not proven")
                most += rest * Fraction(float(upper))
        if math.isnan(ceiling) or most > Fraction(float(ceiling)):
            raise CertificateError("an inequality's ceiling is not proven")


def _prove_tree(problem: Problem, proof: Proof, pieces: Pieces, region: Region) -> Fraction:
    """Return the least of what the leaves show; a tree may be deep, so it is walked without recursion."""
    least: Fraction | None = None
    waiting: list[tuple[Cell, Node]] = [(root_cell(pieces, region, proof.ceilings), proof.root)]
    while waiting:
        cell, node = waiting.pop()
        if bool(np.any(cell.stop <= cell.start)) or bool(np.any(cell.lower > cell.upper)):
            continue  # an empty cell holds no attack
        if isinstance(node, Leaf):
            left = alone(problem, proof.index, cell)
            if left == math.inf:
                continue  # the threat forbids the only spending of this cell
            value = _prove_leaf(pieces.within(cell.stop), region, cell, node) if left is None else Fraction(left)
            least = value if least is None else min(least, value)
        elif isinstance(node, Tighten):
            for ceiling in node.ceilings:
                _require_position(ceiling.piece, len(pieces))
                shown = ceiling_exactly(pieces, region, cell, ceiling)
                if shown is None or math.isnan(ceiling.value) or shown > Fraction(ceiling.value):
                    raise CertificateError("a ceiling of the proof is not proven")
            waiting.append((lowered(pieces, cell, node.ceilings), node.child))
        else:
            _require_whole(node.at)
            if isinstance(node, SplitFeed):
                _require_position(node.piece, len(pieces))
                if not cell.start[node.piece] < node.at < cell.stop[node.piece]:
                    raise CertificateError("a split of the proof lies outside of its cell")
            else:
                _require_position(node.column, len(region.upper))
                if not region.integer[node.column] or abs(node.at) >= LARGEST_SPLIT:
                    raise CertificateError("a split of the proof cuts where spendings may lie")
            below, above = children(cell, node)
            waiting.extend([(below, node.below), (above, node.above)])
    if least is None:
        raise CertificateError("the proof leaves no attack at all, not even none")
    return least


def _require_whole(number: object) -> None:
    if not isinstance(number, int | np.integer):
        raise CertificateError("a split of the proof lies at a fraction")


def _require_position(number: object, size: int) -> None:
    if not isinstance(number, int | np.integer) or not 0 <= number < size:
        raise CertificateError("the proof names a column or an inequality that the problem does not have")


def _prove_leaf(pieces: Pieces, region: Region, cell: Cell, leaf: Leaf) -> Fraction:
    proven = [evaluate_exactly(pieces, region, cell, point) for point in leaf.points]
    values = [value for value in proven if value is not None]
    if not values:
        raise CertificateError("a leaf of the proof proves nothing")
    return max(values)
