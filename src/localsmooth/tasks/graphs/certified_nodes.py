"""From votes to certified nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from localsmooth.bounds import ScoreBound, Sharing
from localsmooth.certificates import CertifiedOutputs, OutputVotes, ScoreCertificate, VoteCertificate, certify_outputs
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import SparseFlips
from localsmooth.tasks.asked_targets import stakes_of
from localsmooth.tasks.graphs.graph import UNLABELED
from localsmooth.tasks.graphs.store import SampledGraph
from localsmooth.tasks.stakes import Predicted, Stakes
from localsmooth.tasks.targets import Target

__all__ = ["bounded_nodes", "known_labels", "node_stakes"]


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
    """Base certificates of some nodes that hold together with probability 1 − α, and the confidence bounds behind them.

    Parameters
    ----------
    votes
        Of all nodes.
    layout
        The one that was sampled from.
    nodes
        Nodes that are certified, chosen without looking at the votes: the fewer, the stronger each one.
    alpha
        Probability with which any of the statistics may be wrong.
    certificates
        One or more; votes and scores share α equally, and each node relies on one of the two, whichever certifies
        more (`BaseCertificates.relies_on`).
    score_bound
        Bound on scores.
    simultaneous
        How the nodes share α. A rule that waits for the candidate stage is completed by what that stage saw of these
        nodes.
    kind, worth
        Which of these nodes count the same, and how much, as for `certify_outputs`.

    Raises
    ------
    InvalidInputError
        If there is no node, a strategy cannot bound scores, or it needs the votes of the candidate stage and there
        are none.
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


def node_stakes(sampled: SampledGraph, targets: Sequence[Target], class_names: Sequence[str]) -> Mapping[str, Stakes]:
    """What each target makes of the certified nodes if every candidate stands.

    Parameters
    ----------
    sampled
        The graph with its tallies.
    targets
        What is counted.
    class_names
        Name of each class.
    """
    nodes = sampled.nodes
    known = known_labels(sampled)
    clean = None if sampled.votes.clean is None else sampled.votes.clean[nodes]
    candidate = sampled.votes.candidate[nodes].astype(np.int64)
    return stakes_of(targets, Predicted(candidate, known, clean, None, class_names))


def known_labels(sampled: SampledGraph) -> Int[np.ndarray, "nodes"] | None:
    """Labels of the certified nodes; None unless all have one."""
    truth = sampled.graph.labels[sampled.nodes]
    return truth if bool((truth != UNLABELED).all()) else None
