"""Which vectors of flips an output tolerates, and linear inequalities that promise no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize

from localsmooth.certificates.flip_classes import FlipClasses
from localsmooth.certificates.likelihood_ratio import LikelihoodRatioLaw, flip_law, largest_robust_count, no_flip_law

__all__ = ["Frontier", "explore"]


@dataclass(frozen=True, eq=False)
class Frontier:
    """Every vector of flips per class is at least one of `corners`, or robust for all q above `highest`'s reach.

    Parameters
    ----------
    corners
        Vectors of flips; each stands for itself and for everything at least as large in every class.
    smallest
        For each corner, outputs with q above this value tolerate the vectors that the corner alone stands for. An
        output with lower bound q is promised nothing at the corners with `smallest` ≥ q, and everything that is not
        at least one of those.
    """

    corners: Int[np.ndarray, "corners classes"]
    smallest: Float[np.ndarray, "corners"]

    def fit(self, q: float, importance: Float[np.ndarray, "classes"]) -> Float[np.ndarray, "classes"]:
        """Weights w that describe the vectors tolerated at q well: w·k ≥ 1 at every corner not promised.

        Any w is valid with the thresholds of `eta`. These minimise the sum over the classes of importance times w
        times the number of flips at which the class on its own is no longer tolerated.

        Parameters
        ----------
        q
            Lower bound to fit.
        importance
            Positive factors per class.
        """
        refused = self.corners[self.smallest >= q].astype(np.float64)
        alone = np.count_nonzero(refused, axis=1) == 1
        intercepts = np.where(refused[alone] > 0, refused[alone], np.inf).min(axis=0)
        solution = optimize.linprog(importance * intercepts, A_ub=-refused, b_ub=-np.ones(len(refused)), method="highs")
        if solution.x is None:
            return 1 / intercepts
        return np.maximum(np.asarray(solution.x, dtype=np.float64), 1 / intercepts)

    def eta(self, weights: Float[np.ndarray, "classes"], q: Float[np.ndarray, "outputs"]) -> Float[np.ndarray, "..."]:
        """Largest η such that every vector with w·k < η is tolerated, rounded down; 0 where q ≤ 1/2."""
        order = np.argsort(-self.smallest, kind="stable")
        nearest = np.minimum.accumulate((self.corners[order] @ weights) * (1 - 1e-12))
        # Number of corners with smallest ≥ q; there is always one, since no corner is beyond every q.
        refused = np.searchsorted(-self.smallest[order], -q, side="right")
        return np.where(q > 0.5, nearest[np.maximum(refused, 1) - 1], 0.0)


class _Search:
    """Depth-first walk over a lattice of vectors, one class after the other."""

    def __init__(self, classes: FlipClasses, highest: float, axes: list[list[int]], atoms: int, most: int) -> None:
        self.highest = highest
        self.axes = axes
        self.atoms = atoms
        self.most = most
        self.complete = True
        self.corners: list[list[int]] = []
        self.smallest: list[float] = []
        # Going up an axis multiplies by the law of one step at a time.
        self.steps = [
            flip_law(clean, perturbed, axis[0])
            for clean, perturbed, axis in zip(classes.clean.tolist(), classes.perturbed.tolist(), axes, strict=True)
        ]
        self._walk(0, no_flip_law(), [0] * len(axes))

    def frontier(self) -> Frontier:
        return Frontier(np.array(self.corners, dtype=np.int64), np.array(self.smallest))

    def _walk(self, first: int, law: LikelihoodRatioLaw, corner: list[int]) -> None:
        for axis in range(first, len(self.axes)):
            joint, lower = law, 1
            for count in self.axes[axis]:
                here = [*corner[:axis], lower, *corner[axis + 1 :]]
                lower = count + 1
                if len(self.corners) >= self.most:
                    self.complete = False
                    self._note(here, np.inf)
                    break
                joint = joint.times(self.steps[axis], self.atoms)
                smallest = joint.smallest_robust_probability()
                self._note(here, smallest)
                if not smallest < self.highest:
                    break  # all larger vectors are at least this corner
                self._walk(axis + 1, joint, here)
            else:
                self._note([*corner[:axis], lower, *corner[axis + 1 :]], np.inf)

    def _note(self, corner: list[int], smallest: float) -> None:
        self.corners.append(corner)
        self.smallest.append(smallest)


def explore(classes: FlipClasses, highest: float, *, vectors: int, horizon: int, atoms: int) -> Frontier:
    """Compute which vectors of flips are tolerated, for all lower bounds q up to `highest`.

    Counts are looked at in steps, in classes that tolerate many flips; the smallest vector of a step then answers
    with the certificate of the largest. What is not looked at counts as not tolerated.

    Parameters
    ----------
    classes
        At least one class of flips.
    highest
        Largest lower bound of interest.
    vectors
        Number of vectors that may be looked at; the steps are the finest that keep to it.
    horizon
        Largest count per class that is looked at.
    atoms
        As in `product_law`.
    """
    last = [
        min(largest_robust_count(clean, perturbed, highest, horizon, atoms) + 1, horizon)
        for clean, perturbed in zip(classes.clean.tolist(), classes.perturbed.tolist(), strict=True)
    ]
    best: Frontier | None = None
    resolution = 2
    while True:
        steps = [-(-count // resolution) for count in last]
        axes = [list(range(step, count + step, step)) for step, count in zip(steps, last, strict=True)]
        search = _Search(classes, highest, axes, atoms, vectors)
        if best is None or search.complete:
            best = search.frontier()
        if not search.complete or max(steps) == 1:
            return best
        # Aim for the vectors that are left, from how fast their number grew.
        growth = max(1.2, min(2.0, 0.9 * (vectors / len(search.corners)) ** (1 / len(last))))
        resolution = max(resolution + 1, int(resolution * growth))
