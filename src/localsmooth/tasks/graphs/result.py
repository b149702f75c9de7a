"""From a sampled graph and settings to the labelled result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from localsmooth.baselines import tolerated_flips, worst_spending
from localsmooth.bounds import Sharing
from localsmooth.certificates import ABSTAIN, BaseCertificates, Basis, CertifiedOutputs, certified_radius
from localsmooth.collective import Bound, Exact, solve
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Partition
from localsmooth.results import (
    CertifiedCurve,
    ItemResult,
    RunInfo,
    build_dataset,
    certifies_beyond,
    consistent,
    finite_reach,
)
from localsmooth.runs import RunIdentity
from localsmooth.tasks.description import run_facts
from localsmooth.tasks.graphs.certified_nodes import bounded_nodes, node_stakes
from localsmooth.tasks.graphs.graph import UNLABELED
from localsmooth.tasks.graphs.ideal import reach_of_node_shares, reach_of_nodes, with_flips
from localsmooth.tasks.graphs.node_problem import equal_flips, node_problem
from localsmooth.tasks.graphs.reach import broken_nodes, robust_alone
from localsmooth.tasks.graphs.receptive import receptive_fields, strictly_local
from localsmooth.tasks.graphs.settings import GraphSettings
from localsmooth.tasks.graphs.store import SampledGraph
from localsmooth.tasks.graphs.threat import attribute_caps, budget_grid
from localsmooth.tasks.reach import Planned
from localsmooth.tasks.record import RunRecord
from localsmooth.tasks.stakes import Alike, Stakes, alike
from localsmooth.tasks.targets import left_out_words
from localsmooth.tasks.ways import best_curves, certified_ways

__all__ = [
    "CertifiedTarget",
    "certified_graph",
    "certified_target",
    "graph_facts",
    "graph_result",
    "require_depth",
    "settle_nodes",
    "solved_together",
]

Rows = tuple[Int[np.ndarray, "pairs"], Int[np.ndarray, "pairs"]]
"""ε⁺ and ε⁻ of every pair of budgets."""


@dataclass(frozen=True, eq=False)
class _Certified:
    """Base certificates of the certified nodes on the input groups they speak of, and the bounds behind them."""

    base: BaseCertificates
    inputs: Partition
    clusters: Int[np.ndarray, "input_groups"]
    lower: np.ndarray
    alone: CertifiedOutputs
    """What may be said of single nodes."""


def graph_result(
    sampled: SampledGraph,
    settings: GraphSettings,
    record: RunRecord,
    configuration: RunIdentity | None = None,
    tell: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Certify every pair of budgets (ε⁺, ε⁻), additions alone and deletions alone among them, and build the data set.

    Parameters
    ----------
    sampled
        The graph with its tallies.
    settings
        What to prove.
    record
        How the tallies came about.
    configuration
        What they depend on.
    tell
        Told how far the search for exact answers is.

    Raises
    ------
    InvalidInputError
        If strictly local certificates are asked of a classifier of unknown depth.
    """
    nodes, graph = sampled.nodes, sampled.graph
    planned = Planned(record.n_candidate, record.n_bound, record.sequence)
    reach = reach_of_nodes(graph, sampled.layout, nodes, settings, planned)
    settings = with_flips(settings, reach)
    asked, settings = settings, settle_nodes(sampled, settings, record)
    labelled = bool((graph.labels[nodes] != UNLABELED).all())
    standing = node_stakes(sampled, settings.targets, record.class_names)
    weighed: list[str] = []
    if settings.baseline is not None:  # which counts
        weighed = [name for name, stakes in standing.items() if not stakes.counts]
        standing = {name: stakes for name, stakes in standing.items() if stakes.counts}
    name = record.item_names[0]
    rows = budget_grid(settings.additions, settings.deletions)
    say = tell and (lambda text: tell(f"{name}: {text}"))
    certified: _Certified | None = None
    made: dict[int, _Certified] = {}
    valued: dict[str, Stakes] = {}
    curves: dict[tuple[str, str], CertifiedCurve] = {}
    for target, stakes in standing.items():
        if settings.baseline is not None:
            certified = certified_graph(sampled, settings, alike(stakes))
            valued[target] = stakes.left_by(certified.base.prediction)
            certified.base.require_whole(valued[target].values)
            kept = _tolerated(sampled, certified, settings, certified.lower)
            counted = _counted(sampled, certified, valued[target].qualify, kept, rows)
            curves |= {(target, bound): counted for bound in settings.bounds}
            continue
        found = certified_target(sampled, settings, target, stakes, rows, made, say)
        curves |= found.curves
        valued[target] = found.stakes
        certified = found.certified
    assert certified is not None
    each = certified.alone
    if settings.baseline is None:
        alone = robust_alone(each.base, attribute_caps(graph, certified.inputs), *_sizes(settings))
    else:
        alone = _tolerated(sampled, certified, settings, each.lower)
    alone = alone.reshape(-1, nodes.size) & (each.base.prediction != ABSTAIN)
    item = replace(
        _item(sampled, certified, name, curves, alone),
        label=graph.labels if labelled else None,
        clean=sampled.votes.clean,
        stakes={target: stakes.stake for target, stakes in valued.items()},
    )
    beyond = certifies_beyond([item], (rows[0] > 0) | (rows[1] > 0))
    limit = {} if beyond else reach_of_node_shares(graph, sampled.layout, nodes, settings, sampled.votes)
    run = graph_facts(sampled, asked, settings.sharing, record, configuration, reach=finite_reach(reach), limit=limit)
    run = replace(run, assumptions=(*run.assumptions, *left_out_words(settings.targets, set(standing), weighed)))
    return build_dataset([consistent(item)], run)


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
    certified: _Certified


def certified_target(
    sampled: SampledGraph,
    settings: GraphSettings,
    target: str,
    stakes: Stakes,
    rows: Rows,
    made: dict[int, _Certified],
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


def graph_facts(
    sampled: SampledGraph,
    settings: GraphSettings,
    rule: Sharing,
    record: RunRecord,
    configuration: RunIdentity | None,
    **more: Any,
) -> RunInfo:
    """What a result says of its run, of the rule that was chosen, and other fields of `RunInfo` that are known."""
    return run_facts(
        record,
        settings,
        [(sampled.layout, sampled.votes)],
        [rule],
        configuration,
        _assumptions(sampled, settings.common([rule])),
        outputs="nodes",
        budgets={kind: tuple(map(float, getattr(settings, kind))) for kind in ("additions", "deletions")},
        norm="l0",
        threat=f"perturbation that adds at most ε⁺ attribute bits and deletes at most ε⁻{settings.limits.words()}",
        **more,
    )


def settle_nodes(sampled: SampledGraph, settings: GraphSettings, record: RunRecord) -> GraphSettings:
    """Choose a rule for the nodes, where that is left to the candidate stage.

    Parameters
    ----------
    sampled, settings, record
        As for `graph_result`.
    """
    nodes = sampled.nodes
    return settings.settled(sampled.votes.part(nodes), sampled.layout.outputs.labels[nodes], record.extended)


def _sizes(settings: GraphSettings) -> tuple[Int[np.ndarray, "additions"], Int[np.ndarray, "deletions"]]:
    return np.array(settings.additions, dtype=np.int64), np.array(settings.deletions, dtype=np.int64)


def _tolerated(
    sampled: SampledGraph, certified: _Certified, settings: GraphSettings, lower: Float[np.ndarray, "nodes"]
) -> Bool[np.ndarray, "pairs nodes"]:
    """Which nodes tolerate every mix of flips of each pair, by the baseline."""
    assert settings.baseline is not None
    caps = attribute_caps(sampled.graph, certified.inputs)
    made = tolerated_flips(settings.baseline, lower, sampled.layout, caps, *_sizes(settings))
    return made.reshape(-1, sampled.nodes.size)


def certified_graph(sampled: SampledGraph, settings: GraphSettings, outputs: Alike) -> _Certified:
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
        return _Certified(bounded.base, inputs, np.arange(inputs.count), bounded.lower, bounded.shown)
    fields = receptive_fields(sampled.graph.adjacency, sampled.nodes, require_depth(sampled.depth))
    local = strictly_local(bounded.base, inputs, fields)
    first = np.unique(local.inputs.labels, return_index=True)[1]
    alone = CertifiedOutputs(local.base, bounded.lower)
    return _Certified(local.base, local.inputs, inputs.labels[first].astype(np.int64), bounded.lower, alone)


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
    certified: _Certified,
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


def _counted(
    sampled: SampledGraph,
    certified: _Certified,
    targets: Bool[np.ndarray, "nodes"],
    tolerated: Bool[np.ndarray, "pairs nodes"],
    rows: Rows,
) -> CertifiedCurve:
    """What a baseline proves of nodes each on its own: the worst plan is the same for all of them."""
    caps = attribute_caps(sampled.graph, certified.inputs)
    counts = (targets & tolerated).sum(axis=1)
    proven = np.maximum(counts - certified.base.discount, 0)
    attack = [
        [worst_spending(cap, int(budget)) for cap, budget in zip(caps, pair, strict=True)]
        for pair in zip(*rows, strict=True)
    ]
    falls = np.zeros((len(counts), sampled.graph.nodes), dtype=np.bool_)
    falls[:, sampled.nodes] = targets & ~tolerated
    return CertifiedCurve(proven, proven.astype(np.float64), counts.astype(np.float64), np.array(attack), falls)


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


def _item(
    sampled: SampledGraph,
    certified: _Certified,
    name: str,
    curves: Mapping[tuple[str, str], CertifiedCurve],
    alone: Bool[np.ndarray, "pairs nodes"],
) -> ItemResult:
    """All nodes; those that are not certified are ignored and abstain."""
    base, nodes, votes = certified.alone.base, sampled.nodes, sampled.votes
    size = sampled.graph.nodes

    def spread(values: np.ndarray, fill: float | int) -> np.ndarray:
        everywhere = np.full(size, fill, dtype=values.dtype)
        everywhere[nodes] = values
        return everywhere

    everyone = np.zeros((len(alone), size), dtype=np.bool_)
    everyone[:, nodes] = alone
    ends = sampled.graph.edge_index.T
    return ItemResult(
        name=name,
        label=None,
        ignored=~np.isin(np.arange(size), nodes),
        candidate=votes.candidate.astype(np.int64),
        prediction=spread(base.prediction, ABSTAIN),
        votes=votes.votes.astype(np.int64),
        lower_probability=spread(certified.alone.lower, 0.0),
        eta=spread(base.eta.reshape(-1, nodes.size).max(axis=0), 0.0),
        radius=spread(certified_radius(base.weights, base.eta, base.group, 0), 0.0),
        output_group=sampled.layout.outputs.labels.astype(np.int64),
        input_group=sampled.layout.inputs.labels.astype(np.int64),
        curves=curves,
        relies_on=None if base.relies_on is None else spread(base.relies_on, Basis.NOTHING),
        alone=everyone,
        edges=ends[ends[:, 0] < ends[:, 1]],
        places=sampled.places,
    )


def _assumptions(sampled: SampledGraph, settings: GraphSettings) -> tuple[str, ...]:
    """Sentences that the promise rests on besides α, N₁ and N₂."""
    names = " and ".join(certificate.name for certificate in settings.certificates)
    sentences = [
        f"Base certificates: {names}; bounds joined over the {sampled.nodes.size} certified nodes by "
        f"{settings.simultaneous.name}.",
        "The adversary changes attributes, in whole bits: no more ones are deleted and no more zeros are set than a "
        "cluster has. Edges are not changed.",
    ]
    if settings.baseline is not None:
        sentences[0] = (
            "Baseline SparseSmooth (Bojchevski et al. 2020): exact certificates from regions of constant likelihood "
            f"ratio, of each node on its own; bounds joined over the {sampled.nodes.size} certified nodes by "
            f"{settings.simultaneous.name}. η and radius are those of {names}."
        )
    if settings.strictly_local:
        sentences.append(f"The classifier sees {sampled.depth} hops: attributes farther away cannot matter.")
    return tuple(sentences)
