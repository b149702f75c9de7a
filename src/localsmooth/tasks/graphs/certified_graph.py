"""What is proven of a graph's nodes: base certificates by every rule, and counts at pairs of budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Int

from localsmooth.certificates import BaseCertificates, CertifiedOutputs
from localsmooth.collective import Bound, Exact, solve
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Partition
from localsmooth.results import CertifiedCurve
from localsmooth.tasks.graphs.certified_nodes import bounded_nodes
from localsmooth.tasks.graphs.problem import equal_flips, node_problem
from localsmooth.tasks.graphs.reach import broken_nodes
from localsmooth.tasks.graphs.receptive import receptive_fields, strictly_local
from localsmooth.tasks.graphs.settings import GraphSettings
from localsmooth.tasks.graphs.store import SampledGraph
from localsmooth.tasks.stakes import Alike, Stakes, alike
from localsmooth.tasks.ways import best_curves, certified_ways

__all__ = [
    "CertifiedGraph",
    "CertifiedTarget",
    "Rows",
    "certified_graph",
    "certified_target",
    "require_depth",
    "solved_together",
]

Rows = tuple[Int[np.ndarray, "pairs"], Int[np.ndarray, "pairs"]]
"""ε⁺ and ε⁻ of every pair of budgets."""


@dataclass(frozen=True, eq=False)
class CertifiedGraph:
    """Base certificates of the certified nodes on the input groups they speak of, and the bounds behind them."""

    base: BaseCertificates
    inputs: Partition
    clusters: Int[np.ndarray, "input_groups"]
    lower: np.ndarray
    alone: CertifiedOutputs
    """What may be said of single nodes."""


@dataclass(frozen=True, eq=False)
class CertifiedTarget:
    """What is proven of one target.

    Parameters
    ----------
    curves
        By target and bound.
    stakes
        What the target makes of the nodes that do not abstain.
    certified
        Certificates by the first choice of rule.
    """

    curves: dict[tuple[str, str], CertifiedCurve]
    stakes: Stakes
    certified: CertifiedGraph


def certified_target(
    sampled: SampledGraph,
    settings: GraphSettings,
    target: str,
    stakes: Stakes,
    rows: Rows,
    made: dict[int, CertifiedGraph],
    tell: Callable[[str], None] | None = None,
) -> CertifiedTarget:
    """Certify one target by every bound, at pairs of budgets.

    Parameters
    ----------
    sampled
        The graph with its tallies.
    settings
        What to prove, by a rule that is settled.
    target, stakes
        Its name, and what it makes of the nodes if every candidate stands.
    rows
        From `budget_grid`.
    made
        Certificates that serve every target, by the number of their way; filled.
    tell
        Told how far the search for exact answers is.
    """
    # Bounds on counts are made for each target, on one event that serves them all.
    ways = certified_ways(settings.ways(), alike(stakes), partial(certified_graph, sampled), made)
    left = [stakes.left_by(each.base.prediction) for each in ways]

    def solved(way: int, name: str, bound: Bound) -> CertifiedCurve:
        return _solved(sampled, ways[way], settings, left[way], name, bound, rows, tell)

    found = best_curves(settings.bounds, len(ways), solved)
    curves = {(target, bound): curve for bound, curve in found.items()}
    return CertifiedTarget(curves, max(left, key=lambda each: each.stake.most), ways[0])


def certified_graph(sampled: SampledGraph, settings: GraphSettings, outputs: Alike) -> CertifiedGraph:
    """Certificates of the nodes, where rules that bound counts know which nodes are alike."""
    bounded = bounded_nodes(
        sampled.votes,
        sampled.layout,
        sampled.nodes,
        alpha=settings.alpha,
        certificates=settings.certificates,
        score_bound=settings.score_bound,
        simultaneous=settings.sharing,
        kind=outputs.kind,
        worth=outputs.worth,
    )
    inputs = sampled.layout.inputs
    if not settings.strictly_local:
        return CertifiedGraph(bounded.base, inputs, np.arange(inputs.count), bounded.lower, bounded.shown)
    fields = receptive_fields(sampled.graph.adjacency, sampled.nodes, require_depth(sampled.depth))
    local = strictly_local(bounded.base, inputs, fields)
    first = np.unique(local.inputs.labels, return_index=True)[1]
    alone = CertifiedOutputs(local.base, bounded.lower)
    return CertifiedGraph(local.base, local.inputs, inputs.labels[first].astype(np.int64), bounded.lower, alone)


def require_depth(depth: int | None) -> int:
    """Return how far a classifier sees.

    Raises
    ------
    InvalidInputError
        If that is not known.
    """
    if depth is None:
        raise InvalidInputError(
            "strictly_local", "it is not known how far the classifier sees", "Use a GCN, or pass the module's depth"
        )
    return depth


def _solved(
    sampled: SampledGraph,
    certified: CertifiedGraph,
    settings: GraphSettings,
    stakes: Stakes,
    name: str,
    bound: Bound,
    rows: Rows,
    tell: Callable[[str], None] | None,
) -> CertifiedCurve:
    """What a collective bound proves of some nodes at all pairs of budgets."""
    base, graph, count = certified.base, sampled.graph, rows[0].size
    mask, kind = stakes.qualify, np.int64 if stakes.counts else np.float64
    lower, upper, counts = np.zeros(count), np.zeros(count), np.zeros(count, dtype=kind)
    attack = np.zeros((count, 2, sampled.layout.inputs.count))
    falls = np.zeros((count, graph.nodes), dtype=np.bool_)
    for part in solved_together(base, rows) if mask.any() else ():
        threat = settings.limits.threat(
            graph, certified.inputs, certified.clusters, additions=rows[0][part], deletions=rows[1][part]
        )
        asked = node_problem(base, threat, np.flatnonzero(mask), stakes.problem_value)
        solved = solve(
            asked.problem,
            _share(bound, part.size / count),
            progress=tell and (lambda step: tell(f"{name}, {step}")),
        )
        counts[part] = stakes.less(solved.certified, base.discount, base.spare)
        lower[part] = stakes.less(solved.lower, base.discount, base.spare)
        upper[part] = solved.upper
        for row, answer in zip(part, solved, strict=True):
            spending = asked.spread(answer.attack)
            for kind, spent in enumerate(spending.reshape(2, -1)):
                np.add.at(attack[row, kind], certified.clusters, spent)
            falls[row, sampled.nodes] = mask & broken_nodes(certified.alone.base, spending)
    for values in (counts, lower):
        # What holds against more flips holds against fewer.
        backwards = values.reshape(len(settings.additions), -1)[::-1, ::-1]
        np.maximum.accumulate(np.maximum.accumulate(backwards, axis=0), axis=1, out=backwards)
    return CertifiedCurve(counts, lower, upper, attack, falls)


def solved_together(base: BaseCertificates, rows: Rows) -> list[Int[np.ndarray, "_"]]:
    """Pairs of budgets that are solved together: each kind alone where counting its flips says everything."""
    groups = base.weights.shape[-1] // 2
    alone = [np.flatnonzero(other == 0) for other in rows]
    kinds = [np.arange(groups, 2 * groups), np.arange(groups)]
    parts = [part for part, columns in zip(alone, kinds, strict=True) if equal_flips(base, columns)]
    solved = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    rest = np.setdiff1d(np.arange(rows[0].size), solved)
    return [part for part in (*parts, rest) if part.size]


def _share(bound: Bound, share: float) -> Bound:
    """The bound with its share of the time that it may take for all pairs."""
    if not isinstance(bound, Exact) or bound.time_limit is None:
        return bound
    return replace(bound, time_limit=float(bound.time_limit) * share)
