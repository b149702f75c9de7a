"""Training on noisy attributes, drawn afresh in every step from the distributions that are certified."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float, Int
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.seeds import torch_seeded
from localsmooth.tasks.graphs.attribute_noise import AttributeNoise, random_stream
from localsmooth.tasks.graphs.graph import AttributedGraph
from localsmooth.tasks.graphs.linear import sparse_linear
from localsmooth.tasks.graphs.network import APPNP, GraphNetwork, normalized_adjacency
from localsmooth.tasks.graphs.split import NodeSplit

__all__ = ["NodeTrainingOptions", "NodeTrainingReport", "self_labeled", "train_with_noise"]

_VALIDATION_DRAWS = 3


@dataclass(frozen=True)
class NodeTrainingOptions:
    """How a network is trained.

    Parameters
    ----------
    learning_rate, weight_decay
        Of Adam.
    epochs
        Most steps; each step sees one draw for every output group.
    patience
        Steps without a lower validation loss after which training stops.
    validate_every
        Steps from one validation to the next.
    seed
        For noise and dropout.

    Raises
    ------
    InvalidInputError
        If a number is not positive.
    """

    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    epochs: int = 3000
    patience: int = 200
    validate_every: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for field in ("learning_rate", "epochs", "patience", "validate_every"):
            if not getattr(self, field) > 0:
                raise InvalidInputError(field, f"got {getattr(self, field)}", "Pass a positive number")


@dataclass(frozen=True, eq=False)
class NodeTrainingReport:
    """What happened in training: losses, validation losses, and the epoch whose parameters were kept."""

    losses: Float[np.ndarray, "epochs"]
    validation_losses: Float[np.ndarray, "validations"]
    best_epoch: int


def train_with_noise(
    network: nn.Module,
    graph: AttributedGraph,
    split: NodeSplit,
    layout: Layout,
    options: NodeTrainingOptions | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> NodeTrainingReport:
    """Train in place; on return the network is in evaluation mode with the parameters of the best validation loss.

    In every epoch each output group gets its own draw from its own smoothing distribution, and the losses are those
    of the group's own nodes.

    Parameters
    ----------
    network
        Made for the graph's numbers of attributes and classes: a `GraphNetwork`, which is faster, or any module that is
        called as `network(attributes, edge_index)` and returns class scores before the softmax, nodes × classes.
    graph, split, layout
        Data, and the layout that will be certified.
    options
        See `NodeTrainingOptions`.
    progress
        Called with (epoch, training loss, validation loss).
    """
    options = NodeTrainingOptions() if options is None else options
    with torch_seeded(options.seed):
        return _train(network, graph, split, layout, options, progress)


def _train(
    network: nn.Module,
    graph: AttributedGraph,
    split: NodeSplit,
    layout: Layout,
    options: NodeTrainingOptions,
    progress: Callable[[int, float, float], None] | None,
) -> NodeTrainingReport:
    generator = random_stream(options.seed, (2,))  # keys of samples have four entries
    noises = [AttributeNoise.of_group(graph.attributes, layout, group) for group in range(layout.outputs.count)]
    edges = torch.from_numpy(graph.edge_index)
    adjacency = normalized_adjacency(edges, graph.nodes)
    labels = torch.from_numpy(graph.labels)
    members = _members(split, layout)
    influences = [
        tuple(network.influence(adjacency, part) if isinstance(network, APPNP) else None for part in parts)
        for parts in members
    ]
    # The same draws every time, so that losses of different epochs compare.
    held_back = random_stream(options.seed, (3,))
    fixed = [[noise.bits(noise.draw(held_back)) for _ in range(_VALIDATION_DRAWS)] for noise in noises]
    optimizer = torch.optim.Adam(network.parameters(), options.learning_rate, weight_decay=options.weight_decay)
    losses: list[float] = []
    validation: list[float] = []
    best, best_epoch, best_state = np.inf, 0, copy.deepcopy(network.state_dict())

    for epoch in range(options.epochs):
        optimizer.zero_grad()
        validates = epoch % options.validate_every == 0
        total = held_out = 0.0
        for group, (train, held) in enumerate(members):
            if train.numel():
                bits = noises[group].bits(noises[group].draw(generator))
                network.train()
                scores = _scores(network, bits, edges, adjacency, train, influences[group][0])
                loss = torch.nn.functional.cross_entropy(scores, labels[train], reduction="sum") / split.train.size
                loss.backward()
                total += loss.item()
            if held.numel() and validates:
                network.eval()
                with torch.no_grad():
                    for bits in fixed[group]:
                        scores = _scores(network, bits, edges, adjacency, held, influences[group][1])
                        loss = torch.nn.functional.cross_entropy(scores, labels[held], reduction="sum")
                        held_out += loss.item() / (split.validation.size * _VALIDATION_DRAWS)
        losses.append(total)
        if validates:
            validation.append(held_out)
            if held_out < best:
                best, best_epoch, best_state = held_out, epoch, copy.deepcopy(network.state_dict())
        if progress is not None:
            progress(epoch, total, validation[-1])
        if epoch - best_epoch >= options.patience:
            break
        optimizer.step()
    network.load_state_dict(best_state)
    network.eval()
    return NodeTrainingReport(np.array(losses), np.array(validation), best_epoch)


def self_labeled(
    graph: AttributedGraph, split: NodeSplit, predictions: Int[np.ndarray, "nodes"]
) -> tuple[AttributedGraph, NodeSplit]:
    """Graph and split for a second round of training, in which the first round's predictions stand in for labels.

    Twenty labels a class are few for a network that has to see through noise: it learns them by heart. What the
    smoothed classifier of a first round predicts (the candidates of a few samples) gives every other node a label as
    well. True labels of test nodes are not looked at.

    Parameters
    ----------
    graph, split
        The data.
    predictions
        A class for each node.

    Returns
    -------
    tuple
        The graph with predicted labels outside of the training and validation nodes, and a split that trains on all
        nodes but the validation nodes.
    """
    labels = predictions.astype(np.int64)
    known = np.concatenate([split.train, split.validation])
    labels[known] = graph.labels[known]
    everything = np.setdiff1d(np.arange(graph.nodes), split.validation)
    return dataclasses.replace(graph, labels=labels), NodeSplit(everything, split.validation, split.test)


def _scores(
    network: nn.Module,
    bits: sp.csr_array,
    edges: torch.Tensor,
    adjacency: torch.Tensor,
    outputs: torch.Tensor,
    influence: torch.Tensor | None,
) -> torch.Tensor:
    """Class scores of some nodes, in one product where the network's propagation is linear."""
    if not isinstance(network, GraphNetwork):
        return network(torch.from_numpy(bits.toarray()).to(torch.float32), edges)[outputs]
    hidden = sparse_linear(bits, network.weight) + network.offset
    if isinstance(network, APPNP) and influence is not None:
        return influence @ network.local(hidden)
    return network.tail(hidden, adjacency)[outputs]


def _members(split: NodeSplit, layout: Layout) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Training and validation nodes of each output group."""
    if not (split.train.size and split.validation.size):
        raise InvalidInputError("split", "training or validation nodes are missing", "Use split_per_class")
    groups = layout.outputs.labels
    return [
        (
            torch.from_numpy(split.train[groups[split.train] == group]),
            torch.from_numpy(split.validation[groups[split.validation] == group]),
        )
        for group in range(layout.outputs.count)
    ]
