"""What the sampler asks of a node classifier, and the adapter for modules that take (attributes, edge_index)."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.models import (
    Unseen,
    can_be_copied,
    describe,
    replica_of,
    require_evaluation_mode,
    shared_words,
    weight_digests,
    working_precision,
)
from localsmooth.tasks.graphs.attribute_noise import AttributeNoise, SparseSample
from localsmooth.tasks.graphs.graph import AttributedGraph
from localsmooth.tasks.graphs.receptive import receptive_fields

__all__ = ["EdgeIndexClassifier", "NodeClassifier", "PreparedClassifier", "block_diagonal", "require_cpu"]


class PreparedClassifier(ABC):
    """A node classifier ready to predict some nodes of one graph from noisy attributes."""

    inputs: Int[np.ndarray, "inputs"]
    """Nodes whose attributes can influence the predictions, ascending: noise is drawn on these alone."""

    @abstractmethod
    def __call__(self, noise: AttributeNoise, samples: Sequence[SparseSample]) -> torch.Tensor:
        """Predict.

        Parameters
        ----------
        noise
            The noise on `inputs`.
        samples
            Draws of it.

        Returns
        -------
        torch.Tensor
            Class scores before the softmax, samples × classes × outputs.
        """


class NodeClassifier(ABC):
    """A base classifier on attributed graphs."""

    classes: int
    """Number of classes."""

    depth: int | None = None
    """Hops over which attributes can influence a prediction; None where it is not known."""

    evaluated_in: str = "float32"
    """Floating-point type in which it computes; the coarsest of several. It computes on the CPU."""

    @abstractmethod
    def prepare(self, graph: AttributedGraph, outputs: Int[np.ndarray, "outputs"]) -> PreparedClassifier:
        """Set up the prediction of some nodes of a graph."""

    def try_out(self, graph: AttributedGraph) -> None:
        """Refuse a classifier that is not what it declares.

        Raises
        ------
        InvalidInputError
            Saying what it does wrong.
        """
        del graph

    @abstractmethod
    def fingerprint(self) -> str:
        """Text that changes whenever the predictions could."""

    @property
    def concurrent(self) -> bool:
        """Whether several threads may ask at once, each a replica of its own."""
        return False

    def replica(self) -> NodeClassifier:
        """Return the same classifier for another thread: nothing that a call could change is shared."""
        return self


def require_cpu(module: nn.Module) -> None:
    """Refuse weights elsewhere: what a record says of the device would not be true, and samples are drawn on the CPU.

    Raises
    ------
    InvalidInputError
        Naming the device.
    """
    for value in (*module.parameters(), *module.buffers()):
        if value.device.type != "cpu":
            raise InvalidInputError("module", f"its weights lie on {value.device}", "Call module.cpu() first")


def block_diagonal(edge_index: torch.Tensor, nodes: int, copies: int) -> torch.Tensor:
    """Edges of several copies of a graph side by side, as one graph of copies × nodes nodes without edges between."""
    shifts = torch.arange(copies, device=edge_index.device).repeat_interleave(edge_index.shape[1]) * nodes
    return edge_index.repeat(1, copies) + shifts


class EdgeIndexClassifier(NodeClassifier):
    """Any module called as `module(attributes, edge_index)`, such as those of PyTorch Geometric.

    Attributes are float32 zeros and ones, nodes × attributes; `edge_index` is int64, 2 × edges, with both directions of
    every edge and no self-loops. A batch of noisy graphs is given to the module as one block-diagonal graph: nodes of
    the second follow those of the first. Gradients are off. Attributes are written out densely, so a batch takes
    samples × nodes × attributes × 4 bytes. Modules whose prediction for one graph depends on the others in the batch
    (graph-wide normalisation, cached adjacencies) are refused.

    Parameters
    ----------
    module
        Returns class scores before the softmax, nodes × classes. Must be in evaluation mode.
    classes
        Number of classes.
    depth
        Hops over which attributes can influence a prediction (the number of its convolutions), if that is known:
        strictly local certificates rest on it.

    Raises
    ------
    InvalidInputError
        If the module is in training mode, or not on the CPU.
    """

    def __init__(self, module: nn.Module, classes: int, depth: int | None = None) -> None:
        require_evaluation_mode(module, "module")
        require_cpu(module)
        self.module = module
        self.classes = classes
        self.depth = depth
        self.evaluated_in = working_precision(module)

    def prepare(self, graph: AttributedGraph, outputs: Int[np.ndarray, "outputs"]) -> PreparedClassifier:
        """Use the whole graph: nothing is known about what the module looks at."""
        return _PreparedModule(self, graph, outputs)

    @torch.inference_mode()
    def try_out(self, graph: AttributedGraph) -> None:
        """Try the module on different attributes, alone and together.

        Raises
        ------
        InvalidInputError
            If copies of the graph in one batch influence each other, the module keeps something of the attributes that
            it saw first, or it sees farther than its depth.

        Warns
        -----
        UserWarning
            If the module cannot be copied, so that what it keeps would not be noticed.
        """
        unseen = Unseen.of(self, "module")
        clean = torch.from_numpy(graph.attributes.toarray().astype(np.float32))
        edges = torch.from_numpy(graph.edge_index)
        batch = torch.stack([clean, torch.zeros_like(clean), 1 - clean])
        remedy = (
            "Use layers that look at neighbourhoods alone: no caches (cached=True), no normalisation over the graph"
        )
        try:
            alone = [self.scores(one[None], edges)[0] for one in batch]
        except (TypeError, IndexError, RuntimeError) as error:
            shape = f"(float32 {tuple(clean.shape)}, int64 {tuple(edges.shape)})"
            raise InvalidInputError(
                "module",
                f"called as module(attributes, edge_index) with {shape} it fails: {error}",
                "Pass a module for this graph's attributes that takes these two and nothing else",
            ) from error
        if not all(bool(torch.isfinite(scores).all()) for scores in alone):
            raise InvalidInputError(
                "module", "it returns scores that are not finite", "Try it on the clean attributes, on none and on all"
            )
        try:
            together = self.scores(batch, edges)
        except (IndexError, RuntimeError, ValueError) as error:
            raise InvalidInputError("module", f"it fails on several graphs in one batch ({error})", remedy) from error
        tolerance = 1e-4 * (1.0 + float(together.abs().max()))
        if not bool((torch.stack(alone) - together).abs().max() <= tolerance):
            raise InvalidInputError(
                "module",
                "its predictions for one graph change with the other graphs in the batch, or from call to call",
                remedy,
            )
        unseen.require_same_weights()
        found = unseen.after(batch[2:], batch[:1], lambda classifier, shown: classifier.scores(shown, edges)[0])
        if found is not None and not bool((found - alone[0]).abs().max() <= tolerance):
            raise InvalidInputError("module", "its predictions change once it was shown other attributes", remedy)
        if self.depth is None:
            return
        for node in np.unique(np.linspace(0, graph.nodes - 1, 4).astype(np.int64)):
            field = receptive_fields(graph.adjacency, np.array([node]), self.depth).toarray()[0]
            hidden = torch.where(torch.from_numpy(field)[:, None], clean, 1 - clean)
            shown = self.scores(hidden[None], edges)[0, :, node]
            if not bool((shown - together[0, :, node]).abs().max() <= tolerance):
                raise InvalidInputError(
                    "depth", f"the module sees farther than {self.depth} hops", "Pass the number of its convolutions"
                )

    @property
    def concurrent(self) -> bool:
        """Whether the module has no hooks, which could reach beyond a copy."""
        return can_be_copied(self.module)

    def replica(self) -> EdgeIndexClassifier:
        """Return the same classifier with a copy of every part, on the same weights."""
        return EdgeIndexClassifier(replica_of(self.module), self.classes, self.depth)

    def shared_with_replicas(self) -> str:
        """Hooks, and programs of torch.export inside."""
        return shared_words(self.module)

    def weight_digests(self) -> dict[str, str]:
        """Digests of the module's parameters."""
        return weight_digests(self.module)

    def fingerprint(self) -> str:
        """Digest of everything that the module computes with, as far as it can be seen."""
        return hashlib.sha256(f"edge-index {self.classes} {describe(self.module)}".encode()).hexdigest()

    def scores(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Predict independent attribute matrices of one graph.

        Parameters
        ----------
        attributes
            Shape (samples, nodes, attributes).
        edge_index
            Of one copy of the graph.

        Returns
        -------
        torch.Tensor
            Class scores, samples × classes × nodes.
        """
        samples, nodes, _ = attributes.shape
        blocks = block_diagonal(edge_index, nodes, samples)
        return self.scores_of_blocks(attributes, blocks)

    def scores_of_blocks(self, attributes: torch.Tensor, blocks: torch.Tensor) -> torch.Tensor:
        """Predict as `scores` does, from edges that are block-diagonal already (and may differ between blocks).

        Raises
        ------
        InvalidInputError
            If the module returns no tensor of scores, nodes × classes.
        """
        samples, nodes, _ = attributes.shape
        result = self.module(attributes.reshape(samples * nodes, -1), blocks)
        if not isinstance(result, torch.Tensor):
            raise InvalidInputError(
                "module", f"it returned {type(result).__name__}", "Return one tensor of scores, nodes × classes"
            )
        if tuple(result.shape) != (samples * nodes, self.classes):
            raise InvalidInputError(
                "module",
                f"it returned shape {tuple(result.shape)} for {samples * nodes} nodes",
                f"Return scores nodes × {self.classes} classes",
            )
        return result.reshape(samples, nodes, self.classes).transpose(1, 2)


class _PreparedModule(PreparedClassifier):
    def __init__(
        self, classifier: EdgeIndexClassifier, graph: AttributedGraph, outputs: Int[np.ndarray, "outputs"]
    ) -> None:
        self.inputs = np.arange(graph.nodes)
        self._classifier = classifier
        self._edges = torch.from_numpy(graph.edge_index)
        self._outputs = torch.from_numpy(outputs.astype(np.int64))

    def __call__(self, noise: AttributeNoise, samples: Sequence[SparseSample]) -> torch.Tensor:
        attributes = torch.from_numpy(np.stack([noise.bits(sample).toarray() for sample in samples])).to(torch.float32)
        return self._classifier.scores(attributes, self._edges)[..., self._outputs]
