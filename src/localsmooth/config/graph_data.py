"""The section of a graph, and the data that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field

from localsmooth.config.section import ExistingPath, Section
from localsmooth.layout import Layout
from localsmooth.tasks.graphs import (
    AttributedGraph,
    Cut,
    NodeSplit,
    cluster_layout,
    digit_graph,
    largest_component,
    load_npz,
    metis_clusters,
    spectral_clusters,
    split_per_class,
)

__all__ = ["CalibrationGraphSection", "GraphData", "GraphNoiseSection", "GraphSection", "NodesSection", "read_graph"]

Probability = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, eq=False)
class GraphData:
    """A prepared graph with its split, its layout and the nodes to certify."""

    graph: AttributedGraph
    split: NodeSplit
    layout: Layout
    nodes: Int[np.ndarray, "nodes"]
    name: str


class GraphNoiseSection(Section):
    """Sparsity-aware flips of attribute bits."""

    addition: tuple[Probability, Probability] = (0.01, 0.01)
    """Probability that a zero becomes one: in the output's own cluster, and in the farthest."""
    deletion: tuple[Probability, Probability] = (0.5, 0.9)
    """Probability that a one becomes zero: in the output's own cluster, and in the farthest."""


class SplitSection(Section):
    """Which nodes of a graph train, and which are certified."""

    per_class: Count = 20
    """Training nodes per class, and validation nodes per class; the rest is the test set."""
    split_seed: int = Field(default=0, ge=0)
    """Another seed gives another split."""
    evaluate: Literal["test", "validation"] = "test"
    """Nodes that are certified."""

    @property
    def choice(self) -> tuple[int, int, str]:
        """What tells one choice of nodes from another."""
        return self.per_class, self.split_seed, self.evaluate

    def split(self, graph: AttributedGraph) -> tuple[NodeSplit, Int[np.ndarray, "nodes"]]:
        """Split the nodes, and name those to certify."""
        split = split_per_class(graph.labels, per_class=self.per_class, seed=self.split_seed)
        return split, split.test if self.evaluate == "test" else split.validation


class NodesSection(SplitSection):
    """Which nodes of a graph train, and which are certified; and how clusters are made."""

    clustering: Literal["metis", "spectral"] = "metis"
    """METIS (with the extra `graph`), or spectral clustering."""

    @property
    def cut(self) -> Cut:
        """What makes the clusters."""
        return metis_clusters if self.clustering == "metis" else spectral_clusters

    def clustered(self, graph: AttributedGraph, count: int) -> Int[np.ndarray, "nodes"]:
        """Cluster of each node."""
        return self.cut(graph, count, 0)


GraphPlace = Literal["digits"] | ExistingPath
"""The embedded graph of handwritten digits, or a file."""


def read_graph(data: GraphPlace) -> tuple[AttributedGraph, str]:
    """Read a graph, of a file the largest connected component, and say what it is called."""
    if data == "digits":
        return digit_graph(), "digits"
    return largest_component(load_npz(data)), Path(data).stem


class CalibrationGraphSection(SplitSection):
    """A graph that is not certified, and which of its nodes count where noise is chosen on it."""

    data: GraphPlace
    """As in `[graph]`: another graph, most of whose nodes have other attributes than those that are certified (beside
    `[edges]`: other edges)."""

    def build(self) -> AttributedGraph:
        """Read the graph."""
        return read_graph(self.data)[0]


class GraphSection(NodesSection):
    """The graph, which of its nodes are certified, and its clusters."""

    data: GraphPlace = "digits"
    """"digits" for the embedded graph of handwritten digits, or the path of an .npz file with `adj_matrix.data`,
    `.indices`, `.indptr` and `.shape` (CSR), the same for `attr_matrix`, and `labels`, as `save_npz` of
    `localsmooth.graphs` writes it. Of a file, the largest connected component is certified."""
    clusters: Count = 5
    """Number of clusters that share a noise level; 1 is isotropic smoothing."""

    def build(self, noise: GraphNoiseSection) -> GraphData:
        """Read and prepare the graph, split its nodes, and lay out the noise.

        Parameters
        ----------
        noise
            The probabilities that the clusters get.
        """
        graph, name = read_graph(self.data)
        clusters = self.clustered(graph, self.clusters)
        layout = cluster_layout(clusters, graph.adjacency, addition=noise.addition, deletion=noise.deletion)
        split, nodes = self.split(graph)
        return GraphData(graph, split, layout, nodes, name)
