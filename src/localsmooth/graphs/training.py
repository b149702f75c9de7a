"""Training on noisy attributes, drawn afresh in every step from the distributions that are certified."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.errors import InvalidInputError
from localsmooth.graphs.draw import AttributeNoise, SparseSample, random_stream
from localsmooth.graphs.graph import AttributedGraph
from localsmooth.graphs.network import GraphNetwork, normalized_adjacency
from localsmooth.graphs.split import NodeSplit
from localsmooth.layout import Layout

__all__ = ["TrainingOptions", "TrainingReport", "train_with_noise"]


@dataclass(frozen=True)
class TrainingOptions:
    """How a network is trained.

    Parameters
    ----------
    learning_rate, weight_decay
        Of Adam.
    epochs
        Most steps; each step sees one draw for every output group.
    patience
        Steps without a lower validation loss after which training stops.
    seed
        For noise and dropout.
    """

    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    epochs: int = 3000
    patience: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        for field in ("learning_rate", "epochs", "patience"):
            if not getattr(self, field) > 0:
                raise InvalidInputError(field, f"got {getattr(self, field)}", "Pass a positive number")


@dataclass(frozen=True, eq=False)
class TrainingReport:
    """What happened in training: losses per epoch, and the epoch whose parameters were kept."""

    losses: Float[np.ndarray, "epochs"]
    validation_losses: Float[np.ndarray, "epochs"]
    best_epoch: int


def train_with_noise(
    network: GraphNetwork,
    graph: AttributedGraph,
    split: NodeSplit,
    layout: Layout,
    options: TrainingOptions | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> TrainingReport:
    """Train in place; on return the network is in evaluation mode with the parameters of the best validation loss.

    In every epoch each output group gets its own draw from its own smoothing distribution, and the loss (and the
    validation loss, on the same draws without dropout every so often) is that of the group's own nodes.

    Parameters
    ----------
    network
        Made for the graph's numbers of attributes and classes.
    graph, split, layout
        Data, and the layout that will be certified.
    options
        See `TrainingOptions`.
    progress
        Called with (epoch, training loss, validation loss).
    """
    options = TrainingOptions() if options is None else options
    torch.manual_seed(options.seed)
    generator = random_stream(options.seed, (2,))  # keys of samples have four entries
    noises = [AttributeNoise.of_group(graph.attributes, layout, group) for group in range(layout.outputs.count)]
    adjacency = normalized_adjacency(torch.from_numpy(graph.edge_index), graph.nodes)
    labels = torch.from_numpy(graph.labels)
    clean = torch.from_numpy(graph.attributes.indices.astype(np.int64))
    pointers = torch.from_numpy(graph.attributes.indptr[:-1].astype(np.int64))
    members = _members(split, layout)
    optimizer = torch.optim.Adam(network.parameters(), options.learning_rate, weight_decay=options.weight_decay)
    losses: list[float] = []
    validation: list[float] = []
    best, best_epoch, best_state = np.inf, 0, copy.deepcopy(network.state_dict())

    def scores(group: int, sample: SparseSample) -> torch.Tensor:
        table = torch.cat([network.weight, -network.weight])
        base = torch.nn.functional.embedding_bag(clean, network.weight, pointers, mode="sum")
        noise = noises[group]
        start = torch.where(torch.from_numpy(noise.from_clean).unsqueeze(1), base, torch.zeros_like(base))
        added = torch.nn.functional.embedding_bag(
            torch.from_numpy(sample.entries.astype(np.int64)),
            table,
            torch.from_numpy(sample.pointers[:-1].astype(np.int64)),
            mode="sum",
        )
        return network.tail(start + added + network.offset, adjacency)

    for epoch in range(options.epochs):
        optimizer.zero_grad()
        total = held_out = 0.0
        for group, (train, held) in enumerate(members):
            sample = noises[group].draw(generator)
            if train.numel():
                network.train()
                loss = torch.nn.functional.cross_entropy(scores(group, sample)[train], labels[train], reduction="sum")
                (loss / split.train.size).backward()
                total += loss.item() / split.train.size
            if held.numel():
                network.eval()
                with torch.no_grad():
                    loss = torch.nn.functional.cross_entropy(scores(group, sample)[held], labels[held], reduction="sum")
                held_out += loss.item() / split.validation.size
        losses.append(total)
        validation.append(held_out)
        # One noisy validation loss is a poor guide: the mean of the last ten decides.
        recent = float(np.mean(validation[-10:]))
        if recent < best:
            best, best_epoch, best_state = recent, epoch, copy.deepcopy(network.state_dict())
        if progress is not None:
            progress(epoch, total, held_out)
        if epoch - best_epoch >= options.patience:
            break
        network.train()
        optimizer.step()
    network.load_state_dict(best_state)
    network.eval()
    return TrainingReport(np.array(losses), np.array(validation), best_epoch)


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
