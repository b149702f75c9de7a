"""Graphs under noise: what is drawn of the nodes of one graph."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import numpy as np
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import Executor, ExecutorName, Part, SamplingProgress, sample_subject
from localsmooth.layout import Layout, item_digest
from localsmooth.models import OutputKind
from localsmooth.noise import SparseFlips
from localsmooth.runs import RunIdentity, SamplingPlan, Store
from localsmooth.sampling import (
    BatchSize,
    Counters,
    ItemTally,
    Predictions,
    PreparedGroup,
    Ready,
    Region,
    SamplingOptions,
    Subject,
)
from localsmooth.tasks.graphs.attribute_noise import AttributeNoise, SparseSample, random_stream
from localsmooth.tasks.graphs.classifier import NodeClassifier, PreparedClassifier
from localsmooth.tasks.graphs.counters import node_counters
from localsmooth.tasks.graphs.graph import AttributedGraph

__all__ = ["AttributeSubject", "GraphSubject", "NodeGroup", "sample_nodes"]

GRAPHS_PER_PASS = 8

Sample = TypeVar("Sample")


class GraphSubject(Subject):
    """One graph under flips of its bits, and a classifier of its nodes.

    Parameters
    ----------
    classifier
        The base classifier.
    graph
        The clean graph.
    layout
        Output groups of nodes, and the levels (addition, deletion) that each sees in every input group.
    seed
        The run's seed.
    counters
        What each stage counts.
    """

    def __init__(
        self, classifier: NodeClassifier, graph: AttributedGraph, layout: Layout, seed: int, counters: Counters
    ) -> None:
        SparseFlips().validate(layout.levels)
        self.classifier = classifier
        self.graph = graph
        self.layouts = (layout,)
        self.seed = seed
        self.counters = counters

    @property
    def classes(self) -> int:
        """Number of the classifier's classes."""
        return self.classifier.classes

    @property
    def concurrent(self) -> bool:
        """Whether the classifier allows it."""
        return self.classifier.concurrent

    def replica(self) -> GraphSubject:
        """Return the same subject with a classifier of its own."""
        made = copy.copy(self)
        made.classifier = self.classifier.replica()
        return made

    def try_out(self) -> None:
        """Refuse a classifier that mixes the graphs of a batch, or sees farther than it says."""
        self.classifier.try_out(self.graph)

    @abstractmethod
    def content(self) -> dict[str, object]:
        """What is smoothed and classified, for the record (JSON-compatible)."""

    def stream(self, key: tuple[int, ...]) -> np.random.Generator:
        """Return the stream of the seed and a key."""
        return random_stream(self.seed, key)

    def describe(self, plan: SamplingPlan) -> RunIdentity:
        """Describe a run by all that affects its tallies: not by batch size or threads."""
        return RunIdentity(
            {
                "plan": dict(plan.configuration()),
                "noise": dict(SparseFlips().configuration()),
                "layout": self.layouts[0].digest(),
                "counters": dict(self.counters.configuration()),
                **self.content(),
            }
        )

    def get_ready(
        self, plan: SamplingPlan, store: Store, options: SamplingOptions, conditions: AbstractContextManager[None]
    ) -> Ready:
        """Use small batches, which stay in the cache: 4 to 8 graphs are fastest on a CPU."""
        del plan, store, conditions
        return Ready(self, BatchSize(GRAPHS_PER_PASS if options.batch_size is None else options.batch_size))


class NodeGroup(PreparedGroup, Generic[Sample]):
    """The smoothing distribution of one output group of nodes, and the classifier on its samples.

    Parameters
    ----------
    size
        Number of nodes in the group.
    classes
        Number of classes.
    """

    elements = 1

    def __init__(self, size: int, classes: int) -> None:
        self.shape = (size,)
        self._classes = classes
        # The classifier returns the group's outputs alone, in the order of their positions.
        self._region = Region(None, np.zeros(0), self.shape, (slice(0, size),), None)

    @abstractmethod
    def sample(self, generator: np.random.Generator) -> Sample:
        """Draw one sample; what is taken from the stream depends on nothing but the stream."""

    @abstractmethod
    def scores(self, samples: Sequence[Sample]) -> torch.Tensor:
        """Class scores before the softmax, samples × classes × outputs of the group in ascending order."""

    def draw(self, count: int, stream: np.random.Generator) -> list[Sample]:
        """Draw a batch."""
        return [self.sample(stream) for _ in range(count)]

    def predict(self, batch: Sequence[Sample]) -> Predictions:
        """Ask the classifier."""
        return Predictions(self.scores(batch), self._region, OutputKind.LOGITS, self._classes, len(batch))


class AttributeSubject(GraphSubject):
    """Noisy attributes on a fixed graph.

    Parameters
    ----------
    classifier
        The base classifier.
    graph
        The clean graph.
    layout
        With one label per node for outputs and inputs, as `cluster_layout` makes it.
    seed
        The run's seed.
    counters
        What each stage counts.

    Raises
    ------
    InvalidInputError
        If the layout is another graph's, or was computed from the attributes.
    """

    def __init__(
        self, classifier: NodeClassifier, graph: AttributedGraph, layout: Layout, seed: int, counters: Counters
    ) -> None:
        super().__init__(classifier, graph, layout, seed, counters)
        nodes = (graph.nodes,)
        if layout.outputs.shape != nodes or layout.inputs.shape != nodes:
            raise InvalidInputError(
                "layout",
                f"it partitions {layout.outputs.shape} outputs and {layout.inputs.shape} inputs",
                f"Use one label for each of the {graph.nodes} nodes, as cluster_layout does",
            )
        if layout.origins:
            given = item_digest(graph.attributes.toarray().astype(np.float32))
            layout.require_independent(given, "the attributes", "Take clusters and levels from elsewhere")

    def prepare(self, item: int, group: int) -> PreparedGroup:
        """Set up one output group."""
        layout = self.layouts[item]
        members = layout.outputs.members(group)
        classifier = self.classifier.prepare(self.graph, members)
        noise = AttributeNoise.of_group(self.graph.attributes, layout, group, classifier.inputs)
        return _AttributeGroup(members.size, self.classes, noise, classifier)

    def content(self) -> dict[str, object]:
        """Digests of graph and model."""
        return {
            "graph": self.graph.digest(),
            "model": {"fingerprint": self.classifier.fingerprint(), "classes": self.classes},
        }


class _AttributeGroup(NodeGroup[SparseSample]):
    def __init__(self, size: int, classes: int, noise: AttributeNoise, classifier: PreparedClassifier) -> None:
        super().__init__(size, classes)
        self._noise, self._classifier = noise, classifier

    def sample(self, generator: np.random.Generator) -> SparseSample:
        return self._noise.draw(generator)

    def scores(self, samples: Sequence[SparseSample]) -> torch.Tensor:
        return self._classifier(self._noise, samples)

    def inputs(self, batch: Sequence[SparseSample]) -> np.ndarray:
        """Bits, samples × nodes × attributes."""
        return np.stack([self._noise.bits(sample).toarray() for sample in batch])

    @property
    def bytes_per_sample(self) -> int:
        return self._classifier.inputs.size * self._noise.width


def sample_nodes(
    classifier: NodeClassifier,
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
    """Draw what is still missing of a plan, and return the tallies of all nodes.

    Memory does not depend on the number of samples. Interrupted and called again with the same store, it goes on
    where it stopped; the noise is the same for every batch size and number of workers.

    Parameters
    ----------
    classifier, graph, layout
        See `AttributeSubject`.
    plan
        How many samples, and from which seed.
    counters
        What is counted; votes and scores by default.
    store, options, executor, progress, part
        As in `localsmooth.execution.sample`.

    Raises
    ------
    InvalidInputError, StoreError, PoisonedChunksError, OtherPartsMissingError
        As in `localsmooth.execution.sample`.
    """
    counters = node_counters() if counters is None else counters
    subject = AttributeSubject(classifier, graph, layout, plan.seed, counters)
    return sample_subject(subject, plan, store, options=options, executor=executor, progress=progress, part=part)[0]
