"""Edges that are flipped, in place of attributes: every pair of nodes is a bit, and the graph is an array of them."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from localsmooth.datasets import Item, ItemSet
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, LayoutRecipe, Partition, origins_of
from localsmooth.models import Model, OutputKind, check_form
from localsmooth.noise import SparseFlips
from localsmooth.runs import digest
from localsmooth.sampling import ArraySubject, SamplingOptions, Subject
from localsmooth.tasks.arrays import ArrayTask, SampledItem, Settings, everywhere, subjects_by_level
from localsmooth.tasks.base import Assignment
from localsmooth.tasks.graphs.calibration import NO_CALIBRATION_GRAPH, require_other_edges
from localsmooth.tasks.graphs.classifier import EdgeIndexClassifier, NodeClassifier
from localsmooth.tasks.graphs.fast import NetworkClassifier
from localsmooth.tasks.graphs.graph import UNLABELED, AttributedGraph, edges_digest
from localsmooth.tasks.graphs.task import chosen_nodes, named_classes, require_classifier
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.smoothing import Smoothing

__all__ = ["EdgeModel", "EdgeTask", "cluster_pair_layout", "edge_bits", "isotropic_pair_layout"]

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


class EdgeModel(Model):
    """A node classifier as a function of the edges: bits of all pairs of nodes in, scores of some nodes out.

    Parameters
    ----------
    classifier
        Of the graph's nodes; a `NetworkClassifier` is taken as a module like any other.
    graph
        Its attributes stay as they are; of its edges nothing is used.
    nodes
        Nodes that are predicted, ascending.

    Raises
    ------
    InvalidInputError
        If the classifier is of another kind.
    """

    bounds = (0.0, 1.0)
    output = OutputKind.LOGITS
    device = torch.device("cpu")

    def __init__(self, classifier: NodeClassifier, graph: AttributedGraph, nodes: Int[np.ndarray, "outputs"]) -> None:
        require_classifier(classifier)
        if isinstance(classifier, NetworkClassifier):
            classifier = EdgeIndexClassifier(classifier.network, classifier.classes, classifier.depth)
        if not isinstance(classifier, EdgeIndexClassifier):
            problem = f"a {type(classifier).__name__} knows one set of edges"
            raise InvalidInputError("classifier", problem, "Pass EdgeIndexClassifier(module, classes)")
        self.classifier = classifier
        self.classes = classifier.classes
        self.concurrent = classifier.concurrent
        self._attributes = torch.from_numpy(graph.attributes.toarray().astype(np.float32))
        self._nodes = torch.from_numpy(nodes)
        self._pairs = torch.from_numpy(np.stack(_pairs(graph.nodes)))

    @property
    def evaluated_in(self) -> str:
        """Floating-point type of the classifier."""
        return self.classifier.evaluated_in

    @property
    def hidden_value(self) -> float:
        """No edge."""
        return 0.0

    def replica(self) -> EdgeModel:
        """Return the same model with a classifier of its own."""
        made = copy.copy(self)
        made.classifier = self.classifier.replica()
        return made

    def shared_with_replicas(self) -> str:
        """What those of the classifier share."""
        return self.classifier.shared_with_replicas()

    def weight_digests(self) -> dict[str, str]:
        """Digests of the classifier's weights."""
        return self.classifier.weight_digests()

    def fingerprint(self) -> str:
        """Digest of the classifier, the attributes and the nodes."""
        parts = [self.classifier.fingerprint(), digest(self._attributes.numpy()), digest(self._nodes.numpy())]
        return hashlib.sha256("\n".join(["edges", *parts]).encode()).hexdigest()

    @torch.no_grad()
    def __call__(self, batch: Float[torch.Tensor, "batch 1 pairs"]) -> Float[torch.Tensor, "batch classes outputs"]:
        """Classify the nodes of each graph, all graphs side by side in one."""
        place, pair = torch.nonzero(batch[:, 0] > 0.5, as_tuple=True)
        half = self._pairs[:, pair] + place * self._attributes.shape[0]
        both = torch.cat([half, half.flip(0)], dim=1)
        attributes = self._attributes.expand(len(batch), -1, -1)
        return self.classifier.scores_of_blocks(attributes, both)[..., self._nodes]


def _require_no_cache(model: EdgeModel, item: Item) -> None:
    """Refuse a classifier that keeps something of the edges that it saw first, and one of which that stays unknown."""
    try:
        model.replica()
    except Exception as error:  # copying runs the module's own code
        problem = f"it cannot be copied ({error}), so that caches in it could not be noticed"
        raise InvalidInputError("module", problem, "Keep locks, handles and the like out of it") from error
    check_form(model, item.image)


class EdgeTask(ArrayTask):
    """A classifier of nodes, and the nodes of a small graph that it is certified on, against flips of edges.

    Noise adds an edge between any two nodes with probability θ⁺ and removes one with θ⁻ (`SparseFlips`). A budget is a
    number of flipped edges; `Settings(…, threat=Flips(Kind.ADDITIONS))` allows one kind alone. Attributes stay as they
    are. To everything but the classifier the graph is an array of bits, and so it is to a run directory and a report.

    Parameters
    ----------
    classifier
        The base classifier, such as `EdgeIndexClassifier(module, classes)` or `NetworkClassifier(network)`.
    graph
        The clean graph, of at most 4096 nodes: every pair of them is drawn.
    nodes
        Nodes that are certified, chosen without looking at their tallies: their numbers, or a mask over all nodes.
    called
        What reports call the graph.

    Raises
    ------
    InvalidInputError
        Naming what is no classifier, no nodes of the graph, or too large a graph.
    """

    unseen: ClassVar[str] = NO_CALIBRATION_GRAPH

    def __init__(
        self,
        classifier: NodeClassifier,
        graph: AttributedGraph,
        nodes: Int[np.ndarray, "nodes"] | Bool[np.ndarray, "nodes"],
        *,
        called: str = "graph",
    ) -> None:
        _require_few(graph, "graph")
        self.graph = graph
        self.nodes = chosen_nodes(nodes, graph.nodes)
        model = EdgeModel(classifier, graph, self.nodes)
        labels = graph.labels[self.nodes].astype(np.int64)
        item = Item(
            0, called, edge_bits(graph)[None].astype(np.float32), None if (labels == UNLABELED).any() else labels
        )
        super().__init__(model, ItemSet([item], named_classes(graph, model.classes)), units="edges")

    def laid_out(self, layout: Layout | LayoutRecipe) -> list[Layout]:
        """Refuse to choose noise for edges.

        Raises
        ------
        InvalidInputError
            Always.
        """
        raise InvalidInputError("task", "noise is not tuned for edges", "Choose levels by hand, on another graph")

    def assign(
        self, smoothing: Smoothing, settings: Settings, options: SamplingOptions, scores: ScoreCounting | None
    ) -> Assignment[Sequence[SampledItem]]:
        """Check what arrays are checked for, and that neither levels nor predictions remember edges.

        Raises
        ------
        InvalidInputError
            Naming what does not fit.
        """
        layout, nodes = smoothing.layout, self.graph.nodes
        pairs = nodes * (nodes - 1) // 2
        if not isinstance(layout, Layout) or (layout.outputs.shape, layout.inputs.shape) != ((nodes,), (pairs,)):
            raise InvalidInputError(
                "layout",
                f"it is not about this graph's {nodes} nodes and {pairs} pairs",
                "Pass cluster_pair_layout(…) or isotropic_pair_layout(…)",
            )
        layout.require_independent(
            edges_digest(self.graph.adjacency),
            "the set of edges",
            "Take clusters and ranks from elsewhere, such as an earlier graph, or use isotropic_pair_layout",
        )
        noise = SparseFlips() if smoothing.noise is None else smoothing.noise
        if not isinstance(noise, SparseFlips):
            raise InvalidInputError("noise", f"{type(noise).__name__} is not for edges", "Use SparseFlips")
        assert isinstance(self.model, EdgeModel)
        _require_no_cache(self.model, *self.items)  # first of all: it must not have been called
        self.model.classifier.try_out(self.graph)
        groups, labels = np.unique(layout.outputs.labels[self.nodes], return_inverse=True)
        outputs = Partition(labels.astype(np.int32))
        own = Layout(outputs, layout.inputs, layout.levels[groups], origins=layout.origins)
        return super().assign(replace(smoothing, layout=own, noise=noise), settings, options, scores)

    def calibrated(
        self,
        subject: Subject,
        smoothing: Smoothing,
        calibration: object,
        levels: Sequence[Float[np.ndarray, " parameters"]],
        seed: int,
        options: SamplingOptions,
    ) -> Sequence[Subject]:
        """Show all nodes of another `AttributedGraph`, such as an earlier one on the same nodes."""
        del smoothing
        assert isinstance(subject, ArraySubject)
        assert isinstance(self.model, EdgeModel)
        graph = require_other_edges(calibration, self.graph)
        _require_few(graph, "calibration")
        model = EdgeModel(self.model.classifier, graph, np.arange(graph.nodes))
        bits = edge_bits(graph)[None].astype(np.float32)
        shape = everywhere((graph.nodes,), bits.shape[1:], levels[0], several=True)
        return subjects_by_level(model, [bits], [shape], subject, levels, seed, options)


def _require_few(graph: AttributedGraph, field: str) -> None:
    if graph.nodes > _LARGEST:
        pairs = graph.nodes * (graph.nodes - 1) // 2
        raise InvalidInputError(field, f"{graph.nodes} nodes make {pairs} pairs", f"Use at most {_LARGEST} nodes")


def _pairs(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.triu_indices(nodes, 1)
    return rows, columns
