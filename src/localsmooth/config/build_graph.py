"""From the sections of a graph's configuration to the objects they describe."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from jaxtyping import Int
from safetensors import safe_open
from safetensors.torch import load_file
from safetensors.torch import save as serialised

from localsmooth.baselines import SparseSmooth
from localsmooth.bounds import SCORE_BOUNDS
from localsmooth.certificates import ExactVotes, RenyiVotes, ScoreCertificate, SparseScores, VoteCertificate
from localsmooth.collective import Bound, Exact
from localsmooth.config.build import build_rule
from localsmooth.config.build_model import build_module
from localsmooth.config.explain import ConfigurationError
from localsmooth.config.graph import (
    AppnpSection,
    GcnSection,
    GraphCertificateSection,
    GraphConfiguration,
    GraphModuleSection,
)
from localsmooth.disk import write_atomically
from localsmooth.graphs import (
    APPNP,
    GCN,
    AttackLimits,
    AttributedGraph,
    EdgeIndexClassifier,
    GraphNetwork,
    GraphSettings,
    NetworkClassifier,
    NodeClassifier,
    NodeSplit,
    NodeTrainingOptions,
    cluster_layout,
    digit_graph,
    largest_component,
    load_npz,
    metis_clusters,
    sample_nodes,
    self_labeled,
    spectral_clusters,
    split_per_class,
    train_with_noise,
)
from localsmooth.layout import Layout
from localsmooth.runs import SamplingPlan
from localsmooth.seeds import torch_seeded
from localsmooth.tasks.registry import COLLECTIVE_BOUNDS

__all__ = [
    "GraphData",
    "build_classifier",
    "build_graph_data",
    "build_graph_plan",
    "build_graph_settings",
]

_ORIGIN = "trained_with"


@dataclass(frozen=True, eq=False)
class GraphData:
    """A prepared graph with its split, its layout and the nodes to certify."""

    graph: AttributedGraph
    split: NodeSplit
    layout: Layout
    nodes: Int[np.ndarray, "nodes"]
    name: str


def build_graph_data(configuration: GraphConfiguration) -> GraphData:
    """Read and prepare the graph, split its nodes, and lay out the noise."""
    section, noise = configuration.graph, configuration.noise
    embedded = section.data == "digits"
    graph = digit_graph() if embedded else largest_component(load_npz(section.data))
    clustering = metis_clusters if section.clustering == "metis" else spectral_clusters
    layout = cluster_layout(
        clustering(graph, section.clusters, 0), graph.adjacency, addition=noise.addition, deletion=noise.deletion
    )
    split = split_per_class(graph.labels, per_class=section.per_class, seed=section.split_seed)
    nodes = split.test if section.evaluate == "test" else split.validation
    return GraphData(graph, split, layout, nodes, "digits" if embedded else Path(section.data).stem)


def build_classifier(configuration: GraphConfiguration, data: GraphData, file: Path) -> NodeClassifier:
    """Make the base classifier: from given weights, from the file, or trained and written to the file.

    Raises
    ------
    ConfigurationError
        Naming the key at fault.
    """
    section = configuration.model
    if isinstance(section, GraphModuleSection):
        return _module(section, data.graph.classes)
    network, origin = _network(section, data.graph), _origin(section, data)
    stored = section.weights if section.weights is not None else file
    if stored.exists():
        try:
            with safe_open(stored, "pt") as opened:
                trained = (opened.metadata() or {}).get(_ORIGIN, origin)
            network.load_state_dict(load_file(stored))
        except Exception as error:
            raise ConfigurationError(f"model: {stored} does not hold weights of this network: {error}") from error
        if section.weights is None and trained != origin:
            raise ConfigurationError(
                f"model: {stored} was trained with other settings, on another graph or with other noise. "
                "Use another run directory, or name the file as model.weights"
            )
        return NetworkClassifier(network.eval())
    _train(network, section, data)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, serialised(network.state_dict(), {_ORIGIN: origin}))
    return NetworkClassifier(network)


def _origin(section: AppnpSection | GcnSection, data: GraphData) -> str:
    """Digest of everything that training depends on."""
    parts = [section.model_dump_json(exclude={"weights"}), data.graph.digest(), data.layout.digest()]
    parts += [str(part.tolist()) for part in (data.split.train, data.split.validation)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _network(section: AppnpSection | GcnSection, graph: AttributedGraph) -> GraphNetwork:
    with torch_seeded(section.seed):
        if isinstance(section, AppnpSection):
            return APPNP(graph.width, graph.classes, section.hidden, steps=section.steps, teleport=section.teleport)
        return GCN(graph.width, graph.classes, tuple(section.hidden))


def _train(network: GraphNetwork, section: AppnpSection | GcnSection, data: GraphData) -> None:
    options = NodeTrainingOptions(
        section.learning_rate, section.weight_decay, section.epochs, section.patience, seed=section.seed
    )
    train_with_noise(network, data.graph, data.split, data.layout, options)
    if section.self_training:
        # The candidates of few samples, from streams that the certificate does not use.
        plan = SamplingPlan(200, 1, seed=section.seed + (1 << 32))
        first = sample_nodes(NetworkClassifier(network), data.graph, data.layout, plan)
        graph, split = self_labeled(data.graph, data.split, first.candidate)
        train_with_noise(network, graph, split, data.layout, options)


def _module(section: GraphModuleSection, classes: int) -> NodeClassifier:
    return EdgeIndexClassifier(build_module(section.factory, section.checkpoint), classes, section.depth)


def build_graph_plan(configuration: GraphConfiguration) -> SamplingPlan:
    """Make the sampling plan."""
    section = configuration.sampling
    return SamplingPlan(section.n_candidate, section.n_bound, section.seed, section.chunk_size)


def build_graph_settings(section: GraphCertificateSection) -> GraphSettings:
    """Make what is proven from the tallies."""
    return GraphSettings(
        section.alpha,
        section.additions,
        section.deletions,
        certificates=[_certificate(name, section) for name in section.base],
        bounds={name: _bound(name, section) for name in section.bounds},
        simultaneous=build_rule(section.many_outputs),
        score_bound=SCORE_BOUNDS[section.score_bound](),
        limits=AttackLimits(**{field.name: getattr(section, field.name) for field in fields(AttackLimits)}),
        strictly_local=section.strictly_local,
        baseline=None if section.baseline is None else SparseSmooth(section.baseline.horizon),
    )


def _certificate(name: str, section: GraphCertificateSection) -> VoteCertificate | ScoreCertificate:
    if name == RenyiVotes.name:
        return RenyiVotes() if section.renyi_orders is None else RenyiVotes(tuple(section.renyi_orders))
    return section.exact_votes.build() if name == ExactVotes.name else SparseScores()


def _bound(name: str, section: GraphCertificateSection) -> Bound:
    return Exact(section.exact_gap, section.exact_seconds) if name == "exact" else COLLECTIVE_BOUNDS[name]
