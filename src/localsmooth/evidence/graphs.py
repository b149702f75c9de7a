"""Graphs, as the checks look at them: certified nodes, pairs of budgets (ε⁺, ε⁻), receptive fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.certificates import BaseCertificates, CertifiedOutputs, certified_radius
from localsmooth.collective import Constraints, Problem
from localsmooth.evidence.chunks import GroupVotes
from localsmooth.evidence.exact import flips_cover
from localsmooth.evidence.item import Budgets, CheckedItem, Outputs, Way
from localsmooth.evidence.kept import check_votes
from localsmooth.evidence.ledger import Ledger, demand
from localsmooth.evidence.threats import flips_fail
from localsmooth.layout import Partition
from localsmooth.noise import SparseFlips
from localsmooth.runs import DirectoryStore
from localsmooth.tasks import Alike, RunRecord, Stakes, Strategies, Task
from localsmooth.tasks.graphs import (
    AttackLimits,
    GraphSettings,
    NodeProblem,
    SampledGraph,
    bounded_nodes,
    budget_grid,
    node_problem,
    node_stakes,
    receptive_fields,
    solved_together,
    strictly_local,
)

__all__ = ["graph_items"]

_FIELDS, _COUNTS = "receptive fields", "counts"


def graph_items(
    task: type[Task[Any, Any]],
    record: RunRecord,
    store: DirectoryStore,
    settings: GraphSettings,
    groups: Mapping[tuple[int, int], GroupVotes],
    ledger: Ledger,
) -> Sequence[CheckedItem]:
    """Read the graph of a run, and compare it with its chunks.

    Parameters
    ----------
    task
        The kind of input.
    record, store, settings
        The run, and what it was certified with.
    groups
        Votes by (item, output group), from the chunks.
    ledger
        Takes down what was checked.

    Raises
    ------
    DoesNotHoldError
        At the first thing that does not hold.
    """
    with ledger.step("items"):
        sampled = cast("SampledGraph", task.load(record, store))  # refuses a graph or layout of another digest
        (name,) = record.item_names
        check_votes(name, sampled.layout.outputs.labels, sampled.votes, groups, ledger)
    ledger.holds("graph and layout are those of the sealed configuration", sampled.graph.nodes, "nodes")
    ledger.holds("votes and candidates that are certified are the sums of the chunks", sampled.graph.nodes, "nodes")
    with ledger.step("confidence bounds"):
        (settled,) = cast("Sequence[GraphSettings]", task.settle(sampled, settings, record))
    if settings.limits != AttackLimits():
        ledger.leave(f"not checked: that the collective problem allows every perturbation{settings.limits.words()}")
    if settings.strictly_local:
        ledger.trust(f"the classifier sees no farther than {sampled.depth} hops, as the run says")
    return [_Item(name, sampled, settled, record.class_names)]


class _Item(CheckedItem):
    def __init__(self, name: str, sampled: SampledGraph, settings: GraphSettings, class_names: Sequence[str]) -> None:
        nodes, layout = sampled.nodes, sampled.layout
        group = layout.outputs.labels[nodes].astype(np.int64)
        self.outputs = Outputs(name, sampled.votes.part(nodes), group, layout.levels, SparseFlips())
        self.settings = settings
        self.kinds = {"additions": settings.additions, "deletions": settings.deletions}
        self._sampled, self._class_names, self._proven = sampled, class_names, settings
        self._inputs, self._clusters = layout.inputs, np.arange(layout.inputs.count)

    def stakes(self) -> Mapping[str, Stakes]:
        return node_stakes(self._sampled, self.settings.targets, self._class_names)

    def certify(self, way: Strategies, outputs: Alike) -> CertifiedOutputs:
        return bounded_nodes(
            self._sampled.votes,
            self._sampled.layout,
            self._sampled.nodes,
            alpha=way.alpha,
            certificates=way.certificates,
            score_bound=way.score_bound,
            simultaneous=way.sharing,
            kind=outputs.kind,
            worth=outputs.worth,
        )

    def narrowed(self, made: CertifiedOutputs) -> CertifiedOutputs:
        if not self._proven.strictly_local:
            return made
        sampled, whole = self._sampled, self._sampled.layout.inputs
        depth = sampled.depth
        demand(depth is not None and depth >= 0, _FIELDS, "it is not known how far the classifier sees")
        assert depth is not None
        local = strictly_local(made.base, whole, receptive_fields(sampled.graph.adjacency, sampled.nodes, depth))
        first = np.unique(local.inputs.labels, return_index=True)[1]
        self._inputs, self._clusters = local.inputs, whole.labels[first].astype(np.int64)
        problem = _fields_fail(made.base, local.base, local.inputs, self._clusters, whole, self._seen)
        demand(not problem, _FIELDS, f"{self.outputs.name}: {problem}")
        return CertifiedOutputs(local.base, made.lower)

    @cached_property
    def _seen(self) -> Bool[np.ndarray, "certified nodes"]:
        """Which nodes lie within the classifier's depth of each certified one, from the definition."""
        sampled = self._sampled
        near = np.zeros((sampled.graph.nodes, sampled.nodes.size), np.bool_)
        near[sampled.nodes, np.arange(sampled.nodes.size)] = True
        ends = sampled.graph.edge_index.T.tolist()
        for _ in range(sampled.depth or 0):
            wider = near.copy()
            for one, other in ends:
                wider[one] |= near[other]
                wider[other] |= near[one]
            if np.array_equal(wider, near):  # whatever depth a stranger's run claims
                break
            near = wider
        return near.T

    def radius(self, alone: BaseCertificates) -> Float[np.ndarray, "outputs"] | None:
        return certified_radius(alone.weights, alone.eta, alone.group, 0)

    def budgets(self) -> Budgets:
        return _Pairs(self.outputs.name, self._sampled, self._proven, self)

    @property
    def input_groups(self) -> tuple[Partition, Int[np.ndarray, "input_groups"]]:
        """Input group of each node as certificates speak of them, and the cluster of each group."""
        return self._inputs, self._clusters


class _Pairs(Budgets):
    """All pairs (ε⁺, ε⁻), ε⁻ varying fastest."""

    def __init__(self, name: str, sampled: SampledGraph, settings: GraphSettings, item: _Item) -> None:
        self._name, self._sampled, self._settings, self._item = name, sampled, settings, item
        self._rows = budget_grid(settings.additions, settings.deletions)
        self.sizes = np.stack(self._rows, axis=1).astype(np.float64)

    def together(self, base: BaseCertificates) -> Sequence[Int[np.ndarray, "some"]]:
        return solved_together(base, self._rows)

    def problem(self, way: Way, chosen: Int[np.ndarray, "some"]) -> Problem:
        inputs, clusters = self._item.input_groups
        added, deleted = (rows[chosen] for rows in self._rows)
        graph, limits = self._sampled.graph, self._settings.limits
        threat = limits.threat(graph, inputs, clusters, additions=added, deletions=deleted)
        stakes = way.stakes
        asked = node_problem(way.base, threat, np.flatnonzero(stakes.qualify), stakes.problem_value)
        whole = threat.constraints(asked.size)
        problem = _reduction_fails(way.base, asked, whole, stakes.qualify)
        if not problem and limits == AttackLimits():
            ones = np.bincount(inputs.labels, graph.attributes.sum(axis=1), minlength=inputs.count).astype(np.int64)
            bits = np.bincount(inputs.labels, minlength=inputs.count) * graph.width
            kind = np.repeat([0, 1], inputs.count)
            problem = flips_fail(self.sizes[chosen], kind, np.concatenate([bits - ones, ones]), whole)
        demand(not problem, _COUNTS, f"{self._name}: the collective problem is not what is promised: {problem}")
        return asked.problem


def _reduction_fails(
    base: BaseCertificates, asked: NodeProblem, whole: Constraints, counted: Bool[np.ndarray, "nodes"]
) -> str:
    """Say why a problem in its smallest form may ask less than its certificates; empty if it is shown not to.

    The adversary must have nothing to spend in columns that are left out. Where flips are counted, an output that
    stands by their number must stand by one of its certificates: with m − 1 flips of the largest weight, wherever they
    are counted.
    """
    problem = asked.problem
    weights = base.weights.reshape(-1, *base.weights.shape[-2:])
    eta = base.eta.reshape(-1, base.group.size)
    about = np.array_equal(problem.group, base.group) and np.array_equal(problem.targets, np.flatnonzero(counted))
    if not about:
        return "it is about other nodes"
    kept, made = asked.columns, problem.constraints
    if np.array_equal(problem.weights, weights) and np.array_equal(problem.eta, eta):
        return "" if np.array_equal(kept, np.arange(asked.size)) else "columns are left out"
    if len(problem.weights) != 1:
        return "it has other certificates"
    same = np.array_equal(made.rows, whole.rows[:, kept]) and np.array_equal(made.caps, whole.caps[kept])
    if not (same and np.array_equal(made.budgets, whole.budgets) and bool(made.integer.all())):
        return "columns that are left out change what the others allow"
    for column in np.setdiff1d(np.arange(asked.size), kept).tolist():
        nothing = (whole.budgets == 0) & (whole.rows[:, column] > 0) & np.all(whole.rows >= 0, axis=1)
        if whole.caps[column] > 0 and not bool(nothing.any(axis=1).all()):
            return f"column {column} is left out, and bits can be flipped there"
    live = weights[..., kept]
    counts = problem.weights[0] >= 1
    stands = np.zeros(base.group.size, np.bool_)
    for own, thresholds in zip(live, eta, strict=True):
        blind = np.any((own > 0) & ~counts, axis=1)
        heaviest = own.max(axis=1, initial=0.0)
        cases = np.stack([thresholds, heaviest[base.group], problem.eta[0]])
        several, case = np.unique(cases, axis=1, return_inverse=True)
        holds = np.array([flips_cover(*each) for each in several.T.tolist()])
        stands |= holds[case.reshape(-1)] & ~blind[base.group]
    wrong = np.flatnonzero(~stands & (problem.eta[0] > 0) & counted)
    return f"{problem.eta[0][wrong[0]]:g} flips are not shown to be needed at output {wrong[0]}" if wrong.size else ""


def _fields_fail(
    base: BaseCertificates,
    local: BaseCertificates,
    inputs: Partition,
    clusters: Int[np.ndarray, "input_groups"],
    whole: Partition,
    seen: Bool[np.ndarray, "certified nodes"],
) -> str:
    """Say why certificates with receptive fields promise more than those without; empty if they do not.

    Input groups are parts of clusters, and whatever an output sees a node of weighs as much as it did, or enough to
    break every output of its group.
    """
    if not np.array_equal(clusters[inputs.labels], whole.labels):
        return "an input group has nodes of several clusters"
    eta = local.eta.reshape(-1, local.group.size)
    same = np.array_equal(local.eta, base.eta) and np.array_equal(local.prediction, base.prediction)
    if not (same and local.discount == base.discount and local.stratum is None and base.stratum is None):
        return "thresholds are not those of the certificates without them"
    member = np.zeros((inputs.labels.size, inputs.count))
    member[np.arange(inputs.labels.size), inputs.labels] = 1.0
    sees = (seen.astype(np.float64) @ member) > 0
    before = base.weights.reshape(-1, *base.weights.shape[-2:])
    after = local.weights.reshape(-1, *local.weights.shape[-2:])
    for own, made, thresholds in zip(before, after, eta, strict=True):
        enough = np.zeros(len(made))
        np.maximum.at(enough, local.group, thresholds)
        for output in range(base.group.size):
            row = own[base.group[output]].reshape(2, -1)[:, clusters]
            least = np.minimum(row * sees[output], enough[local.group[output]])
            if bool(np.any(made[local.group[output]].reshape(2, -1) < least)):
                return f"the weights of certified node {output} are smaller than those of what it sees"
    return ""
