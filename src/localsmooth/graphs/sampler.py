"""Sample node predictions under sparse attribute noise: one group after the other, resumable."""

from __future__ import annotations

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.graphs.classifier import NodeClassifier, PreparedClassifier
from localsmooth.graphs.counters import node_counters
from localsmooth.graphs.draw import AttributeNoise, SparseSample, random_stream
from localsmooth.graphs.graph import AttributedGraph
from localsmooth.layout import Layout
from localsmooth.models import OutputKind
from localsmooth.noise import SparseFlips
from localsmooth.sampling import (
    ChunkRecord,
    Counters,
    CountingScope,
    FaultyPredictionError,
    ItemTally,
    MemoryStore,
    NoProgress,
    Predictions,
    RunConfiguration,
    SamplingPlan,
    SamplingProgress,
    Stage,
    Store,
    StoreError,
    Task,
    collect_tallies,
)
from localsmooth.sampling.overview import OUTPUT_GROUPS
from localsmooth.sampling.region import Region
from localsmooth.sampling.tally import choose, require_choice

__all__ = ["AttributeProblem", "GraphChunkWorker", "GraphProblem", "GroupSampler", "sample_nodes", "sample_problem"]

Sample = TypeVar("Sample")


@runtime_checkable
class GroupSampler(Protocol[Sample]):
    """The smoothing distribution of one output group, and the base classifier on its samples."""

    @property
    def size(self) -> int:
        """Number of outputs in the group."""
        ...

    def draw(self, generator: np.random.Generator) -> Sample:
        """Draw one sample; what is taken from the stream depends on nothing but the stream."""
        ...

    def scores(self, samples: Sequence[Sample]) -> torch.Tensor:
        """Class scores before the softmax, samples × classes × outputs of the group in ascending order."""
        ...


class GraphProblem(ABC):
    """Everything that the content of a chunk depends on.

    Parameters
    ----------
    classes
        Number of classes.
    layout
        Output groups of nodes, and the levels (addition, deletion) that each sees in every input group.
    counters
        What each stage counts.
    """

    def __init__(self, classes: int, layout: Layout, counters: Counters) -> None:
        SparseFlips().validate(layout.levels)
        self.classes = classes
        self.layout = layout
        self.counters = counters

    @abstractmethod
    def prepare(self, group: int) -> GroupSampler[Any]:
        """Set up one output group."""

    @abstractmethod
    def content(self) -> dict[str, object]:
        """What is smoothed and classified, for the record (JSON-compatible)."""

    def configuration(self, plan: SamplingPlan) -> RunConfiguration:
        """Describe a run by all that affects its tallies: not by batch size or threads."""
        return RunConfiguration(
            {
                "plan": {
                    "seed": plan.seed,
                    "n_candidate": plan.n_candidate,
                    "n_bound": plan.n_bound,
                    "chunk_size": plan.chunk_size,
                },
                "noise": dict(SparseFlips().configuration()),
                "layout": self.layout.digest(),
                "counters": {
                    "candidate": [dict(counter.configuration()) for counter in self.counters.candidate],
                    "bound": [dict(counter.configuration()) for counter in self.counters.bound],
                },
                **self.content(),
            }
        )


class AttributeProblem(GraphProblem):
    """Noisy attributes on a fixed graph.

    Parameters
    ----------
    classifier
        The base classifier.
    graph
        The clean graph.
    layout
        With one label per node for outputs and inputs, as `cluster_layout` makes it.
    counters
        What each stage counts.
    """

    def __init__(self, classifier: NodeClassifier, graph: AttributedGraph, layout: Layout, counters: Counters) -> None:
        super().__init__(classifier.classes, layout, counters)
        nodes = (graph.nodes,)
        if layout.outputs.shape != nodes or layout.inputs.shape != nodes:
            raise InvalidInputError(
                "layout",
                f"it partitions {layout.outputs.shape} outputs and {layout.inputs.shape} inputs",
                f"Use one label for each of the {graph.nodes} nodes, as cluster_layout does",
            )
        self.classifier = classifier
        self.graph = graph

    def prepare(self, group: int) -> GroupSampler[Any]:
        """Set up one output group."""
        members = self.layout.outputs.members(group)
        classifier = self.classifier.prepare(self.graph, members)
        noise = AttributeNoise.of_group(self.graph.attributes, self.layout, group, classifier.inputs)
        return _AttributeSampler(members.size, noise, classifier)

    def content(self) -> dict[str, object]:
        """Digests of graph and model."""
        return {
            "graph": self.graph.digest(),
            "model": {"fingerprint": self.classifier.fingerprint(), "classes": self.classes},
        }


@dataclass(frozen=True, eq=False)
class _AttributeSampler:
    size: int
    noise: AttributeNoise
    classifier: PreparedClassifier

    def draw(self, generator: np.random.Generator) -> SparseSample:
        return self.noise.draw(generator)

    def scores(self, samples: Sequence[SparseSample]) -> torch.Tensor:
        return self.classifier(self.noise, samples)


class GraphChunkWorker:
    """Draws and counts chunks of one graph.

    Parameters
    ----------
    problem
        What to draw.
    seed
        The run's seed.
    batch_size
        Graphs per pass. Small batches stay in the cache: 4 to 8 are fastest on a CPU.
    """

    def __init__(self, problem: GraphProblem, seed: int, batch_size: int = 8) -> None:
        if batch_size < 1:
            raise InvalidInputError("batch_size", f"got {batch_size}", "Pass at least 1")
        self.problem = problem
        self.seed = seed
        self.batch_size = batch_size
        self._prepared: tuple[int, GroupSampler[Any], Region] | None = None

    def __call__(self, task: Task) -> ChunkRecord:
        """Draw and count one chunk.

        Raises
        ------
        FaultyPredictionError
            If a score is NaN or infinite; nothing is counted then.
        """
        started = time.perf_counter()
        chunk, problem = task.chunk, self.problem
        with torch.inference_mode():
            sampler, region = self._prepare(chunk.group)
            chosen = {name: torch.as_tensor(array) for name, array in task.chosen.items()}
            scope = CountingScope(region.shape, problem.classes, torch.device("cpu"), chunk.size, chosen)
            counters = (problem.counters.candidate, problem.counters.bound)[chunk.stage]
            running = [(counter.name, counter.start(scope)) for counter in counters]
            generator = random_stream(self.seed, chunk.key)
            drawn = 0
            while drawn < chunk.size:
                samples = [sampler.draw(generator) for _ in range(min(self.batch_size, chunk.size - drawn))]
                scores = sampler.scores(samples)
                predictions = Predictions(scores, region, OutputKind.LOGITS, problem.classes, len(samples))
                if bool(predictions.faulty):
                    raise FaultyPredictionError(
                        f"output group {chunk.group}, chunk {chunk.index} of the {Stage(chunk.stage).name.lower()} "
                        "stage: the model returned scores that are NaN or infinite. Nothing was counted for this "
                        "chunk; check the model on noisy graphs"
                    )
                for _, accumulator in running:
                    accumulator.update(predictions)
                drawn += len(samples)
        counts = {
            f"{name}.{key}": array.numpy()
            for name, accumulator in running
            for key, array in accumulator.arrays().items()
        }
        provenance = {
            "device": "cpu",
            "device_name": platform.machine(),
            "precision": "float32",
            "torch": torch.__version__,
            "numpy": np.__version__,
            "threads": torch.get_num_threads(),
            "batch_size": self.batch_size,
            "seconds": time.perf_counter() - started,
        }
        return ChunkRecord(chunk, drawn, counts, task.chosen_digest, provenance)

    def _prepare(self, group: int) -> tuple[GroupSampler[Any], Region]:
        if self._prepared is None or self._prepared[0] != group:
            sampler = self.problem.prepare(group)
            # The classifier returns the group's outputs alone, in the order of their positions.
            region = Region(None, np.zeros(0), (sampler.size,), (slice(0, sampler.size),), None)
            self._prepared = group, sampler, region
        return self._prepared[1:]


def sample_nodes(
    classifier: NodeClassifier,
    graph: AttributedGraph,
    layout: Layout,
    plan: SamplingPlan,
    store: Store | None = None,
    *,
    counters: Counters | None = None,
    batch_size: int = 8,
    progress: SamplingProgress | None = None,
) -> ItemTally:
    """Draw what is still missing of a plan, and return the tallies of all nodes.

    Memory does not depend on the number of samples. Interrupted and called again with the same store, it goes on
    where it stopped; the noise is the same for every batch size.

    Parameters
    ----------
    classifier, graph, layout
        See `AttributeProblem`.
    plan
        How many samples, and from which seed.
    store
        Where finished chunks are kept; in memory by default.
    counters
        What is counted; votes and scores by default.
    batch_size
        Graphs per pass.
    progress
        Told how far it has come.

    Raises
    ------
    InvalidInputError
        Naming what cannot be used.
    StoreError
        If the store belongs to another run, or something in it cannot be used.
    FaultyPredictionError
        If the model returns scores that are not finite.
    """
    problem = AttributeProblem(classifier, graph, layout, node_counters() if counters is None else counters)
    return sample_problem(problem, plan, store, batch_size=batch_size, progress=progress)


def sample_problem(
    problem: GraphProblem,
    plan: SamplingPlan,
    store: Store | None = None,
    *,
    batch_size: int = 8,
    progress: SamplingProgress | None = None,
) -> ItemTally:
    """Draw what is still missing of a plan, for any kind of noise on a graph; see `sample_nodes`."""
    if plan.stop is not None:
        raise InvalidInputError("stop", "graphs are sampled to the end of the plan", "Leave the stopping rule out")
    store = MemoryStore() if store is None else store
    store.begin(problem.configuration(plan))
    if OUTPUT_GROUPS not in store.array_names():
        store.put_array(OUTPUT_GROUPS, np.array([problem.layout.outputs.count], dtype=np.int64))
    groups = range(problem.layout.outputs.count)
    finished = store.finished()
    present = {c.key: c.size for group in groups for stage in Stage for c in plan.chunks(0, group, stage)}
    for key, kept in finished.items():
        if kept.n != kept.size or present.get(key) != kept.size:
            raise StoreError(f"the stored chunk {key} with {kept.n} samples does not belong to the plan")
    worker = GraphChunkWorker(problem, plan.seed, batch_size)
    with NoProgress() if progress is None else progress as told:
        told.start(sum(present.values()), sum(kept.n for kept in finished.values()))
        for group in groups:
            chosen: Mapping[str, np.ndarray] = {}
            for stage in Stage:
                for chunk in plan.chunks(0, group, stage):
                    if chunk.key in finished:
                        if stage is Stage.BOUND:
                            require_choice(0, group, chosen, finished[chunk.key].chosen)
                        continue
                    record = worker(Task(chunk, chosen))
                    store.commit(record)
                    told.advance(record.n)
                if stage is Stage.CANDIDATE:
                    chosen = choose(problem.counters, store.merged(0, group, stage))
    return collect_tallies(store, [problem.layout], problem.counters, plan=plan)[0]
