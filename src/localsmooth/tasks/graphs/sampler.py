"""Graphs under noise: what is drawn of the nodes of one graph."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
import torch
from jaxtyping import Integer

from localsmooth.errors import InvalidInputError
from localsmooth.execution import Executor, ExecutorName, Part, SamplingProgress, sample_subject
from localsmooth.layout import Layout
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
from localsmooth.tasks.graphs.classifier import NodeClassifier
from localsmooth.tasks.graphs.graph import AttributedGraph, attribute_marks
from localsmooth.tasks.scores import ScoreCounting

__all__ = ["SCORE_BINS", "AttributeSubject", "node_counters", "sample_nodes"]

GRAPHS_PER_PASS = 8
SCORE_BINS = 256
"""Grid steps of the scores unless another number is asked for; a power of two keeps the rounding exact."""


def node_counters(bins: int = SCORE_BINS) -> Counters:
    """Votes, and a histogram of the candidate's scores, from the same samples."""
    return ScoreCounting("histogram", bins).counters()


class AttributeSubject(Subject):
    """Noisy attributes on a fixed graph, and a classifier of its nodes.

    Parameters
    ----------
    classifier
        The base classifier.
    graph
        The clean graph.
    layout
        With one label per node for outputs and inputs, as `cluster_layout` makes it, and the levels (addition,
        deletion) that each output group sees in every input group.
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
        SparseFlips().validate(layout.levels)
        self.classifier = classifier
        self.graph = graph
        self.layouts = (layout,)
        self.seed = seed
        self.counters = counters
        nodes = (graph.nodes,)
        if layout.outputs.shape != nodes or layout.inputs.shape != nodes:
            raise InvalidInputError(
                "layout",
                f"it partitions {layout.outputs.shape} outputs and {layout.inputs.shape} inputs",
                f"Use one label for each of the {graph.nodes} nodes, as cluster_layout does",
            )
        if layout.origins:
            remedy = "Take clusters and levels from elsewhere, and tune on another graph"
            for mark in attribute_marks(graph):
                layout.require_independent(mark, "the attributes", remedy)

    @property
    def classes(self) -> int:
        """Number of the classifier's classes."""
        return self.classifier.classes

    @property
    def concurrent(self) -> bool:
        """Whether the classifier allows it."""
        return self.classifier.concurrent

    def replica(self) -> AttributeSubject:
        """Return the same subject with a classifier of its own."""
        made = copy.copy(self)
        made.classifier = self.classifier.replica()
        return made

    def try_out(self) -> None:
        """Refuse a classifier that mixes the graphs of a batch, or sees farther than it says."""
        self.classifier.try_out(self.graph)

    def prepare(self, item: int, group: int) -> PreparedGroup:
        """Set up one output group."""
        return _NodeGroup(self, self.layouts[item], group)

    @torch.inference_mode()
    def clean_labels(self, item: int) -> Integer[np.ndarray, " nodes"]:
        """Ask the classifier about the graph as it is."""
        del item
        nodes = np.arange(self.graph.nodes)
        classifier = self.classifier.prepare(self.graph, nodes)
        attributes = self.graph.attributes[classifier.inputs].tocsr()
        nothing = np.zeros(classifier.inputs.size)
        noise = AttributeNoise(attributes, nothing, nothing)
        whole = Region(None, np.zeros(0), nodes.shape, (slice(0, nodes.size),), None)
        scores = classifier(noise, [noise.draw(self.stream(()))])
        return Predictions(scores, whole, OutputKind.LOGITS, self.classes, 1).clean_labels()

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
                "graph": self.graph.digest(),
                "model": {"fingerprint": self.classifier.fingerprint(), "classes": self.classes},
            }
        )

    def get_ready(
        self, plan: SamplingPlan, store: Store, options: SamplingOptions, conditions: AbstractContextManager[None]
    ) -> Ready:
        """Use small batches, which stay in the cache: 4 to 8 graphs are fastest on a CPU."""
        del plan, store, conditions
        return Ready(self, BatchSize(GRAPHS_PER_PASS if options.batch_size is None else options.batch_size))


class _NodeGroup(PreparedGroup):
    """The smoothing distribution of one output group of nodes, and the classifier on its samples."""

    elements = 1

    def __init__(self, subject: AttributeSubject, layout: Layout, group: int) -> None:
        members = layout.outputs.members(group)
        self.shape = (members.size,)
        self._classes = subject.classes
        # The classifier returns the group's outputs alone, in the order of their positions.
        self._region = Region(None, np.zeros(0), self.shape, (slice(0, members.size),), None)
        self._classifier = subject.classifier.prepare(subject.graph, members)
        self._noise = AttributeNoise.of_group(subject.graph.attributes, layout, group, self._classifier.inputs)

    def draw(self, count: int, stream: np.random.Generator) -> list[SparseSample]:
        """Draw a batch."""
        return [self._noise.draw(stream) for _ in range(count)]

    def predict(self, batch: Sequence[SparseSample]) -> Predictions:
        """Ask the classifier."""
        scores = self._classifier(self._noise, batch)
        return Predictions(scores, self._region, OutputKind.LOGITS, self._classes, len(batch))

    def inputs(self, batch: Sequence[SparseSample]) -> np.ndarray:
        """Bits, samples × nodes × attributes."""
        return np.stack([self._noise.bits(sample).toarray() for sample in batch])

    @property
    def bytes_per_sample(self) -> int:
        """One byte for each bit."""
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
