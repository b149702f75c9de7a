"""The smoothed classifier of a graph with few bits, by enumeration of every attribute matrix."""

import numpy as np
import torch

from localsmooth.layout import Layout
from localsmooth.noise import drawable_probabilities
from localsmooth.tasks.graphs import GCN, AttributedGraph, EdgeIndexClassifier
from tests.seeding import seeded


def sharp_gcn(width: int, classes: int, seed: int) -> GCN:
    """A random network with scores far from uniform."""
    with seeded(seed):
        network = GCN(width, classes, (6,)).eval()
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=2.0)
    return network


class ExactSmoothing:
    """Exact votes and scores at every attribute matrix; rows of `matrices` are all of them, bit by bit."""

    def __init__(self, graph: AttributedGraph, network: torch.nn.Module, layout: Layout) -> None:
        nodes, width = graph.nodes, graph.width
        numbers = np.arange(1 << (nodes * width))
        self.bits = (numbers[:, None] >> np.arange(nodes * width)) & 1 == 1
        self.clean = int((graph.attributes.toarray().ravel() << np.arange(nodes * width)).sum())
        attributes = torch.from_numpy(self.bits.reshape(-1, nodes, width).astype(np.float32))
        with torch.inference_mode():
            logits = EdgeIndexClassifier(network, 2).scores(attributes, torch.from_numpy(graph.edge_index))
        self.scores = logits.softmax(1).numpy().astype(np.float64)
        self.labels = logits.argmax(1).numpy()
        self._layout, self._width = layout, width
        self._laws: dict[tuple[int, int], np.ndarray] = {}

    def law(self, matrix: int, group: int) -> np.ndarray:
        """Probability of every noisy matrix around one matrix under one group's distribution."""
        if (matrix, group) not in self._laws:
            levels = drawable_probabilities(self._layout.level_map(group)).repeat(self._width, axis=0)
            chance = np.where(self.bits[matrix], 1 - levels[:, 1], levels[:, 0])
            self._laws[matrix, group] = np.prod(np.where(self.bits, chance, 1 - chance), axis=1)
        return self._laws[matrix, group]

    def statistics(self, matrix: int, classes: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, ...]:
        """Vote and mean score of one class per node, and mean squared distance of the score to a centre."""
        groups = self._layout.outputs.labels
        columns = []
        for node, label in enumerate(classes):
            law = self.law(matrix, int(groups[node]))
            score = self.scores[:, label, node]
            columns.append([law @ (self.labels[:, node] == label), law @ score, law @ (score - centre[node]) ** 2])
        return tuple(np.array(columns).T)

    def kept(self, matrix: int, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether each node's class keeps more than half of the votes, and of the mean score."""
        votes, scores, _ = self.statistics(matrix, classes, np.zeros(classes.size))
        return votes > 0.5, scores > 0.5

    def within(self, additions: int, deletions: int) -> np.ndarray:
        """All matrices that so many flips can reach."""
        clean = self.bits[self.clean]
        added = (self.bits & ~clean).sum(axis=1)
        deleted = (~self.bits & clean).sum(axis=1)
        return np.flatnonzero((added <= additions) & (deleted <= deletions))
