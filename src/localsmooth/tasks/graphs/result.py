"""From a sampled graph and settings to the labelled result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from localsmooth.baselines import tolerated_flips, worst_spending
from localsmooth.bounds import Sharing
from localsmooth.certificates import ABSTAIN, Basis, certified_radius
from localsmooth.results import (
    CertifiedCurve,
    ItemResult,
    RunInfo,
    build_dataset,
    certifies_beyond,
    consistent,
    finite_reach,
    without_empty,
)
from localsmooth.runs import RunIdentity
from localsmooth.tasks.asked_targets import left_out_words
from localsmooth.tasks.description import run_facts
from localsmooth.tasks.graphs.certified_graph import CertifiedGraph, Rows, certified_graph, certified_target
from localsmooth.tasks.graphs.certified_nodes import node_stakes
from localsmooth.tasks.graphs.graph import UNLABELED
from localsmooth.tasks.graphs.ideal import reach_of_node_shares, reach_of_nodes, with_flips
from localsmooth.tasks.graphs.reach import robust_alone
from localsmooth.tasks.graphs.settings import GraphSettings
from localsmooth.tasks.graphs.store import SampledGraph
from localsmooth.tasks.graphs.threat import attribute_caps, budget_grid
from localsmooth.tasks.reach import Planned
from localsmooth.tasks.record import RunRecord
from localsmooth.tasks.stakes import Stakes, alike

__all__ = ["graph_facts", "graph_result", "settle_nodes"]


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
    certified: CertifiedGraph | None = None
    made: dict[int, CertifiedGraph] = {}
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
    (item,) = without_empty([consistent(item)])
    told = set(item.targets)
    beyond = certifies_beyond([item], (rows[0] > 0) | (rows[1] > 0))
    limit = {} if beyond else reach_of_node_shares(graph, sampled.layout, nodes, settings, sampled.votes)
    run = graph_facts(sampled, asked, settings.sharing, record, configuration, reach=finite_reach(reach), limit=limit)
    run = replace(
        run, assumptions=(*run.assumptions, *left_out_words(settings.targets, told, weighed, set(standing) - told))
    )
    return build_dataset([item], run)


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
    sampled: SampledGraph, certified: CertifiedGraph, settings: GraphSettings, lower: Float[np.ndarray, "nodes"]
) -> Bool[np.ndarray, "pairs nodes"]:
    """Which nodes tolerate every mix of flips of each pair, by the baseline."""
    assert settings.baseline is not None
    caps = attribute_caps(sampled.graph, certified.inputs)
    made = tolerated_flips(settings.baseline, lower, sampled.layout, caps, *_sizes(settings))
    return made.reshape(-1, sampled.nodes.size)


def _counted(
    sampled: SampledGraph,
    certified: CertifiedGraph,
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


def _item(
    sampled: SampledGraph,
    certified: CertifiedGraph,
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
