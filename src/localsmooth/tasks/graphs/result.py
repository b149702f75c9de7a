"""From a sampled graph and settings to the labelled result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from jaxtyping import Bool, Int

from localsmooth.baselines import tolerated_flips, worst_spending
from localsmooth.certificates import ABSTAIN, BaseCertificates, Basis, CertifiedOutputs, certified_radius
from localsmooth.collective import Bound, Curve, Exact, solve
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Partition
from localsmooth.results import (
    ACCURACY,
    RATIO,
    CertifiedCurve,
    ItemResult,
    JointResult,
    attach_joint,
    build_dataset,
)
from localsmooth.runs import RunConfiguration
from localsmooth.tasks.description import common_assumptions, describe_smoothing, saving_of
from localsmooth.tasks.graphs.graph import UNLABELED
from localsmooth.tasks.graphs.node_certificates import bounded_nodes
from localsmooth.tasks.graphs.node_problem import equal_flips, node_problem
from localsmooth.tasks.graphs.reach import broken_nodes, robust_alone
from localsmooth.tasks.graphs.receptive import receptive_fields, strictly_local
from localsmooth.tasks.graphs.settings import GraphSettings
from localsmooth.tasks.graphs.store import SampledGraph
from localsmooth.tasks.graphs.threat import attribute_caps, budget_grid
from localsmooth.tasks.record import RunRecord

__all__ = ["graph_result", "require_depth"]


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
    configuration: RunConfiguration | None = None,
    tell: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Certify deletions alone, additions alone and every pair of budgets, and build the data set.

    The curve over `budget` is the one for deletions (for additions, if there is no budget of deletions); both are the
    edges of the table over (ε⁺, ε⁻).

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
    certified = _certified(sampled, settings)
    base, nodes, graph = certified.base, sampled.nodes, sampled.graph
    truth = graph.labels[nodes]
    alive = base.prediction != ABSTAIN
    masks = {RATIO: alive}
    if (truth != UNLABELED).all():
        masks[ACCURACY] = alive & (base.prediction == truth)
    name = record.item_names[0]
    say = tell and (lambda text: tell(f"{name}: {text}"))
    joint, curves = _joint(sampled, certified, settings, masks, say)
    by_deletions = len(settings.deletions) > 1 or len(settings.additions) == 1
    saving = saving_of([(sampled.layout, sampled.votes)], record)
    run = record.run_info(
        budgets=tuple(map(float, settings.deletions if by_deletions else settings.additions)),
        norm="l0",
        alpha=settings.alpha,
        bound_names=tuple(settings.bounds),
        assumptions=(*_assumptions(sampled, settings), *common_assumptions(settings, record, saving, outputs="nodes")),
        saving=saving,
        threat=_words(settings, by_deletions),
        proven=settings.simultaneous.simultaneous,
        smoothing=describe_smoothing(configuration, [sampled.layout], record.sampled),
    )
    item = _item(sampled, certified, name, curves(by_deletions))
    return attach_joint(build_dataset([item], run), joint)


def _certified(sampled: SampledGraph, settings: GraphSettings) -> _Certified:
    bounded = bounded_nodes(
        sampled.votes,
        sampled.layout,
        sampled.nodes,
        alpha=settings.alpha,
        certificates=settings.certificates,
        score_bound=settings.score_bound,
        simultaneous=settings.simultaneous,
        labels=sampled.graph.labels[sampled.nodes],
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


class _Curves:
    """Solved tables by target and bound, and how to cut curves out of them."""

    def __init__(
        self, joint: JointResult, keys: list[tuple[str, str]], place: Mapping[tuple[str, str], tuple[int, int]]
    ):
        self.joint, self.keys, self.place = joint, keys, place

    def __call__(self, by_deletions: bool) -> dict[tuple[str, str], CertifiedCurve]:
        made: dict[tuple[str, str], CertifiedCurve] = {}
        for key in self.keys:
            where = (*self.place[key], *((0, slice(None)) if by_deletions else (slice(None), 0)))
            made[key] = CertifiedCurve(
                self.joint.certified[where],
                self.joint.lower[where],
                self.joint.upper[where],
                self.joint.attack[where].sum(axis=1),
            )
        return made


def _joint(
    sampled: SampledGraph,
    certified: _Certified,
    settings: GraphSettings,
    masks: Mapping[str, Bool[np.ndarray, "nodes"]],
    tell: Callable[[str], None] | None,
) -> tuple[JointResult, _Curves]:
    graph, base = sampled.graph, certified.base
    additions, deletions = (np.array(each, dtype=np.int64) for each in (settings.additions, settings.deletions))
    grid = budget_grid(additions.tolist(), deletions.tolist())
    parts = _parts(base, grid)
    caps = attribute_caps(graph, certified.inputs)
    tolerated = np.zeros((additions.size, deletions.size, sampled.nodes.size), dtype=np.bool_)
    if settings.baseline is not None:
        lower = certified.lower
        tolerated = tolerated_flips(settings.baseline, lower, sampled.layout, caps, additions, deletions)
    each = certified.alone
    shape = (len(masks), len(settings.bounds), additions.size, deletions.size)
    clusters = sampled.layout.inputs.count
    tables = {name: np.zeros(shape) for name in ("certified", "lower", "upper")}
    attack = np.zeros((*shape, 2, clusters))
    falls = np.zeros((*shape, graph.nodes), dtype=np.bool_)
    places: dict[tuple[str, str], tuple[int, int]] = {}
    for t, (target, mask) in enumerate(masks.items()):
        for b, (name, bound) in enumerate(settings.bounds.items()):
            places[target, name] = t, b
            if not mask.any():
                continue
            if settings.baseline is not None:
                base.require_whole(mask)
                _count(tables, (t, b), (tolerated & mask).sum(axis=-1), base.discount)
                falls[t, b][..., sampled.nodes] = mask & ~tolerated
                for kind, cap in enumerate(caps):
                    spent = [worst_spending(cap, budget) for budget in (settings.additions, settings.deletions)[kind]]
                    spread = np.expand_dims(np.array(spent), 1 - kind)
                    attack[t, b, :, :, kind] = spread
                continue
            for part in parts:
                threat = settings.limits.threat(
                    graph, certified.inputs, certified.clusters, additions=grid[0][part], deletions=grid[1][part]
                )
                asked = node_problem(base, threat, np.flatnonzero(mask))
                curve = solve(
                    asked.problem,
                    _share(bound, part.size / grid[0].size),
                    progress=tell and (lambda step, name=name: tell(f"{name}, {step}")),
                )
                _fill(tables, (t, b), part, curve, base.discount)
                for index, answer in zip(part, curve, strict=True):
                    cell = (t, b, *np.unravel_index(index, shape[2:]))
                    spending = asked.spread(answer.attack)
                    for kind, spent in enumerate(spending.reshape(2, -1)):
                        np.add.at(attack[cell][kind], certified.clusters, spent)
                    falls[cell][sampled.nodes] = mask & broken_nodes(each.base, spending)
            for name in ("certified", "lower"):
                # What holds against more flips holds against fewer.
                backwards = tables[name][t, b, ::-1, ::-1]
                np.maximum.accumulate(np.maximum.accumulate(backwards, axis=0), axis=1, out=backwards)
    if len(masks) > 1:
        # Correct nodes are some of all that are certified: what is proven of them holds for the ratio, too.
        for name in ("certified", "lower"):
            np.maximum(tables[name][0], tables[name][1], out=tables[name][0])
    if settings.baseline is None:
        alone = robust_alone(each.base, caps, additions, deletions)
    else:
        alone = tolerated_flips(settings.baseline, each.lower, sampled.layout, caps, additions, deletions)
    shown = np.zeros((additions.size, deletions.size, graph.nodes), dtype=np.bool_)
    shown[..., sampled.nodes] = alone & (each.base.prediction != ABSTAIN)
    rows, columns = graph.edge_index
    joint = JointResult(
        additions,
        deletions,
        tables["certified"].astype(np.int64),
        tables["lower"],
        tables["upper"],
        attack,
        falls,
        shown,
        np.stack([rows, columns], axis=1)[rows < columns],
        sampled.places,
    )
    return joint, _Curves(joint, list(places), places)


def _count(
    tables: dict[str, np.ndarray], place: tuple[int, int], counts: Int[np.ndarray, "additions deletions"], discount: int
) -> None:
    for name in ("certified", "lower"):
        tables[name][place] = np.maximum(counts - discount, 0)
    tables["upper"][place] = counts


def _parts(
    base: BaseCertificates, grid: tuple[Int[np.ndarray, "pairs"], Int[np.ndarray, "pairs"]]
) -> list[Int[np.ndarray, "_"]]:
    """Pairs of budgets that are solved together: each kind alone where counting its flips says everything."""
    groups = base.weights.shape[-1] // 2
    alone = [np.flatnonzero(other == 0) for other in grid]
    kinds = [np.arange(groups, 2 * groups), np.arange(groups)]
    parts = [part for part, columns in zip(alone, kinds, strict=True) if equal_flips(base, columns)]
    solved = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    rest = np.setdiff1d(np.arange(grid[0].size), solved)
    return [part for part in (*parts, rest) if part.size]


def _share(bound: Bound, share: float) -> Bound:
    """The bound with its share of the time that it may take for all pairs."""
    if not isinstance(bound, Exact) or bound.time_limit is None:
        return bound
    return replace(bound, time_limit=float(bound.time_limit) * share)


def _fill(
    tables: dict[str, np.ndarray], place: tuple[int, int], part: Int[np.ndarray, "_"], curve: Curve, discount: int
) -> None:
    for name, values in (
        ("certified", np.maximum(curve.certified - discount, 0)),
        ("lower", np.maximum(curve.lower - discount, 0.0)),
        ("upper", curve.upper),
    ):
        tables[name][place].reshape(-1)[part] = values


def _item(
    sampled: SampledGraph,
    certified: _Certified,
    name: str,
    curves: Mapping[tuple[str, str], CertifiedCurve],
) -> ItemResult:
    """All nodes; those that are not certified are ignored and abstain."""
    base, nodes, votes = certified.alone.base, sampled.nodes, sampled.votes
    size = sampled.graph.nodes

    def spread(values: np.ndarray, fill: float | int) -> np.ndarray:
        everywhere = np.full(size, fill, dtype=values.dtype)
        everywhere[nodes] = values
        return everywhere

    labelled = any(target == ACCURACY for target, _ in curves)
    return ItemResult(
        name=name,
        label=sampled.graph.labels if labelled else None,
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
    )


def _words(settings: GraphSettings, by_deletions: bool) -> str:
    """What the adversary may do along the curve over `budget`."""
    kinds = ("deletes", "adds") if by_deletions else ("adds", "deletes")
    return f"perturbation that {kinds[0]} at most ε attribute bits and {kinds[1]} none{settings.limits.words()}"


def _assumptions(sampled: SampledGraph, settings: GraphSettings) -> tuple[str, ...]:
    """Sentences that the promise rests on besides α, N₁ and N₂."""
    names = " and ".join(certificate.name for certificate in settings.certificates)
    sentences = [
        f"Base certificates: {names}; bounds joined over the {sampled.nodes.size} certified nodes by "
        f"{settings.simultaneous.name}.",
        "The adversary changes attributes, in whole bits: no more ones are deleted and no more zeros are set than a "
        "cluster has. Edges are not changed.",
        "Every pair of budgets (ε⁺, ε⁻) rests on the same confidence bounds as the curves.",
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
