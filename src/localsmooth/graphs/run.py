"""A whole run from one configuration section: data, training, sampling, certificate."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Int

from localsmooth.bounds import SCORE_BOUNDS, ScoreBound
from localsmooth.certificates import BaseCertificates, RenyiVotes, ScoreCertificate, SparseScores, VoteCertificate
from localsmooth.collective import Bound, Exact
from localsmooth.graphs.certify import COLLECTIVE_BOUNDS, NodeCurve, certify_nodes, node_certificates
from localsmooth.graphs.clusters import metis_clusters, spectral_clusters
from localsmooth.graphs.digits import digit_graph
from localsmooth.graphs.fast import NetworkClassifier
from localsmooth.graphs.graph import AttributedGraph, largest_component
from localsmooth.graphs.layouts import cluster_layout
from localsmooth.graphs.network import APPNP, GCN, GraphNetwork
from localsmooth.graphs.npz import load_npz
from localsmooth.graphs.sampler import sample_nodes
from localsmooth.graphs.section import GraphSection
from localsmooth.graphs.split import NodeSplit, split_per_class
from localsmooth.graphs.threat import attribute_caps, budget_grid, flip_threat
from localsmooth.graphs.training import TrainingOptions, self_labeled, train_with_noise
from localsmooth.layout import Layout
from localsmooth.noise import FlipCaps
from localsmooth.sampling import DirectoryStore, ItemTally, SamplingPlan, SamplingProgress

__all__ = ["GraphData", "GraphRun", "certify_run", "load_data", "make_network", "run_graph", "trained_network"]


@dataclass(frozen=True, eq=False)
class GraphData:
    """A prepared graph with its split and layout."""

    graph: AttributedGraph
    split: NodeSplit
    layout: Layout


@dataclass(frozen=True, eq=False)
class GraphRun:
    """What a run leaves behind.

    Parameters
    ----------
    data
        Graph, split and layout.
    tally
        Votes and scores of all nodes.
    nodes
        The nodes that are certified.
    base
        Their base certificates.
    additions, deletions, joint
        Certified curves for additions alone, for deletions alone, and for every pair of budgets (ε⁻ varies fastest).
    """

    data: GraphData
    tally: ItemTally
    nodes: Int[np.ndarray, "nodes"]
    base: BaseCertificates
    additions: NodeCurve
    deletions: NodeCurve
    joint: NodeCurve


def load_data(section: GraphSection) -> GraphData:
    """Read and prepare the graph, split its nodes, and lay out the noise."""
    graph = digit_graph() if section.data == "digits" else largest_component(load_npz(section.data))
    clustering = metis_clusters if section.clustering == "metis" else spectral_clusters
    layout = cluster_layout(
        clustering(graph, section.clusters, 0), graph.adjacency, addition=section.addition, deletion=section.deletion
    )
    split = split_per_class(graph.labels, per_class=section.per_class, seed=section.split_seed)
    return GraphData(graph, split, layout)


def make_network(section: GraphSection, graph: AttributedGraph) -> GraphNetwork:
    """Make an untrained network, in its training mode."""
    torch.manual_seed(section.training_seed)
    if section.model == "appnp":
        return APPNP(graph.width, graph.classes, section.hidden[0])
    return GCN(graph.width, graph.classes, tuple(section.hidden))


def trained_network(section: GraphSection, data: GraphData, file: str | os.PathLike[str]) -> GraphNetwork:
    """Load the network from a safetensors file, or train it and write the file."""
    network = make_network(section, data.graph)
    path = Path(file)
    if path.exists():
        network.load_state_dict(safetensors.torch.load_file(path))
        return network.eval()
    options = TrainingOptions(
        section.learning_rate, section.weight_decay, section.epochs, section.patience, seed=section.training_seed
    )
    train_with_noise(network, data.graph, data.split, data.layout, options)
    if section.self_training:
        # The candidates of few samples, from streams that the certificate does not use.
        plan = SamplingPlan(200, 1, seed=section.training_seed + (1 << 32))
        first = sample_nodes(NetworkClassifier(network), data.graph, data.layout, plan)
        graph, split = self_labeled(data.graph, data.split, first.candidate)
        train_with_noise(network, graph, split, data.layout, options)
    path.parent.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file(network.state_dict(), path)
    return network


def certify_run(section: GraphSection, data: GraphData, tally: ItemTally) -> GraphRun:
    """Certify from tallies that exist already."""
    nodes = data.split.test if section.evaluate == "test" else data.split.validation
    base = node_certificates(
        tally,
        data.layout,
        nodes,
        alpha=section.alpha,
        certificates=_certificates(section),
        score_bound=_score_bound(section),
    )
    labels, caps = data.graph.labels[nodes], attribute_caps(data.graph, data.layout.inputs)
    bound: Bound = Exact() if section.bound == "exact" else COLLECTIVE_BOUNDS[section.bound]

    def curve(caps: FlipCaps, additions: np.ndarray, deletions: np.ndarray) -> NodeCurve:
        return certify_nodes(base, labels, flip_threat(caps, additions=additions, deletions=deletions), bound)

    none = np.zeros(1, np.int64)
    return GraphRun(
        data,
        tally,
        nodes,
        base,
        curve(caps, *budget_grid(section.additions, none.tolist())),
        curve(caps, *budget_grid(none.tolist(), section.deletions)),
        curve(caps, *budget_grid(section.additions, section.deletions)),
    )


def run_graph(
    section: GraphSection, directory: str | os.PathLike[str], progress: SamplingProgress | None = None
) -> GraphRun:
    """Train or load, sample what is missing, certify. Interrupted and called again, it goes on where it stopped.

    Parameters
    ----------
    section
        The configuration, for example ``GraphSection(**tomllib.load(file)["graph"])``.
    directory
        Where network and tallies are kept.
    progress
        Told how far sampling has come.
    """
    place = Path(directory)
    data = load_data(section)
    network = trained_network(section, data, place / "network.safetensors")
    plan = SamplingPlan(section.n_candidate, section.n_bound, section.seed, section.chunk_size)
    with DirectoryStore(place / "tallies") as store:
        tally = sample_nodes(
            NetworkClassifier(network),
            data.graph,
            data.layout,
            plan,
            store,
            batch_size=section.batch_size,
            progress=progress,
        )
    return certify_run(section, data, tally)


def _certificates(section: GraphSection) -> list[VoteCertificate | ScoreCertificate]:
    certificates: list[VoteCertificate | ScoreCertificate] = []
    if section.statistics != "scores":
        certificates.append(RenyiVotes(tuple(section.orders)))
    if section.statistics != "votes":
        certificates.append(SparseScores())
    return certificates


def _score_bound(section: GraphSection) -> ScoreBound:
    return SCORE_BOUNDS[section.score_bound]()
