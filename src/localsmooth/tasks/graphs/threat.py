"""What the adversary may do to a graph: whole flips, no more than there are bits to flip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from jaxtyping import Int

from localsmooth.collective import AtMostGroups, Ball, Caps, GroupBudgets, Integer, Threat
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Partition
from localsmooth.noise import FlipCaps
from localsmooth.tasks.graphs.graph import AttributedGraph

__all__ = ["AttackLimits", "attribute_caps", "budget_grid", "flip_threat", "node_limit"]

_MOST_FLIPS = 2**53  # every smaller number of flips is a float64, in which rows of the problem are written
Budgets = int | Sequence[int] | npt.NDArray[np.integer]


def attribute_caps(graph: AttributedGraph, inputs: Partition) -> FlipCaps:
    """Zeros and ones among the attributes of each input group (one label per node)."""
    ones = np.bincount(inputs.labels, weights=graph.ones_per_node, minlength=inputs.count).astype(np.int64)
    return FlipCaps(inputs.sizes * graph.width - ones, ones)


def budget_grid(
    additions: Sequence[int], deletions: Sequence[int]
) -> tuple[Int[np.ndarray, "budgets"], Int[np.ndarray, "budgets"]]:
    """All pairs (ε⁺, ε⁻), ε⁻ varying fastest, as two flat lists."""
    grid = np.meshgrid(np.asarray(additions, np.int64), np.asarray(deletions, np.int64), indexing="ij")
    return grid[0].ravel(), grid[1].ravel()


def flip_threat(
    caps: FlipCaps, *, additions: Budgets = 0, deletions: Budgets = 0, group_budget: int | None = None
) -> Threat:
    """At most ε⁺ additions and ε⁻ deletions anywhere, in whole flips, within what each input group has.

    Columns are the input groups for additions, then for deletions, as `SparseFlips` has them.

    Parameters
    ----------
    caps
        From `attribute_caps`.
    additions, deletions
        ε⁺ and ε⁻: numbers, or lists of the same length that are read in pairs (see `budget_grid`).
    group_budget
        Largest number of flips of either kind in one input group (one node, where each node is its own group).

    Raises
    ------
    InvalidInputError
        If a group's budget is negative.
    """
    groups = caps.additions.size
    room = np.concatenate([caps.additions, caps.deletions]).astype(np.float64)
    if group_budget is not None:
        if group_budget < 0:
            raise InvalidInputError("group_budget", f"got {group_budget}", "Pass a number of flips >= 0")
        room = np.minimum(room, group_budget)
    return (
        Ball(np.asarray(additions, np.float64), 0, columns=list(range(groups)))
        & Ball(np.asarray(deletions, np.float64), 0, columns=list(range(groups, 2 * groups)))
        & Caps(room)
        & Integer()
    )


def node_limit(
    graph: AttributedGraph,
    inputs: Partition,
    *,
    most_nodes: int,
    per_node: int | None = None,
    both_per_node: int | None = None,
) -> Threat:
    """Flips at no more than so many nodes, with no more than so many flips at each.

    Input groups are clusters, and the certificate sees only what is spent in each of them. So this becomes: in a
    cluster no more than its most generous `most_nodes` nodes have room for, and in all clusters together no more than
    the most generous `most_nodes` nodes of the graph. That allows the adversary at least as much, and is sound.

    Parameters
    ----------
    graph
        The clean graph.
    inputs
        One label per node.
    most_nodes
        Number of nodes that may be attacked.
    per_node
        Largest number of additions, and of deletions, at one node.
    both_per_node
        Largest number of additions and deletions together at one node.

    Raises
    ------
    InvalidInputError
        If a limit is negative.
    """
    for name, value in (("most_nodes", most_nodes), ("per_node", per_node), ("both_per_node", both_per_node)):
        if value is not None and value < 0:
            raise InvalidInputError(name, f"got {value}", "Pass a number >= 0")
    kinds = (graph.width - graph.ones_per_node, graph.ones_per_node)
    most = min((limit for limit in (per_node, both_per_node) if limit is not None), default=graph.width)
    limits = [np.minimum(room, most) for room in kinds]
    groups = [inputs.members(group) for group in range(inputs.count)]
    caps = [_largest(room[members], most_nodes) for room in limits for members in groups]
    addition, deletion = (list(range(start, start + inputs.count)) for start in (0, inputs.count))
    totals = [_largest(room, most_nodes) for room in limits]
    threat = (
        Caps(np.array(caps, dtype=np.float64))
        & Ball(totals[0], 0, columns=addition)
        & Ball(totals[1], 0, columns=deletion)
    )
    if both_per_node is None:
        return threat
    together = np.minimum(limits[0] + limits[1], both_per_node)
    shares = np.array([_largest(together[members], most_nodes) for members in groups])
    return threat & GroupBudgets(np.tile(np.arange(inputs.count), 2), shares) & Ball(_largest(together, most_nodes), 0)


def _largest(room: Int[np.ndarray, "nodes"], count: int) -> float:
    return float(np.sort(room)[::-1][:count].sum())


@dataclass(frozen=True)
class AttackLimits:
    """What the adversary is denied besides the budgets (ε⁺, ε⁻) and flips of bits that are not there.

    Parameters
    ----------
    node_budget
        Most additions, and most deletions, at any one node.
    node_flips
        Most additions and deletions together at any one node.
    attacked_nodes
        Most nodes whose attributes are changed.
    cluster_budget
        Most additions, and most deletions, in any one cluster.
    cluster_flips
        Most additions and deletions together in any one cluster.
    attacked_clusters
        Most clusters in which attributes are changed.

    Raises
    ------
    InvalidInputError
        If a limit is negative, beyond 2⁵³, or no whole number.
    """

    node_budget: int | None = None
    attacked_nodes: int | None = None
    cluster_budget: int | None = None
    attacked_clusters: int | None = None
    node_flips: int | None = None
    cluster_flips: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not (isinstance(value, (int, np.integer)) and 0 <= value <= _MOST_FLIPS):
                remedy = f"Pass a whole number from 0 to {_MOST_FLIPS}, or None for no limit"
                raise InvalidInputError(field.name, f"got {value}", remedy)

    def threat(
        self,
        graph: AttributedGraph,
        inputs: Partition,
        clusters: Int[np.ndarray, "input_groups"],
        *,
        additions: Budgets,
        deletions: Budgets,
    ) -> Threat:
        """Spell everything out.

        Parameters
        ----------
        graph
            The clean graph.
        inputs
            Input group of each node: a cluster, or part of one.
        clusters
            Cluster of each input group.
        additions, deletions
            ε⁺ and ε⁻, as in `flip_threat`.
        """
        threat = flip_threat(attribute_caps(graph, inputs), additions=additions, deletions=deletions)
        if not (self.node_budget is None and self.node_flips is None and self.attacked_nodes is None):
            most = graph.nodes if self.attacked_nodes is None else self.attacked_nodes
            threat = threat & node_limit(
                graph, inputs, most_nodes=most, per_node=self.node_budget, both_per_node=self.node_flips
            )
        if self.cluster_budget is not None:
            number = int(clusters.max()) + 1
            threat = threat & GroupBudgets(np.concatenate([clusters, number + clusters]), self.cluster_budget)
        if self.cluster_flips is not None:
            threat = threat & GroupBudgets(np.tile(clusters, 2), self.cluster_flips)
        if self.attacked_clusters is not None:
            threat = threat & AtMostGroups(self.attacked_clusters, np.tile(clusters, 2))
        return threat

    def words(self) -> str:
        """The limits, to follow what the budgets allow; empty where there is none."""
        said = {
            "at any one node at most {} additions and as many deletions": self.node_budget,
            "at any one node at most {} bits in all": self.node_flips,
            "at no more than {} nodes": self.attacked_nodes,
            "in any one cluster at most {} additions and as many deletions": self.cluster_budget,
            "in any one cluster at most {} bits in all": self.cluster_flips,
            "in no more than {} clusters": self.attacked_clusters,
        }
        return "".join(f", {words.format(value)}" for words, value in said.items() if value is not None)
