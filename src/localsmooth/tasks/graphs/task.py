"""Graphs: nodes whose attributes are perturbed, under a classifier of all nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import ClassVar

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from localsmooth.bounds import require_certifiable
from localsmooth.certificates import require_applicable
from localsmooth.collective import Bound
from localsmooth.errors import InvalidInputError, require_distinct
from localsmooth.execution import SamplingProgress, tell_certifying
from localsmooth.noise import SparseFlips
from localsmooth.results import finite_reach, reach_words
from localsmooth.runs import RunIdentity, Store
from localsmooth.sampling import Counters, ItemTally, SamplingOptions, Subject
from localsmooth.tasks.arrays import everywhere
from localsmooth.tasks.asked_targets import require_stakes
from localsmooth.tasks.base import Assignment, Task
from localsmooth.tasks.graphs.calibration import NO_CALIBRATION_GRAPH, require_other_attributes
from localsmooth.tasks.graphs.certified_graph import require_depth
from localsmooth.tasks.graphs.classifier import NodeClassifier
from localsmooth.tasks.graphs.graph import UNLABELED, AttributedGraph
from localsmooth.tasks.graphs.ideal import reach_of_nodes, with_flips
from localsmooth.tasks.graphs.layouts import graph_layout
from localsmooth.tasks.graphs.overlap import graph_overlaps
from localsmooth.tasks.graphs.positions import node_positions
from localsmooth.tasks.graphs.result import graph_result, settle_nodes
from localsmooth.tasks.graphs.sampler import SCORE_BINS, AttributeSubject
from localsmooth.tasks.graphs.settings import KINDS, GraphSettings
from localsmooth.tasks.graphs.store import SampledGraph, load_graph, save_graph
from localsmooth.tasks.graphs.tunable import TunableGraph
from localsmooth.tasks.reach import Planned
from localsmooth.tasks.record import Facts, RunRecord
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.smoothing import Smoothing
from localsmooth.tasks.stakes import Predicted
from localsmooth.tasks.stopping import StopWhenDecided, with_goals
from localsmooth.tasks.votes import collected_votes

__all__ = ["GraphTask", "chosen_nodes", "named_classes", "require_classifier"]

UNITS = "attribute bits"


class GraphTask(TunableGraph, Task[SampledGraph, GraphSettings]):
    """A classifier of nodes, and the nodes of a graph that it is certified on, against flips of attribute bits.

    Parameters
    ----------
    classifier
        The base classifier, such as `NetworkClassifier(network)`.
    graph
        The clean graph.
    nodes
        Nodes that are certified, chosen without looking at their tallies: their numbers, or a mask over all nodes.
    called
        What reports call the graph.

    Raises
    ------
    InvalidInputError
        Naming what is no classifier, or no nodes of the graph.
    """

    name: ClassVar[str] = "graphs"
    proves: ClassVar[type[GraphSettings]] = GraphSettings
    unseen: ClassVar[str] = NO_CALIBRATION_GRAPH

    def __init__(
        self,
        classifier: NodeClassifier,
        graph: AttributedGraph,
        nodes: Int[np.ndarray, "nodes"] | Bool[np.ndarray, "nodes"],
        *,
        called: str = "graph",
    ) -> None:
        require_classifier(classifier)
        self.classifier = classifier
        self.graph = graph
        self.nodes = chosen_nodes(nodes, graph.nodes)
        self.called = called
        self.class_names = named_classes(graph, classifier.classes)
        if graph.classes > classifier.classes:
            raise InvalidInputError(
                "classifier",
                f"it has {classifier.classes} classes, the graph {graph.classes}",
                "Use one for this graph",
            )

    def assign(
        self, smoothing: Smoothing, settings: GraphSettings, options: SamplingOptions, scores: ScoreCounting | None
    ) -> Assignment[SampledGraph]:
        """Check layout and settings against the graph; scores are counted as a histogram unless groups may stop early.

        Raises
        ------
        InvalidInputError
            Naming what does not fit the graph.
        """
        del options
        if smoothing.noise is not None and not isinstance(smoothing.noise, SparseFlips):
            raise InvalidInputError("noise", f"got {type(smoothing.noise).__name__}", "Graphs take SparseFlips")
        layout = graph_layout(smoothing.layout, self.graph)
        plan = smoothing.planned([layout])
        require_applicable(settings.certificates, SparseFlips(), layout.levels)
        if settings.baseline is not None:
            settings.baseline.require(layout, SparseFlips())
        if settings.strictly_local:
            require_depth(self.classifier.depth)
        truth, nothing = self.graph.labels[self.nodes], np.zeros(self.nodes.size, np.int64)
        known = truth if bool((truth != UNLABELED).all()) else None
        outputs = Predicted(nothing, known, nothing, None, self.class_names)
        require_stakes(settings.targets, [outputs], counting=settings.baseline is not None)
        if not settings.needs_scores and plan.stop is None:
            require_certifiable(plan.n_bound, settings.alpha, self.nodes.size, strategy=settings.simultaneous)
        sequence = plan.stop.sequence if isinstance(plan.stop, StopWhenDecided) else None
        planned = Planned(plan.n_candidate, plan.n_bound, sequence)
        reach = reach_of_nodes(self.graph, layout, self.nodes, settings, planned)
        settings = with_flips(settings, reach)
        plan = with_goals(plan, [layout], SparseFlips(), settings, outputs=self.nodes)
        if scores is None and sequence is None:
            scores = ScoreCounting("histogram", SCORE_BINS)
        counters = Counters() if scores is None else scores.counters()
        subject = AttributeSubject(self.classifier, self.graph, layout, plan.seed, counters)

        @cache
        def known_without_samples() -> tuple[np.ndarray, np.ndarray]:
            places = node_positions(self.graph.adjacency, layout.inputs.labels.astype(np.int64))
            return places, subject.clean_labels(0)

        def collect(tallies: Sequence[ItemTally | None]) -> SampledGraph:
            (tally,), (places, clean) = tallies, known_without_samples()
            assert tally is not None
            return SampledGraph(
                self.graph,
                layout,
                self.nodes,
                replace(collected_votes(tally, scores, sequence), clean=clean),
                places,
                self.classifier.depth,
            )

        facts = Facts(
            task=self.name,
            item_names=[self.called],
            item_layouts=[0],
            shown=[layout.shown.tolist()],
            class_names=self.class_names,
            labelled=True,
            ignore_label=None,
            noise=dict(SparseFlips().configuration()),
            scores=scores,
            units=UNITS,
            input_bounds=None,
            device=str(subject.device),
            precision=self.classifier.evaluated_in,
            sequence=sequence,
        )
        budgets = {kind: getattr(settings, kind) for kind in KINDS}
        told = reach_words(finite_reach(reach), budgets, tuple(settings.bounds))
        return Assignment(subject, plan, collect, facts, proven=settings, told=told)

    def calibrated(
        self,
        subject: Subject,
        smoothing: Smoothing,
        calibration: object,
        levels: Sequence[Float[np.ndarray, " parameters"]],
        seed: int,
        options: SamplingOptions,
    ) -> Sequence[Subject]:
        """Show all nodes of another `AttributedGraph` with the same attributes."""
        del subject, smoothing, options
        graph = require_other_attributes(calibration, self.graph)
        layouts = [everywhere((graph.nodes,), (graph.nodes,), level, several=True) for level in levels]
        return [AttributeSubject(self.classifier, graph, layout, seed, Counters()) for layout in layouts]

    @classmethod
    def save(cls, sampled: SampledGraph, store: Store) -> None:
        """Keep graph, layout and nodes."""
        save_graph(sampled, store)

    @classmethod
    def load(cls, record: RunRecord, store: Store) -> SampledGraph:
        """Read the graph back."""
        return load_graph(record, store)

    @classmethod
    def settle(cls, sampled: SampledGraph, settings: GraphSettings, record: RunRecord) -> list[GraphSettings]:
        """Choose a rule for the nodes."""
        return [settle_nodes(sampled, settings, record)]

    @classmethod
    def result(
        cls,
        sampled: SampledGraph,
        settings: GraphSettings,
        record: RunRecord,
        configuration: RunIdentity | None = None,
        progress: SamplingProgress | None = None,
    ) -> xr.Dataset:
        """Certify the nodes against every pair of budgets."""
        tell_certifying(progress, 0, 1)
        made = graph_result(sampled, settings, record, configuration, None if progress is None else progress.message)
        tell_certifying(progress, 1, 1)
        return made

    @classmethod
    def overlaps(
        cls,
        sampled: SampledGraph,
        settings: GraphSettings,
        record: RunRecord,
        configuration: RunIdentity | None = None,
        *,
        items: Sequence[int] = (),
        bound: Bound,
        tolerance: float = 1e-3,
        tell: Callable[[str], None] | None = None,
    ) -> xr.Dataset:
        """Certify IoU and Dice (F1) of the nodes with labels; a run has one graph."""
        del items
        if tell is not None:
            tell(f"{record.item_names[0]}: IoU and Dice")
        return graph_overlaps(sampled, settings, record, configuration, bound, tolerance)


def require_classifier(classifier: object) -> None:
    """Refuse a bare network.

    Raises
    ------
    InvalidInputError
        Naming what to wrap it in.
    """
    if not isinstance(classifier, NodeClassifier):
        raise InvalidInputError(
            "classifier",
            f"{type(classifier).__name__} is no node classifier",
            "Wrap it: NetworkClassifier(network) for GCN and APPNP, EdgeIndexClassifier(module, classes) for others",
        )


def chosen_nodes(nodes: np.ndarray, total: int) -> Int[np.ndarray, "chosen"]:
    """Return the numbers of the nodes that are certified, each once.

    Raises
    ------
    InvalidInputError
        If there is none, a number is out of range, or the array is neither numbers nor a mask over all nodes.
    """
    given = np.asarray(nodes)
    if given.dtype == np.bool_:
        if given.shape != (total,):
            raise InvalidInputError(
                "nodes", f"a mask of shape {given.shape}", f"Pass one entry for each of {total} nodes"
            )
        given = np.flatnonzero(given)
    if given.size == 0:
        raise InvalidInputError("nodes", "there is none to certify", "Name at least one node")
    if not np.issubdtype(given.dtype, np.integer):
        raise InvalidInputError("nodes", f"{given.dtype} names no nodes", "Pass node numbers, or a boolean mask")
    if int(given.min()) < 0 or int(given.max()) >= total:
        raise InvalidInputError("nodes", f"one is not in 0 … {total - 1}", "Name nodes of the graph")
    return np.unique(given.astype(np.int64))


def named_classes(graph: AttributedGraph, classes: int) -> list[str]:
    """Name of every class that a classifier tells apart, those that the graph does not name by number.

    Raises
    ------
    InvalidInputError
        If two are called the same.
    """
    named = list(graph.class_names)
    named += [f"class {number}" for number in range(len(named), classes)]
    require_distinct("class_names", named, "classes")
    return named


TASK = GraphTask
