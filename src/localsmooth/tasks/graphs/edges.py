"""Noise on the edges of small graphs: flips of the upper triangle, mirrored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Int

from localsmooth.errors import InvalidInputError
from localsmooth.execution import Executor, ExecutorName, Part, SamplingProgress, sample_subject
from localsmooth.layout import Layout, Partition, origins_of
from localsmooth.noise import drawable_probabilities
from localsmooth.runs import SamplingPlan, Store
from localsmooth.sampling import Counters, ItemTally, PreparedGroup, SamplingOptions
from localsmooth.tasks.graphs.classifier import EdgeIndexClassifier
from localsmooth.tasks.graphs.counters import node_counters
from localsmooth.tasks.graphs.graph import AttributedGraph, edges_digest
from localsmooth.tasks.graphs.sampler import GraphSubject, NodeGroup

__all__ = ["EdgeSubject", "cluster_pair_layout", "edge_bits", "isotropic_pair_layout", "sample_edges"]

_LARGEST = 4096


def edge_bits(graph: AttributedGraph) -> Bool[np.ndarray, "pairs"]:
    """Whether each pair of nodes is joined: the upper triangle, row after row."""
    rows, columns = _pairs(graph.nodes)
    return np.asarray(graph.adjacency.toarray()[rows, columns])


def isotropic_pair_layout(nodes: int, *, addition: float, deletion: float) -> Layout:
    """The same noise on every pair of nodes, drawn once for all outputs."""
    pairs = nodes * (nodes - 1) // 2
    return Layout(
        Partition(np.zeros(nodes, dtype=np.int32)),
        Partition(np.zeros(pairs, dtype=np.int32)),
        np.array([[[addition, deletion]]]),
    )


def cluster_pair_layout(
    clusters: Int[np.ndarray, "nodes"],
    ranks: Int[np.ndarray, "clusters clusters"],
    *,
    addition: tuple[float, float],
    deletion: tuple[float, float],
) -> Layout:
    """Pairs of nodes grouped by the clusters of both ends; the end that is nearer to the output decides the level.

    Neither clusters nor ranks may be computed from the edges that are certified: one edge more or less could change
    the levels, and with them the smoothed classifier. Both are there before the graph is, for example from labels of
    the nodes, or from an earlier snapshot of the graph.

    Parameters
    ----------
    clusters
        Cluster of each node, numbered from 0 without gaps.
    ranks
        `ranks[i, l]`, how far cluster l is from cluster i in steps of 1, the own cluster first;
        `affinity_ranks(reference.adjacency, clusters)` counts the edges of another graph on the same nodes.
    addition, deletion
        As in `cluster_layout`.

    Raises
    ------
    InvalidInputError
        If clusters or ranks are not such numbers.
    """
    if not np.issubdtype(np.asarray(clusters).dtype, np.integer):
        raise InvalidInputError("clusters", f"got {type(clusters).__name__}", "Pass the cluster of each node")
    outputs, order = Partition(clusters.astype(np.int32)), np.asarray(ranks)
    count = outputs.count
    if order.shape != (count, count) or not np.isin(order, np.arange(count)).all():
        raise InvalidInputError(
            "ranks", f"shape {order.shape} for {count} clusters", f"Pass a number from 0 to {count - 1} for each pair"
        )
    steps = np.stack([np.linspace(*pair, num=count) for pair in (addition, deletion)], axis=-1)
    rows, columns = _pairs(clusters.size)
    low, high = np.sort([outputs.labels[rows], outputs.labels[columns]], axis=0).astype(np.int64)
    codes, labels = np.unique(low * count + high, return_inverse=True)
    nearest = np.minimum(order[:, codes // count], order[:, codes % count])
    inputs = Partition(labels.astype(np.int32))
    return Layout(outputs, inputs, steps[nearest], origins=origins_of(ranks))


class EdgeSubject(GraphSubject):
    """Noisy edges under fixed attributes.

    Parameters
    ----------
    classifier
        Any module that takes (attributes, edge_index).
    graph
        The clean graph, small: every pair of nodes is drawn.
    layout
        Output label per node, input label per pair of nodes, as `cluster_pair_layout` makes it; not computed from the
        graph's own edges.
    seed
        The run's seed.
    counters
        What each stage counts.

    Raises
    ------
    InvalidInputError
        If the layout is another graph's, or its levels or groups were computed from the edges; or if the classifier
        does not treat copies of the graph separately.
    """

    def __init__(
        self, classifier: EdgeIndexClassifier, graph: AttributedGraph, layout: Layout, seed: int, counters: Counters
    ) -> None:
        super().__init__(classifier, graph, layout, seed, counters)
        pairs = graph.nodes * (graph.nodes - 1) // 2
        if graph.nodes > _LARGEST:
            raise InvalidInputError("graph", f"{graph.nodes} nodes make {pairs} pairs", f"Use at most {_LARGEST} nodes")
        if layout.outputs.shape != (graph.nodes,) or layout.inputs.shape != (pairs,):
            raise InvalidInputError(
                "layout",
                f"it partitions {layout.outputs.shape} outputs and {layout.inputs.shape} inputs",
                f"Use a label for each of {graph.nodes} nodes and each of {pairs} pairs (cluster_pair_layout)",
            )
        layout.require_independent(
            edges_digest(graph.adjacency),
            "the set of edges",
            "Take clusters and ranks from elsewhere, such as an earlier graph, or use isotropic_pair_layout",
        )

    def prepare(self, item: int, group: int) -> PreparedGroup:
        """Set up one output group."""
        return _EdgeGroup(self, item, group)

    def try_out(self) -> None:
        """Refuse a classifier that mixes graphs, or keeps something of the edges that it saw first.

        Raises
        ------
        InvalidInputError
            If it does, or cannot be copied to find out.
        """
        classifier = self.classifier
        assert isinstance(classifier, EdgeIndexClassifier)
        try:
            used, *unused = (classifier.replica() for _ in range(3))  # before anything is seen
        except Exception as error:  # copying runs the module's own code
            problem = f"it cannot be copied ({error}), so that caches in it could not be noticed"
            raise InvalidInputError("module", problem, "Keep locks, handles and the like out of it") from error
        super().try_out()
        attributes = torch.from_numpy(self.graph.attributes.toarray().astype(np.float32))[None]
        stream = np.random.default_rng(0)
        pairs = np.stack(_pairs(self.graph.nodes))
        halves = [pairs[:, stream.random(pairs.shape[1]) < share] for share in (0.5, 0.2)]
        edges = [torch.from_numpy(np.concatenate([half, half[::-1]], axis=1)) for half in halves]
        with torch.inference_mode():
            # Each from a copy that has seen no other edges, and both from one that has.
            fresh = [copy.scores_of_blocks(attributes, each) for copy, each in zip(unused, edges, strict=True)]
            again = [used.scores_of_blocks(attributes, each) for each in (*edges, edges[0])]
        for first, second in zip((*fresh, fresh[0]), again, strict=True):
            if not torch.allclose(first, second, rtol=1e-4, atol=1e-4):
                raise InvalidInputError(
                    "module",
                    "its predictions for one set of edges change once it has seen another",
                    "Switch off caches of the adjacency (cached=True)",
                )

    def content(self) -> dict[str, object]:
        """Digests of graph and model."""
        return {
            "input": "edges",
            "graph": self.graph.digest(),
            "model": {"fingerprint": self.classifier.fingerprint(), "classes": self.classes},
        }


class _EdgeGroup(NodeGroup[np.ndarray]):
    def __init__(self, subject: EdgeSubject, item: int, group: int) -> None:
        graph, layout = subject.graph, subject.layouts[item]
        members = layout.outputs.members(group)
        super().__init__(members.size, subject.classes)
        self._members = torch.from_numpy(members)
        assert isinstance(subject.classifier, EdgeIndexClassifier)
        self._classifier = subject.classifier
        self._bits = edge_bits(graph)
        # Multiples of 2⁻²⁴, which uniform numbers hit exactly; hidden pairs are no edges.
        levels = drawable_probabilities(layout.level_map(group))
        levels = np.where(np.isinf(levels), np.array([0.0, 1.0]), levels)
        self._flip = np.where(self._bits, levels[:, 1], levels[:, 0])
        self._pairs = np.stack(_pairs(graph.nodes))
        self._attributes = torch.from_numpy(graph.attributes.toarray().astype(np.float32))

    def sample(self, generator: np.random.Generator) -> np.ndarray:
        return self._pairs[:, self._bits ^ (generator.random(self._flip.size) < self._flip)]

    def scores(self, samples: Sequence[np.ndarray]) -> torch.Tensor:
        nodes = self._attributes.shape[0]
        blocks = np.concatenate([half + place * nodes for place, half in enumerate(samples)], axis=1)
        both = torch.from_numpy(np.concatenate([blocks, blocks[::-1]], axis=1))
        scores = self._classifier.scores_of_blocks(self._attributes.expand(len(samples), -1, -1), both)
        return scores[..., self._members]

    def inputs(self, batch: Sequence[np.ndarray]) -> np.ndarray:
        """Adjacency matrices, samples × nodes × nodes."""
        nodes = self._attributes.shape[0]
        matrices = np.zeros((len(batch), nodes, nodes), dtype=np.bool_)
        for matrix, (rows, columns) in zip(matrices, batch, strict=True):
            matrix[rows, columns] = matrix[columns, rows] = True
        return matrices

    @property
    def bytes_per_sample(self) -> int:
        """One byte for each entry of a matrix."""
        return self._attributes.shape[0] ** 2


def sample_edges(
    classifier: EdgeIndexClassifier,
    graph: AttributedGraph,
    layout: Layout,
    plan: SamplingPlan,
    store: Store | None = None,
    *,
    counters: Counters | None = None,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
    progress: SamplingProgress | None = None,
    part: Part | None = None,
) -> ItemTally:
    """Draw what is still missing of a plan of noisy edges; see `EdgeSubject` and `sample_nodes`."""
    counters = node_counters() if counters is None else counters
    subject = EdgeSubject(classifier, graph, layout, plan.seed, counters)
    return sample_subject(subject, plan, store, options=options, executor=executor, progress=progress, part=part)[0]


def _pairs(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.triu_indices(nodes, 1)
    return rows, columns
