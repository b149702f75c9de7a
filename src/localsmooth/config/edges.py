"""The sections of a configuration file for a node classifier whose edges are perturbed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import model_validator

from localsmooth.config.certificate import CertificateSection
from localsmooth.config.faults import ConfigurationError
from localsmooth.config.graph import NodeRunSection
from localsmooth.config.graph_data import Count, GraphData, NodesSection
from localsmooth.config.graph_models import AnyGraphModel
from localsmooth.config.noises import SparseFlipsSection
from localsmooth.config.section import ExistingPath
from localsmooth.layout import Layout
from localsmooth.tasks import Smoothing, Task
from localsmooth.tasks.graphs import (
    AttributedGraph,
    EdgeTask,
    affinity_ranks,
    cluster_pair_layout,
    isotropic_node_layout,
    isotropic_pair_layout,
    load_npz,
)

__all__ = ["EdgeConfiguration", "EdgeSection"]


class EdgeSection(NodesSection):
    """The graph whose edges are perturbed, and which of its nodes are certified."""

    data: ExistingPath
    """An .npz file as `[graph]` takes it, of at most 4096 nodes, all of which stay."""
    reference: ExistingPath | None = None
    """Another graph on the same nodes, such as an earlier one, in such a file: clusters, and how near they are to each
    other, come from its edges. They must not come from those that are perturbed."""
    clusters: Count = 1
    """Number of clusters that share a noise level; 1 is isotropic smoothing, more need a reference."""

    @model_validator(mode="after")
    def _fits(self) -> EdgeSection:
        if self.clusters > 1 and self.reference is None:
            raise ValueError("clusters: more than one need a reference, whose edges nobody perturbs")
        return self

    def build(self, noise: SparseFlipsSection) -> GraphData:
        """Read the graph, split its nodes, and lay out the noise.

        Parameters
        ----------
        noise
            The probabilities that the clusters get.

        Raises
        ------
        ConfigurationError
            If the reference is about other nodes.
        """
        graph = load_npz(self.data)
        split, nodes = self.split(graph)
        return GraphData(graph, split, self._layout(graph, noise), nodes, Path(self.data).stem)

    def _layout(self, graph: AttributedGraph, noise: SparseFlipsSection) -> Layout:
        if self.reference is None or self.clusters == 1:
            return isotropic_pair_layout(graph.nodes, addition=noise.addition_min, deletion=noise.deletion_min)
        reference = load_npz(self.reference)
        if reference.nodes != graph.nodes:
            raise ConfigurationError(f"edges.reference: it has {reference.nodes} nodes, the graph {graph.nodes}.")
        clusters = self.clustered(reference, self.clusters)
        return cluster_pair_layout(
            clusters,
            affinity_ranks(reference.adjacency, clusters),
            addition=(noise.addition_min, noise.addition_max),
            deletion=(noise.deletion_min, noise.deletion_max),
        )


class EdgeConfiguration(NodeRunSection):
    """One certification of a graph's nodes against flips of edges; the section [edges] tells it from other runs."""

    edges: EdgeSection
    """The graph and its clusters."""
    model: AnyGraphModel
    """The base classifier; a network that is trained here is trained on the graph as it is."""
    noise: SparseFlipsSection
    """The smoothing distribution of edges, in the output's own cluster and in the farthest."""
    certificate: CertificateSection
    """What is proven from them: budgets are numbers of edges."""

    @model_validator(mode="after")
    def _fits(self) -> EdgeConfiguration:
        noise = self.noise
        if self.edges.clusters == 1 and (
            noise.addition_min != noise.addition_max or noise.deletion_min != noise.deletion_max
        ):
            raise ValueError("noise: one cluster has one level; repeat the same numbers")
        return self

    @property
    def groups(self) -> int:
        """Number of clusters."""
        return self.edges.clusters

    @property
    def items(self) -> object:
        """The file, and which of its nodes."""
        return self.edges.data, self.edges.choice

    def prepare(self, out: Path, say: Callable[[str], None]) -> tuple[Task[Any, Any], Smoothing, Any]:
        """Make what is certified, how it is smoothed, and what is proven; see `GraphConfiguration.prepare`."""
        data, noise = self.edges.build(self.noise), self.noise.build()
        still = isotropic_node_layout(data.graph.nodes, addition=0.0, deletion=0.0)
        classifier = self.trained(self.model, GraphData(data.graph, data.split, still, data.nodes, data.name), out, say)
        return (
            EdgeTask(classifier, data.graph, data.nodes, called=data.name),
            Smoothing(data.layout, self.sampling.build(), noise),
            self.certificate.build(noise, self.noise.threat()),
        )
