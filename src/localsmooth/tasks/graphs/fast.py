"""The fast path for GCN and APPNP: the first layer as a sum of weight rows, propagation for a batch at once."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Int

from localsmooth.errors import InvalidInputError
from localsmooth.models import can_be_copied, replica_of, require_evaluation_mode, working_precision
from localsmooth.tasks.graphs.attribute_noise import AttributeNoise, SparseSample
from localsmooth.tasks.graphs.classifier import NodeClassifier, PreparedClassifier, require_cpu
from localsmooth.tasks.graphs.graph import AttributedGraph
from localsmooth.tasks.graphs.linear import sparse_linear
from localsmooth.tasks.graphs.network import APPNP, GraphNetwork, normalized_adjacency, parameters_digest
from localsmooth.tasks.graphs.receptive import receptive_nodes

__all__ = ["NetworkClassifier", "first_layer"]

# A multiply-add of a sparse product costs about this many of a dense one.
_SPARSE_COST = 32
_LARGEST_DENSE = 1 << 28


def first_layer(
    noise: AttributeNoise, samples: Sequence[SparseSample], table: torch.Tensor, start: torch.Tensor
) -> torch.Tensor:
    """First linear map of noisy attributes, as each row's start plus the weight rows that the sample names.

    Parameters
    ----------
    noise
        Noise that the samples were drawn from.
    samples
        Draws.
    table
        The weights on top of their negatives, 2·attributes × hidden.
    start
        First linear map of each node's start (clean or empty), nodes × hidden.

    Returns
    -------
    torch.Tensor
        Shape (samples, nodes, hidden).
    """
    rows = samples[0].pointers.size - 1
    ends = np.cumsum([0, *(sample.entries.size for sample in samples)])
    entries = np.concatenate([sample.entries for sample in samples])
    offsets = np.concatenate([s.pointers[:-1] + end for s, end in zip(samples, ends[:-1], strict=True)])
    total = torch.nn.functional.embedding_bag(
        torch.from_numpy(entries), table, torch.from_numpy(offsets.astype(np.int32)), mode="sum"
    )
    return (
        total.reshape(len(samples), rows, -1) + start
        if table.requires_grad
        else total.view(len(samples), rows, -1).add_(start)
    )


def _starts(noise: AttributeNoise, clean: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """First linear map of each node's start: of its clean row, or of an empty row."""
    kept = torch.from_numpy(noise.from_clean).unsqueeze(1)
    return torch.where(kept, clean, torch.zeros_like(clean)) + offset


class NetworkClassifier(NodeClassifier):
    """A GCN or APPNP as base classifier.

    Noise is drawn only on nodes that can reach the outputs, and only the outputs are computed where the network's
    propagation is linear.

    Parameters
    ----------
    network
        In evaluation mode.

    Raises
    ------
    InvalidInputError
        If the network is in training mode, or not on the CPU.
    """

    def __init__(self, network: GraphNetwork) -> None:
        require_evaluation_mode(network, "network")
        require_cpu(network)
        self.network = network
        self.evaluated_in = working_precision(network)
        self.classes = network.classes
        self.depth = network.depth

    @property
    def concurrent(self) -> bool:
        """Whether the network has no hooks, which could reach beyond a copy."""
        return can_be_copied(self.network)

    def replica(self) -> NetworkClassifier:
        """Return the same classifier with a copy of every part, on the same weights."""
        return NetworkClassifier(replica_of(self.network))

    def prepare(self, graph: AttributedGraph, outputs: Int[np.ndarray, "outputs"]) -> PreparedClassifier:
        """Set up the prediction of some nodes of a graph.

        Raises
        ------
        InvalidInputError
            If the graph has another number of attributes than the network.
        """
        if graph.width != self.network.weight.shape[0]:
            raise InvalidInputError(
                "graph",
                f"it has {graph.width} attributes, the network {self.network.weight.shape[0]}",
                "Use the graph that the network was trained on, or one with the same attributes",
            )
        return _PreparedNetwork(self.network, graph, outputs)

    def fingerprint(self) -> str:
        """Digest of kind, hyperparameters and parameters."""
        network = self.network
        extra = (network.steps, network.teleport) if isinstance(network, APPNP) else ()
        return hashlib.sha256(f"{extra} {parameters_digest(network)}".encode()).hexdigest()


class _PreparedNetwork(PreparedClassifier):
    @torch.no_grad()
    def __init__(self, network: GraphNetwork, graph: AttributedGraph, outputs: Int[np.ndarray, "outputs"]) -> None:
        self.inputs = receptive_nodes(graph.adjacency, outputs, network.depth)
        weight = network.weight.detach()
        self._table = torch.cat([weight, -weight])
        self._clean = sparse_linear(graph.attributes[self.inputs].tocsr(), weight)
        self._offset = network.offset.detach()
        self._start: tuple[AttributeNoise, torch.Tensor] | None = None
        places = np.searchsorted(self.inputs, outputs)
        self._tail = _prepare_tail(network, graph, self.inputs, places)

    def __call__(self, noise: AttributeNoise, samples: Sequence[SparseSample]) -> torch.Tensor:
        return self._tail(self.first_layer(noise, samples))

    def first_layer(self, noise: AttributeNoise, samples: Sequence[SparseSample]) -> torch.Tensor:
        """Samples × inputs × hidden."""
        if self._start is None or self._start[0] is not noise:
            self._start = noise, _starts(noise, self._clean, self._offset)
        return first_layer(noise, samples, self._table, self._start[1])

    def tail(self, hidden: torch.Tensor) -> torch.Tensor:
        """Samples × inputs × hidden to samples × classes × outputs; may overwrite its argument."""
        return self._tail(hidden)


def _prepare_tail(
    network: GraphNetwork, graph: AttributedGraph, inputs: np.ndarray, places: np.ndarray
) -> Callable[[torch.Tensor], torch.Tensor]:
    adjacency = normalized_adjacency(torch.from_numpy(graph.edge_index), graph.nodes)
    if inputs.size < graph.nodes:
        # Values beyond the hops that matter go wrong at the rim, and never reach the outputs.
        chosen = torch.from_numpy(inputs)
        adjacency = adjacency.index_select(0, chosen).index_select(1, chosen).coalesce()
    wanted = torch.from_numpy(places)
    if isinstance(network, APPNP):
        return _appnp_tail(network, adjacency, wanted)
    compressed = _compressed(adjacency)

    def tail(hidden: torch.Tensor) -> torch.Tensor:
        scores = network.tail(hidden.transpose(0, 1).contiguous(), compressed)
        return scores[wanted].permute(1, 2, 0)

    return tail


def _compressed(adjacency: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return adjacency.to_sparse_csr()


def _appnp_tail(
    network: APPNP, adjacency: torch.Tensor, wanted: torch.Tensor
) -> Callable[[torch.Tensor], torch.Tensor]:
    nodes, outputs = adjacency.shape[0], wanted.numel()
    weight, bias = network.last_weight.detach(), network.last_bias.detach()
    sparse_cost = max(network.steps, 1) * adjacency._nnz() * _SPARSE_COST
    # Propagation is linear: to few outputs, one dense matrix is faster than many sparse products.
    dense = outputs * nodes <= min(sparse_cost, _LARGEST_DENSE)
    matrix = network.influence(adjacency, wanted) if dense else _compressed(adjacency)

    def tail(hidden: torch.Tensor) -> torch.Tensor:
        samples = hidden.shape[0]
        own = hidden.relu_().reshape(samples * nodes, -1) @ weight
        own = own.add_(bias).reshape(samples, nodes, -1).transpose(0, 1).reshape(nodes, -1)
        spread = matrix @ own if dense else network.propagate(own, matrix)[wanted]
        return spread.reshape(outputs, samples, -1).permute(1, 2, 0)

    return tail
