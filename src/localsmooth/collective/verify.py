"""Check an answer in exact rational arithmetic, from its proof alone."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from localsmooth.collective.answer import Answer
from localsmooth.collective.attack import survivors
from localsmooth.collective.dual import Cell, evaluate_exactly, root_cell
from localsmooth.collective.problem import Pieces, Problem
from localsmooth.collective.proof import Leaf, Node, Proof, SplitFeed, Tighten, children
from localsmooth.collective.region import Region, region_at
from localsmooth.collective.tighten import ceiling_exactly, lowered
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
    value = prove(problem, answer.proof)
    # A whole number of targets at or above the proven value is at or above its ceiling.
    if max(0, math.ceil(value)) < answer.certified:
        raise CertificateError(f"the proof shows {float(value):.6f} targets, the answer claims {answer.certified}")
    if survivors(problem, answer.attack) != answer.upper:
        raise CertificateError("the attack does not leave the number of targets that the answer says")
    return replace(answer, verified=value)


def prove(problem: Problem, proof: Proof) -> Fraction:
    """Return the lower bound that a proof shows, in exact rationals.

    Raises
    ------
    CertificateError
        Where the proof is not a proof.
    """
    region = region_at(problem.constraints, proof.index)
    _check_box(problem, region, proof.index)
    _check_ceilings(problem, region, proof)
    pieces = problem.pieces_under(proof.ceilings)
    return _prove_tree(pieces, region, root_cell(pieces, region, proof.ceilings), proof.root)


def _check_box(problem: Problem, region: Region, index: int) -> None:
    """Show that no allowed spending exceeds the region's upper bounds."""
    constraints = problem.constraints
    for column, upper in enumerate(region.upper[: region.real]):
        barred = any(most == 0 and labels[column] >= 0 for most, labels in constraints.limits)
        if barred or upper == math.inf:
            continue
        most = [Fraction(float(cap)) for cap in (constraints.caps[column],) if math.isfinite(cap)]
        for row, limit in zip(constraints.rows, constraints.budgets[index], strict=True):
            if math.isfinite(limit) and row[column] > 0 and bool(np.all(row >= 0)):
                most.append(Fraction(float(limit)) / Fraction(float(row[column])))
        if most and constraints.integer[column]:
            most = [Fraction(math.floor(min(most)))]
        if not most or min(most) > Fraction(float(upper)):
            raise CertificateError("an upper bound on the spending is not proven")


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


def _prove_tree(pieces: Pieces, region: Region, root: Cell, tree: Node) -> Fraction:
    """Return the least of what the leaves show; a tree may be deep, so it is walked without recursion."""
    least: Fraction | None = None
    waiting: list[tuple[Cell, Node]] = [(root, tree)]
    while waiting:
        cell, node = waiting.pop()
        if bool(np.any(cell.stop <= cell.start)) or bool(np.any(cell.lower > cell.upper)):
            continue  # an empty cell holds no attack
        if isinstance(node, Leaf):
            value = _prove_leaf(pieces.within(cell.stop), region, cell, node)
            least = value if least is None else min(least, value)
        elif isinstance(node, Tighten):
            for ceiling in node.ceilings:
                shown = ceiling_exactly(pieces, region, cell, ceiling)
                if shown is None or math.isnan(ceiling.value) or shown > Fraction(ceiling.value):
                    raise CertificateError("a ceiling of the proof is not proven")
            waiting.append((lowered(pieces, cell, node.ceilings), node.child))
        else:
            if isinstance(node, SplitFeed):
                if not cell.start[node.piece] < node.at < cell.stop[node.piece]:
                    raise CertificateError("a split of the proof lies outside of its cell")
            elif not region.integer[node.column]:
                raise CertificateError("a split of the proof cuts a column that is not integer")
            below, above = children(cell, node)
            waiting.extend([(below, node.below), (above, node.above)])
    if least is None:
        raise CertificateError("the proof leaves no attack at all, not even none")
    return least


def _prove_leaf(pieces: Pieces, region: Region, cell: Cell, leaf: Leaf) -> Fraction:
    proven = [evaluate_exactly(pieces, region, cell, point) for point in leaf.points]
    values = [value for value in proven if value is not None]
    if not values:
        raise CertificateError("a leaf of the proof proves nothing")
    return max(values)
