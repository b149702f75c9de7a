"""The sections that name a node classifier, trained here or by the user."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from safetensors import safe_open
from safetensors.torch import load_file
from safetensors.torch import save as serialised

from localsmooth.config.faults import ConfigurationError
from localsmooth.config.graph_data import GraphData
from localsmooth.config.modules import build_module
from localsmooth.config.section import ExistingPath, Section
from localsmooth.disk import write_atomically
from localsmooth.runs import SamplingPlan
from localsmooth.seeds import torch_seeded
from localsmooth.tasks.graphs import (
    APPNP,
    GCN,
    AttributedGraph,
    EdgeIndexClassifier,
    GraphNetwork,
    NetworkClassifier,
    NodeClassifier,
    NodeTrainingOptions,
    sample_nodes,
    self_labeled,
    train_with_noise,
)

__all__ = ["AnyGraphModel", "AppnpSection", "GcnSection", "GraphModuleSection", "NetworkSection"]

Count = Annotated[int, Field(ge=1)]
_ORIGIN = "trained_with"


class NetworkSection(Section):
    """How a network of this package is trained, with noise from the distributions that are certified."""

    weights: ExistingPath | None = None
    """Trained weights (safetensors) to load; by default the network is trained and kept in the run directory."""
    epochs: Count = 3000
    """Most training steps."""
    patience: Count = 200
    """Steps without a lower validation loss after which training stops."""
    learning_rate: float = Field(default=1e-3, gt=0, allow_inf_nan=False)
    """Of Adam."""
    weight_decay: float = Field(default=1e-3, ge=0, allow_inf_nan=False)
    """Of Adam."""
    self_training: bool = True
    """Train a second time with the first network's smoothed predictions as labels of unlabeled nodes."""
    seed: int = Field(default=0, ge=0)
    """Seed of initial weights, training noise and dropout."""

    @abstractmethod
    def network(self, graph: AttributedGraph) -> GraphNetwork:
        """Make the network with its initial weights, which depend on torch's generator."""

    def build(self, data: GraphData, file: Path) -> NodeClassifier:
        """Make the base classifier: from given weights, from the file, or trained and written to the file.

        Parameters
        ----------
        data
            What it is trained on.
        file
            Where trained weights are kept.

        Raises
        ------
        ConfigurationError
            If weights do not fit.
        """
        with torch_seeded(self.seed):
            network = self.network(data.graph)
        origin = self._origin(data)
        stored = self.weights if self.weights is not None else file
        if stored.exists():
            try:
                with safe_open(stored, "pt") as opened:
                    trained = (opened.metadata() or {}).get(_ORIGIN, origin)
                network.load_state_dict(load_file(stored))
            except Exception as error:
                raise ConfigurationError(f"model: {stored} does not hold weights of this network: {error}") from error
            if self.weights is None and trained != origin:
                raise ConfigurationError(
                    f"model: {stored} was trained with other settings, on another graph or with other noise. "
                    "Use another run directory, or name the file as model.weights"
                )
            return NetworkClassifier(network.eval())
        self._train(network, data)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, serialised(network.state_dict(), {_ORIGIN: origin}))
        return NetworkClassifier(network)

    def _origin(self, data: GraphData) -> str:
        """Digest of everything that training depends on."""
        parts = [self.model_dump_json(exclude={"weights"}), data.graph.digest(), data.layout.digest()]
        parts += [str(part.tolist()) for part in (data.split.train, data.split.validation)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _train(self, network: GraphNetwork, data: GraphData) -> None:
        options = NodeTrainingOptions(self.learning_rate, self.weight_decay, self.epochs, self.patience, seed=self.seed)
        train_with_noise(network, data.graph, data.split, data.layout, options)
        if self.self_training:
            # The candidates of few samples, from streams that the certificate does not use.
            plan = SamplingPlan(200, 1, seed=self.seed + (1 << 32))
            first = sample_nodes(NetworkClassifier(network), data.graph, data.layout, plan)
            graph, split = self_labeled(data.graph, data.split, first.candidate)
            train_with_noise(network, graph, split, data.layout, options)


class AppnpSection(NetworkSection):
    """APPNP: a perceptron with one hidden layer per node, followed by personalised PageRank."""

    kind: Literal["appnp"]
    hidden: Count = 64
    """Width of the hidden layer."""
    steps: int = Field(default=10, ge=0)
    """Propagation steps."""
    teleport: float = Field(default=0.15, ge=0, le=1)
    """Share of a node's own prediction in each step."""

    def network(self, graph: AttributedGraph) -> GraphNetwork:
        """Make the network with its initial weights."""
        return APPNP(graph.width, graph.classes, self.hidden, steps=self.steps, teleport=self.teleport)


class GcnSection(NetworkSection):
    """A graph convolutional network."""

    kind: Literal["gcn"]
    hidden: list[Count] = Field(default=[64], min_length=1)
    """Width of each hidden layer: one layer less than the network has hops."""

    def network(self, graph: AttributedGraph) -> GraphNetwork:
        """Make the network with its initial weights."""
        return GCN(graph.width, graph.classes, tuple(self.hidden))


class GraphModuleSection(Section):
    """A module of the user's own, called with (attributes, edge_index) as those of PyTorch Geometric are."""

    kind: Literal["module"]
    factory: str
    """`package.module:function`; called without arguments, returns the module."""
    checkpoint: ExistingPath | None = None
    """Weights to load into the module: safetensors, or a torch state dict (read with weights_only)."""
    depth: int | None = Field(default=None, ge=0)
    """Hops over which an attribute can influence a prediction, for strictly local certificates."""

    def build(self, data: GraphData, file: Path) -> NodeClassifier:
        """Import and make the module.

        Parameters
        ----------
        data
            The graph, whose classes it tells apart.
        file
            Not used: nothing is trained.

        Raises
        ------
        ConfigurationError
            Naming the key at fault.
        """
        del file
        return EdgeIndexClassifier(build_module(self.factory, self.checkpoint), data.graph.classes, self.depth)


AnyGraphModel = Annotated[AppnpSection | GcnSection | GraphModuleSection, Field(discriminator="kind")]
