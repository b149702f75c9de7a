"""The collective problem of certified nodes, in its smallest form.

Where the adversary has one kind of flip only and all bits that an output sees weigh the same (one noise level, strictly
local or not), an output falls exactly when so many bits in its field are flipped. All its certificates then become one
whole number, the largest (as in Schuchardt et al. 2021, where base certificates are radii). That is the same problem,
smaller by the number of certificates and kinds of flips, and its relaxations are tighter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.certificates import BaseCertificates
from localsmooth.collective import UNIT, Constraints, Problem, Threat

__all__ = ["NodeProblem", "equal_flips", "node_problem"]

_MOST = 2.0**53


@dataclass(frozen=True, eq=False)
class NodeProblem:
    """A problem on some of the columns of the base certificates; the adversary has nothing to spend in the others."""

    problem: Problem
    columns: Int[np.ndarray, "live"]
    size: int

    def spread(self, attack: Float[np.ndarray, "live"]) -> Float[np.ndarray, "columns"]:
        """Return an attack on the problem as a spending in every column of the base certificates."""
        spending = np.zeros(self.size)
        spending[self.columns] = attack
        return spending


@dataclass(frozen=True)
class _Kept(Threat):
    """A threat on those columns in which it leaves the adversary anything to spend."""

    threat: Threat
    kept: Int[np.ndarray, "live"]
    size: int

    def constraints(self, columns: int) -> Constraints:
        whole, kept = self.threat.constraints(self.size), self.kept
        return replace(
            whole,
            rows=whole.rows[:, kept],
            caps=whole.caps[kept],
            integer=whole.integer[kept],
            limits=tuple((most, labels[kept]) for most, labels in whole.limits),
        )


def node_problem(
    base: BaseCertificates,
    threat: Threat,
    targets: Int[np.ndarray, "targets"],
    value: Float[np.ndarray, "nodes"] | None = None,
) -> NodeProblem:
    """Return the collective problem of some of the certified nodes, counting flips where that says everything.

    Parameters
    ----------
    base
        Certificates of the nodes.
    threat
        On the columns of the certificates.
    targets
        Positions of the nodes that count.
    value
        What each node counts, if not 1.

    Raises
    ------
    InvalidInputError
        If the certificates are true of counts only, and not of the count of these nodes.
    """
    chosen = np.zeros(base.group.size)
    chosen[targets] = 1.0 if value is None else value[targets]
    base.require_whole(chosen)
    size = base.weights.shape[-1]
    constraints = threat.constraints(size)
    columns = np.flatnonzero(_usable(constraints))
    if columns.size and bool(constraints.integer[columns].all()) and equal_flips(base, columns):
        weights, eta = _counted(base, columns)
        kept = _Kept(threat, columns, size)
        return NodeProblem(Problem(weights, eta, base.group, kept, targets, value), columns, size)
    whole = Problem(base.weights, base.eta, base.group, threat, targets, value)
    return NodeProblem(whole, np.arange(size), size)


def _usable(constraints: Constraints) -> Bool[np.ndarray, "columns"]:
    """Where some budget leaves anything to spend."""
    spent = (constraints.budgets == 0) & np.all(constraints.rows >= 0, axis=1)
    barred = spent.astype(np.int64) @ (constraints.rows > 0).astype(np.int64) > 0
    return (constraints.caps > 0) & ~barred.all(axis=0)


def equal_flips(base: BaseCertificates, columns: Int[np.ndarray, "live"]) -> bool:
    """Whether in every row of each certificate the weights in these columns are 0 or all the same.

    Certificates must agree on which weights are 0, save those that are blind to all of these columns.
    """
    weights = base.weights.reshape(-1, *base.weights.shape[-2:])[..., columns]
    positive = weights > 0
    seen = positive.any(axis=0)
    largest = weights.max(axis=-1, initial=0.0)
    same = bool(np.all(weights[positive] == np.broadcast_to(largest[..., None], weights.shape)[positive]))
    return same and bool(np.all((positive == seen) | (largest == 0)[..., None]))


def _counted(
    base: BaseCertificates, columns: Int[np.ndarray, "live"]
) -> tuple[Float[np.ndarray, "groups live"], Float[np.ndarray, "outputs"]]:
    """Weights 0 or 1, and the number of flips at which each output falls, `inf` for never."""
    weights = base.weights.reshape(-1, *base.weights.shape[-2:])[..., columns]
    eta = base.eta.reshape(-1, base.group.size)
    largest = weights.max(axis=-1, initial=0.0)[:, base.group]
    flips = np.where(eta > 0, np.where(largest > 0, _least_flips(eta, largest), np.inf), 0.0)
    seen: np.ndarray = np.any(weights > 0, axis=0)
    return seen.astype(np.float64), flips.max(axis=0)


def _least_flips(eta: Float[np.ndarray, "*shape"], weight: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The least whole number m ≥ 1 with m · weight ≥ η, where that is below 2⁵³; never more."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        ratio = eta / weight
        flips = np.fmin(np.maximum(np.ceil(ratio * (1 - 4 * UNIT)), 1.0), _MOST)
        # On the edge only exact arithmetic tells whether it takes one flip more.
        close = (ratio >= 1) & (flips <= ratio * (1 + 4 * UNIT)) & (flips < _MOST)
    for place in zip(*np.nonzero(close), strict=True):
        exact = Fraction(float(weight[place])) * int(flips[place])
        flips[place] += exact < Fraction(float(eta[place]))
    return flips
