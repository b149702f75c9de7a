"""Layouts over clusters of nodes: which cluster sees how much noise where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int

from localsmooth.errors import InvalidInputError, require_whole_number
from localsmooth.layout import Layout, Partition, origins_of
from localsmooth.tasks.graphs.clusters import affinity_ranks, metis_clusters
from localsmooth.tasks.graphs.graph import AttributedGraph, shape_of

__all__ = ["ClusterLayout", "Cut", "cluster_layout", "graph_layout", "isotropic_node_layout"]

Cut = Callable[[AttributedGraph, int, int], Int[np.ndarray, "nodes"]]
"""Makes clusters of a graph, their number and a seed, such as `metis_clusters` and `spectral_clusters`.

A `ClusterLayout` shows it a graph without attributes, so that clusters cannot follow from what
the adversary changes."""


@dataclass(frozen=True)
class ClusterLayout:
    """A rule for any graph: clusters from its edges, and noise that grows with their distance (`cluster_layout`).

    Parameters
    ----------
    clusters
        Number of clusters; 1 is isotropic smoothing.
    addition, deletion
        Probability of 0 → 1 and of 1 → 0: in the output's own cluster, and in the cluster that is farthest.
    cut
        Makes the clusters of the edges, which stay as they are while the adversary changes attributes.
    origins
        `attributes_digest` of graphs by which the rule was chosen, and which it does not certify.

    Raises
    ------
    InvalidInputError
        If there is no cluster, one cluster has two levels, or a level is outside [0, 1).
    """

    clusters: int
    addition: tuple[float, float]
    deletion: tuple[float, float]
    cut: Cut = metis_clusters
    origins: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        require_whole_number("clusters", self.clusters, 1, "Pass at least one")
        for field in ("addition", "deletion"):
            _require_levels(field, getattr(self, field))
            if self.clusters == 1 and len(set(getattr(self, field))) > 1:
                raise InvalidInputError(
                    field, f"one cluster has one level, got {getattr(self, field)}", "Repeat the same number"
                )

    @property
    def words(self) -> str:
        """What tables call it."""
        levels = [
            f"{sign} {pair[0]:.4g}" + ("" if pair[0] == pair[1] else f" … {pair[1]:.4g}")
            for sign, pair in (("θ⁺", self.addition), ("θ⁻", self.deletion))
        ]
        return ("isotropic " if self.clusters == 1 else f"{self.clusters} clusters ") + ", ".join(levels)

    def on(self, graph: AttributedGraph) -> Layout:
        """Make the layout for a graph.

        Parameters
        ----------
        graph
            Only its edges are looked at.
        """
        nothing = sp.csr_array((graph.nodes, graph.width), dtype=np.bool_)
        clusters = self.cut(replace(graph, attributes=nothing), self.clusters, 0)
        made = cluster_layout(clusters, graph.adjacency, addition=self.addition, deletion=self.deletion)
        return Layout(made.outputs, made.inputs, made.levels, origins=made.origins | self.origins)

    def layout(self, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> Layout:
        """Refuse to make a layout of shapes alone.

        Raises
        ------
        InvalidInputError
            Always: clusters follow from edges.
        """
        del input_shape, output_shape
        raise InvalidInputError("layout", "clusters follow from edges, not from shapes", "Pass it with a GraphTask")


def graph_layout(layout: object, graph: AttributedGraph) -> Layout:
    """The layout of a graph: one that was made, or what a rule makes.

    Parameters
    ----------
    layout
        A layout, a `ClusterLayout`, or a list with one of these.
    graph
        The graph.

    Raises
    ------
    InvalidInputError
        For rules that make none of a graph.
    """
    if isinstance(layout, list | tuple) and len(layout) == 1:
        return graph_layout(layout[0], graph)
    if isinstance(layout, ClusterLayout):
        return layout.on(graph)
    if not isinstance(layout, Layout):
        raise InvalidInputError(
            "layout", "a recipe makes none for graphs", "Pass cluster_layout(…), or the rule ClusterLayout(…)"
        )
    return layout


def cluster_layout(
    clusters: Int[np.ndarray, "nodes"],
    adjacency: sp.csr_array,
    *,
    addition: tuple[float, float],
    deletion: tuple[float, float],
) -> Layout:
    """One output group and one input group per cluster; noise grows with the affinity rank.

    The cluster of rank r, as seen from the output's own cluster (rank 0), gets the r-th of equally spaced levels
    (Schuchardt et al. 2023, node classification). All attributes of a node share its level: the label maps have one
    entry per node. Levels follow from the edges, which stay as they are while the adversary changes attributes.

    Parameters
    ----------
    clusters
        Cluster of each node, numbered from 0 without gaps.
    adjacency
        Symmetric, boolean; its edge counts decide the ranks.
    addition, deletion
        Probability of 0 → 1 and of 1 → 0: in the output's own cluster, and in the cluster that is farthest.

    Returns
    -------
    Layout
        With levels [clusters × clusters × 2], where the last axis is (addition, deletion).

    Raises
    ------
    InvalidInputError
        If there is not one cluster per node, or a level is outside [0, 1).
    """
    for field, pair in (("addition", addition), ("deletion", deletion)):
        _require_levels(field, pair)
    nodes = shape_of(adjacency)[0]
    if clusters.size != nodes:
        raise InvalidInputError(
            "clusters", f"{clusters.size} labels for {nodes} nodes", "Pass the cluster of each node"
        )
    ranks = affinity_ranks(adjacency, clusters)
    steps = np.stack([np.linspace(*pair, num=len(ranks)) for pair in (addition, deletion)], axis=-1)
    partition = Partition(clusters.astype(np.int32))
    return Layout(partition, partition, steps[ranks], origins=origins_of(ranks))


def isotropic_node_layout(nodes: int, *, addition: float, deletion: float) -> Layout:
    """One output group, one input group: the same noise everywhere, drawn once for all nodes."""
    partition = Partition(np.zeros(nodes, dtype=np.int32))
    return Layout(partition, partition, np.array([[[addition, deletion]]]))


def _require_levels(field: str, pair: tuple[float, float]) -> None:
    if not all(0 <= level < 1 for level in pair):
        raise InvalidInputError(field, f"got {pair}", "Flip probabilities lie in [0, 1)")
