"""Graphs of a few bits, whose smoothed node classifiers are known exactly for every attribute matrix or edge set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from bit_worlds import all_bits, flip_law, one_hot
from ledger import Truth
from torch import nn

from localsmooth.layout import Layout
from localsmooth.tasks.graphs import (
    AttributedGraph,
    EdgeIndexClassifier,
    cluster_layout,
    cluster_pair_layout,
    edge_bits,
    graph_from_arrays,
    isotropic_node_layout,
    isotropic_pair_layout,
    receptive_fields,
)
from localsmooth.tasks.graphs.sampler import SCORE_BINS

__all__ = ["BitTable", "GraphWorld", "attribute_world", "edge_world"]


class BitTable(nn.Module):
    """Class scores of every node of one small graph, looked up by its attribute bits or its edges.

    Parameters
    ----------
    table
        Logits, nodes × classes × 2^bits.
    edges
        Whether to look at edges, the upper triangle row after row, instead of attributes.
    """

    def __init__(self, table: np.ndarray, edges: bool) -> None:
        super().__init__()
        self.register_buffer("table", torch.from_numpy(table))
        self.nodes, self.edges = len(table), edges

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        copies = attributes.shape[0] // self.nodes
        bits = attributes.reshape(copies, -1)
        if self.edges:
            joined = torch.zeros(copies, self.nodes, self.nodes)
            joined[edge_index[0] // self.nodes, edge_index[0] % self.nodes, edge_index[1] % self.nodes] = 1
            rows, columns = torch.triu_indices(self.nodes, self.nodes, 1)
            bits = joined[:, rows, columns]
        code = (bits.round().long() * 2 ** torch.arange(bits.shape[1] - 1, -1, -1)).sum(dim=1)
        return self.table[..., code].permute(2, 0, 1).reshape(copies * self.nodes, -1)


@dataclass(frozen=True, eq=False)
class GraphWorld:
    """A graph, a layout, and the scores of its nodes for every value of the bits that are certified.

    Parameters
    ----------
    graph, layout
        As they are certified.
    table
        Scores, nodes × classes × 2^bits, half a step of the grid above it.
    edges
        Whether the bits are edges.
    depth
        Hops that the classifier sees; None for all.
    """

    graph: AttributedGraph
    layout: Layout
    table: np.ndarray
    edges: bool = False
    depth: int | None = None

    @property
    def classifier(self) -> EdgeIndexClassifier:
        return EdgeIndexClassifier(
            BitTable(np.log(self.table), self.edges).eval(), classes=self.table.shape[1], depth=self.depth
        )

    @property
    def bits(self) -> np.ndarray:
        """The clean bits."""
        clean = edge_bits(self.graph) if self.edges else self.graph.attributes.toarray().ravel()
        return clean.astype(int)

    @property
    def owner(self) -> np.ndarray:
        """Place in the layout's inputs of each bit."""
        return np.arange(self.bits.size) // (1 if self.edges else self.graph.width)

    @property
    def points(self) -> np.ndarray:
        every = all_bits(self.bits.size)
        return every[np.argsort((every != self.bits).sum(axis=1), kind="stable")]

    def flips(self) -> tuple[np.ndarray, np.ndarray]:
        """Additions and deletions that lead to each point, at each of the layout's inputs: points × inputs."""
        member = np.eye(self.layout.inputs.labels.size, dtype=int)[self.owner]
        return (self.points > self.bits).astype(int) @ member, (self.points < self.bits).astype(int) @ member

    def outcomes(self, group: int) -> np.ndarray:
        chances = self.layout.levels[group][self.layout.inputs.labels[self.owner]]
        return flip_law(self.points, all_bits(self.bits.size), chances)

    @property
    def rounded(self) -> np.ndarray:
        return np.floor(self.table * SCORE_BINS) / SCORE_BINS

    def law(self) -> Truth:
        groups = self.layout.outputs.labels
        laws = [self.outcomes(group) for group in range(self.layout.outputs.count)]
        made = [
            np.stack([one[n] @ laws[group].T for n, group in enumerate(groups)]).transpose(2, 0, 1)
            for one in (one_hot(self.table), self.rounded)
        ]
        size = np.abs(self.points - self.bits).sum(axis=1).astype(float)
        return Truth(*made, size=size, tolerance=0.0)

    def moments(self, nodes: np.ndarray, candidate: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probability, mean score and mean squared score of the candidates of some nodes."""
        law, own = self.law(), candidate[nodes]
        groups = self.layout.outputs.labels
        square = [
            self.rounded[n, c] ** 2 @ self.outcomes(groups[n])[0]
            for n, c in zip(nodes.tolist(), own.tolist(), strict=True)
        ]
        return law.votes[0][nodes, own], law.scores[0][nodes, own], np.array(square)


def _table(rng: np.random.Generator, nodes: int, classes: int, bits: int, seen: np.ndarray) -> np.ndarray:
    """Tables of scores that depend on the bits that a node sees only."""
    made = np.empty((nodes, classes, 1 << bits))
    every = all_bits(bits)
    for n in range(nodes):
        favourite = int(rng.integers(classes))
        centre = rng.integers(0, 2, bits)
        away = ((every != centre) & seen[n]).sum(axis=1)
        kind = rng.integers(0, 3)
        wanted = away <= rng.integers(1, max(2, int(seen[n].sum()))) if kind else rng.random(1 << bits) < 0.9
        if not kind:
            # At random, as a function of what is seen.
            code = (every * seen[n]) @ (1 << np.arange(bits))
            wanted = wanted[code]
        high, low = rng.choice([255, 255, 129, 180]), rng.choice([0, 0, 126, 80])
        own = (np.where(wanted, high, low) + 0.5) / SCORE_BINS
        made[n] = 1e-9
        made[n, favourite] = own
        made[n, (favourite + 1) % classes] = 1 - own
    return made / made.sum(axis=1, keepdims=True)


def _graph(
    rng: np.random.Generator, nodes: int, width: int, table: np.ndarray, adjacency: np.ndarray
) -> AttributedGraph:
    attributes = (rng.random((nodes, width)) < rng.choice([0.2, 0.5, 0.8])).astype(int)
    code = int(attributes.ravel() @ (1 << np.arange(nodes * width))[::-1]) if table.shape[2] >> nodes * width else 0
    labels = table[:, :, code].argmax(axis=1)
    labels = np.where(rng.random(nodes) < 0.8, labels, (labels + 1) % table.shape[1])
    labels[0], labels[-1] = 0, table.shape[1] - 1
    return graph_from_arrays(adjacency, attributes, labels)


def path(nodes: int) -> np.ndarray:
    """A path with a branch: node 0 joins 1, 1 joins 2, and so on."""
    adjacency = np.zeros((nodes, nodes), int)
    adjacency[np.arange(nodes - 1), np.arange(1, nodes)] = 1
    return adjacency + adjacency.T


def attribute_world(seed: int, isotropic: bool, local: bool) -> GraphWorld:
    """Attributes of three nodes with two bits each, or of six with one."""
    rng = np.random.default_rng([seed, isotropic, local])
    nodes, width = [(3, 2), (6, 1)][seed % 2]
    adjacency = path(nodes)
    graph = graph_from_arrays(adjacency, np.zeros((nodes, width), int), np.zeros(nodes, int))
    seen = np.ones((nodes, nodes), bool)
    if local:
        seen = receptive_fields(graph.adjacency, np.arange(nodes), 1).toarray()
    classes = int(rng.integers(2, 4))
    table = _table(rng, nodes, classes, nodes * width, np.repeat(seen, width, axis=1))
    add, delete = rng.choice([1, 2, 4, 10], 2) / 64, rng.choice([6, 16, 30, 48, 54], 2) / 64
    if isotropic:
        layout = isotropic_node_layout(nodes, addition=float(add[0]), deletion=float(delete[0]))
    else:
        clusters = np.arange(nodes) // -(-nodes // 2)
        layout = cluster_layout(
            clusters, graph.adjacency, addition=tuple(np.sort(add).tolist()), deletion=tuple(np.sort(delete).tolist())
        )
    return GraphWorld(_graph(rng, nodes, width, table, adjacency), layout, table, depth=1 if local else None)


def edge_world(seed: int, isotropic: bool) -> GraphWorld:
    """All graphs on four nodes, six pairs."""
    rng = np.random.default_rng([seed, 7])
    classes = int(rng.integers(2, 4))
    table = _table(rng, 4, classes, 6, np.ones((4, 6), bool))
    add, delete = np.sort(rng.choice([1, 2, 4, 10], 2) / 64), np.sort(rng.choice([6, 16, 30, 48], 2) / 64)
    adjacency = np.triu(rng.random((4, 4)) < 0.5, 1).astype(int)
    if isotropic:
        layout = isotropic_pair_layout(4, addition=float(add[0]), deletion=float(delete[0]))
    else:
        layout = cluster_pair_layout(
            np.array([0, 0, 1, 1]),
            np.array([[0, 1], [1, 0]]),
            addition=tuple(add.tolist()),
            deletion=tuple(delete.tolist()),
        )
    return GraphWorld(_graph(rng, 4, 1, table, adjacency + adjacency.T), layout, table, edges=True)
