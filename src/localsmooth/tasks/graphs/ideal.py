"""How far the certificates of a graph's nodes can reach, in flips of one kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Int

from localsmooth.baselines import tolerated_flips
from localsmooth.certificates import ABSTAIN, OutputVotes, certify_outputs
from localsmooth.collective import solve
from localsmooth.layout import Layout
from localsmooth.noise import SparseFlips
from localsmooth.tasks.graphs.graph import AttributedGraph
from localsmooth.tasks.graphs.problem import node_problem
from localsmooth.tasks.graphs.settings import KINDS, GraphSettings
from localsmooth.tasks.graphs.threat import attribute_caps
from localsmooth.tasks.reach import (
    KnownVotes,
    Planned,
    budget_steps,
    cheap_bounds,
    farthest,
    settled_bounds,
    unanimous,
)

__all__ = ["reach_of_node_shares", "reach_of_nodes", "with_flips"]


def reach_of_nodes(
    graph: AttributedGraph,
    layout: Layout,
    nodes: Int[np.ndarray, "nodes"],
    settings: GraphSettings,
    planned: Planned,
) -> dict[str, dict[str, float]]:
    """How far certificates can reach, by kind of flip and collective bound; empty where that cannot be told.

    Parameters
    ----------
    graph, layout, nodes
        The graph, and the nodes that are certified.
    settings
        What is proven. Of receptive fields, which every node has for itself, nothing is told.
    planned
        How often is drawn.
    """
    group = layout.outputs.labels[nodes].astype(np.int64)
    if settings.strictly_local or settings.needs_scores:
        return {}
    found: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    for each in settings.alternatives(fixed=planned.sequence is None):
        found = _reach(graph, layout, group, each, unanimous(group, planned, each), found)
    return found


def reach_of_node_shares(
    graph: AttributedGraph,
    layout: Layout,
    nodes: Int[np.ndarray, "nodes"],
    settings: GraphSettings,
    votes: OutputVotes,
) -> dict[str, float]:
    """How far certificates would reach, by kind of flip, if the shares of votes were the probabilities.

    Parameters
    ----------
    graph, layout, nodes, settings
        As for `reach_of_nodes`.
    votes
        Of all nodes.
    """
    if settings.strictly_local or settings.needs_scores:
        return {}
    group = layout.outputs.labels[nodes].astype(np.int64)
    known = KnownVotes.of_shares(votes.part(nodes))
    found = _reach(graph, layout, group, settings, known, {kind: {} for kind in KINDS})
    return {kind: max(each.values()) for kind, each in found.items() if np.isfinite(max(each.values()))}


def _reach(
    graph: AttributedGraph,
    layout: Layout,
    group: Int[np.ndarray, "nodes"],
    settings: GraphSettings,
    votes: KnownVotes,
    least: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, float]]:
    """Search by kind and bound; what is reached otherwise is returned where this does not reach farther."""
    few = settled_bounds(votes, group)
    base = certify_outputs(
        votes.part(few),
        SparseFlips(),
        layout.levels,
        group[few],
        alpha=settings.alpha,
        certificates=settings.certificates,
        simultaneous=settings.sharing,
        score_bound=settings.score_bound,
    ).base
    caps, clusters = attribute_caps(graph, layout.inputs), np.arange(layout.inputs.count)
    standing = np.flatnonzero(base.prediction != ABSTAIN)

    def certified(kind: str, name: str, budget: float) -> int:
        flips = {one: int(budget) if one == kind else 0 for one in KINDS}
        threat = settings.limits.threat(graph, layout.inputs, clusters, **flips)
        if standing.size == 0:
            return 0
        curve = solve(node_problem(base, threat, standing).problem, cheap[name])
        return max(int(curve.certified[0]) - base.discount, 0)

    def tolerated(kind: str, name: str, budget: float) -> int:
        del name
        assert settings.baseline is not None
        assert votes.known is not None
        sizes = [np.array([budget if one == kind else 0], dtype=np.int64) for one in KINDS]
        robust = tolerated_flips(settings.baseline, votes.known.lower[few], layout, caps, *sizes)
        return int(robust.sum()) - votes.known.discount

    count = certified if settings.baseline is None else tolerated
    threat = settings.limits.threat(graph, layout.inputs, clusters, additions=1, deletions=1)
    cheap, names = cheap_bounds(settings.bounds, threat.constraints(base.weights.shape[-1]))
    made: dict[str, dict[str, float]] = {}
    for kind, room in zip(KINDS, caps, strict=True):
        found = {
            name: farthest(
                lambda budget, kind=kind, name=name: count(kind, name, budget) > 0,
                whole=True,
                most=float(room.sum()),
                least=least[kind].get(name, 0.0),
            )
            for name in dict.fromkeys(names.values())
        }
        made[kind] = {name: max(found[source], least[kind].get(name, 0.0)) for name, source in names.items()}
    return made


def with_flips(settings: GraphSettings, reach: Mapping[str, Mapping[str, float]]) -> GraphSettings:
    """Propose budgets of the kinds of which none are named.

    Raises
    ------
    InvalidInputError
        If there are none to propose.
    """
    found = {
        kind: tuple(int(size) for size in budget_steps(reach.get(kind, {}), whole=True, field=kind))
        for kind in KINDS
        if not getattr(settings, kind)
    }
    return replace(settings, **found) if found else settings
