"""From tallies to certified nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from localsmooth.bounds import Bonferroni, EmpiricalBernstein, ScoreBound, Sharing
from localsmooth.certificates import (
    ABSTAIN,
    BaseCertificates,
    CertifiedOutputs,
    OutputVotes,
    ScoreCertificate,
    SparseScores,
    VoteCertificate,
    certify_outputs,
)
from localsmooth.collective import Bound, Threat, solve
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.metrics import average_certifiable_radius
from localsmooth.noise import SparseFlips
from localsmooth.sampling import ItemTally
from localsmooth.tasks.graphs.node_problem import node_problem
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.votes import collected_votes

__all__ = ["NodeCurve", "bounded_nodes", "certify_nodes", "node_certificates"]


def node_certificates(
    tally: ItemTally,
    layout: Layout,
    nodes: Int[np.ndarray, "nodes"],
    *,
    alpha: float,
    certificates: Sequence[VoteCertificate | ScoreCertificate] = (),
    score_bound: ScoreBound | None = None,
    simultaneous: Sharing | None = None,
    labels: Int[np.ndarray, "nodes"] | None = None,
) -> BaseCertificates:
    """Base certificates of some nodes that hold together with probability 1 − α.

    Parameters
    ----------
    tally
        Of all nodes.
    layout
        The one that was sampled from.
    nodes
        Nodes that are certified, chosen without looking at the tally: the fewer, the stronger each one.
    alpha
        Probability with which any of the statistics may be wrong.
    certificates
        One or more; votes and scores share α equally, and each node relies on one of the two, whichever certifies
        more (`BaseCertificates.relies_on`). Scores by default.
    score_bound
        Bound on scores; empirical Bernstein by default.
    simultaneous
        How the nodes share α; Bonferroni by default. A rule that waits for the candidate stage is completed by what
        that stage saw of these nodes.
    labels
        True class of each of these nodes, -1 where unknown: needed by rules that bound counts, which have to know
        beforehand which nodes will be counted together.

    Raises
    ------
    InvalidInputError
        If there is no node, a strategy cannot bound scores, or it needs the votes of the candidate stage and the
        tally has none.
    """
    bins = tally.further.get("scores.bins")
    counting = None if bins is None else ScoreCounting("histogram", bins.shape[1] - 1)
    return bounded_nodes(
        collected_votes(tally, counting, None),
        layout,
        nodes,
        alpha=alpha,
        certificates=certificates or (SparseScores(),),
        score_bound=EmpiricalBernstein() if score_bound is None else score_bound,
        simultaneous=Bonferroni() if simultaneous is None else simultaneous,
        kind=None if labels is None else (tally.candidate[nodes] == labels).astype(np.int64),
    ).base


def bounded_nodes(
    votes: OutputVotes,
    layout: Layout,
    nodes: Int[np.ndarray, "nodes"],
    *,
    alpha: float,
    certificates: Sequence[VoteCertificate | ScoreCertificate],
    score_bound: ScoreBound,
    simultaneous: Sharing,
    kind: Int[np.ndarray, "nodes"] | None = None,
    worth: Float[np.ndarray, "nodes"] | None = None,
) -> CertifiedOutputs:
    """Do what `node_certificates` does, and return the confidence bounds as well.

    Parameters
    ----------
    votes, layout, nodes, alpha, certificates, score_bound, simultaneous
        As in `node_certificates`.
    kind, worth
        Which of these nodes count the same, and how much, as for `certify_outputs`.

    Raises
    ------
    InvalidInputError
        As in `node_certificates`.
    """
    if nodes.size == 0:
        raise InvalidInputError("nodes", "there is no node to certify", "Pass at least one node")
    if votes.scores is None and any(isinstance(certificate, ScoreCertificate) for certificate in certificates):
        raise InvalidInputError("certificates", "scores were not counted", "Use votes, or sample with node_counters()")
    return certify_outputs(
        votes.part(nodes),
        SparseFlips(),
        layout.levels,
        layout.outputs.labels[nodes].astype(np.int64),
        alpha=alpha,
        certificates=certificates,
        simultaneous=simultaneous,
        score_bound=score_bound,
        kind=kind,
        worth=worth,
    )


@dataclass(frozen=True, eq=False)
class NodeCurve:
    """How many nodes are certified, for each budget of the threat.

    Parameters
    ----------
    robust, correct
        Certified counts: of all nodes that do not abstain, and of those predicted correctly.
    total, labeled
        Number of nodes that count, and of those with a known label.
    attacks
        The worst spending found against the correct nodes, per input column.
    """

    robust: Int[np.ndarray, "budgets"]
    correct: Int[np.ndarray, "budgets"]
    total: int
    labeled: int
    attacks: Float[np.ndarray, "budgets columns"]

    @property
    def ratio(self) -> Float[np.ndarray, "budgets"]:
        """Certified ratio."""
        return self.robust / self.total

    @property
    def accuracy(self) -> Float[np.ndarray, "budgets"]:
        """Certified accuracy; abstentions are wrong."""
        return self.correct / max(self.labeled, 1)

    def acr(self, budgets: Sequence[int]) -> float:
        """Average certifiable radius of the certified accuracy, ε_n = the budgets given (a lower Riemann sum)."""
        return average_certifiable_radius(np.asarray(budgets, dtype=np.float64), self.accuracy).value


def certify_nodes(
    base: BaseCertificates,
    labels: Int[np.ndarray, "nodes"],
    threat: Threat,
    bound: Bound | None = None,
) -> NodeCurve:
    """Certify the nodes of `base` collectively.

    Parameters
    ----------
    base
        From `node_certificates`.
    labels
        True class of each of its nodes, -1 where unknown.
    threat
        From `flip_threat`, possibly with further threats.
    bound
        Collective bound; the envelope by default.

    Raises
    ------
    InvalidInputError
        If there is not one label per node.
    """
    if labels.shape != base.prediction.shape:
        raise InvalidInputError("labels", f"{labels.size} for {base.prediction.size} nodes", "Pass one per node")
    robust = np.flatnonzero(base.prediction != ABSTAIN)
    correct = np.flatnonzero((base.prediction != ABSTAIN) & (base.prediction == labels))
    counts: list[np.ndarray] = []
    budgets = len(threat.constraints(base.weights.shape[-1]).budgets)
    attacks = np.zeros((budgets, base.weights.shape[-1]))
    for targets in (robust, correct):
        if targets.size == 0:
            counts.append(np.zeros(budgets, np.int64))
            continue
        asked = node_problem(base, threat, targets)
        curve = solve(asked.problem, bound)
        counts.append(np.maximum(curve.certified - base.discount, 0))
        attacks = np.stack([asked.spread(answer.attack) for answer in curve])
    # The correct nodes are some of all that are certified: their count holds for all of them, too.
    return NodeCurve(np.maximum(*counts), counts[1], base.prediction.size, int((labels >= 0).sum()), attacks)
