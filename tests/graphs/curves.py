"""Certified counts of nodes by hand, from tallies to a curve, for tests that vary what stands between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from localsmooth.bounds import Bonferroni, EmpiricalBernstein
from localsmooth.certificates import ABSTAIN, BaseCertificates, SparseScores
from localsmooth.collective import Bound, Threat, solve
from localsmooth.layout import Layout
from localsmooth.sampling import ItemTally
from localsmooth.tasks.graphs.certified_nodes import bounded_nodes
from localsmooth.tasks.graphs.problem import node_problem
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.votes import collected_votes

__all__ = ["NodeCurve", "certify_nodes", "node_certificates"]


def node_certificates(
    tally: ItemTally, layout: Layout, nodes: np.ndarray, *, labels: np.ndarray | None = None, **asked: Any
) -> BaseCertificates:
    """Base certificates of some nodes: scores, Bernstein and Bonferroni unless something else is asked for."""
    bins = tally.further.get("scores.bins")
    counting = None if bins is None else ScoreCounting("histogram", bins.shape[1] - 1)
    usual = {"certificates": (SparseScores(),), "score_bound": EmpiricalBernstein(), "simultaneous": Bonferroni()}
    kind = None if labels is None else (tally.candidate[nodes] == labels).astype(np.int64)
    return bounded_nodes(collected_votes(tally, counting, None), layout, nodes, kind=kind, **(usual | asked)).base


@dataclass(frozen=True, eq=False)
class NodeCurve:
    """Certified counts of all nodes that do not abstain and of those that are right, and the worst spendings."""

    robust: np.ndarray
    correct: np.ndarray
    attacks: np.ndarray


def certify_nodes(base: BaseCertificates, labels: np.ndarray, threat: Threat, bound: Bound | None = None) -> NodeCurve:
    """Count the nodes that survive each budget of a threat."""
    size = base.weights.shape[-1]
    budgets = len(threat.constraints(size).budgets)
    attacks = np.zeros((budgets, size))
    counts: list[np.ndarray] = []
    stands = base.prediction != ABSTAIN
    for mask in (stands, stands & (base.prediction == labels)):
        counts.append(np.zeros(budgets, np.int64))
        if mask.any():
            asked = node_problem(base, threat, np.flatnonzero(mask))
            curve = solve(asked.problem, bound)
            counts[-1] = np.maximum(curve.certified - base.discount, 0)
            attacks = np.stack([asked.spread(answer.attack) for answer in curve])
    # The correct nodes are some of all that are certified: their count holds for all of them, too.
    return NodeCurve(np.maximum(*counts), counts[1], attacks)
