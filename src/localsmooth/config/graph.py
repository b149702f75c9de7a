"""The sections of a configuration file for a node classifier on a graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from localsmooth.bounds import SCORE_BOUNDS
from localsmooth.certificates import SCORE_CERTIFICATES, VOTE_CERTIFICATES
from localsmooth.config.baselines import SparseSmoothSection
from localsmooth.config.certificate import BaseName, StrategySection
from localsmooth.config.execution import ExecutionSection
from localsmooth.config.faults import ConfigurationError, within
from localsmooth.config.graph_data import (
    CalibrationGraphSection,
    GraphData,
    GraphNoiseSection,
    GraphSection,
    read_graph,
)
from localsmooth.config.graph_models import AnyGraphModel, AppnpSection, GraphModuleSection, NetworkSection
from localsmooth.config.plugins import PluginsSection
from localsmooth.config.sampling import NUMBERS, require_numbers
from localsmooth.config.section import Section
from localsmooth.config.targets import make_targets
from localsmooth.config.tuning import GraphTuneSection
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import Noise, SparseFlips
from localsmooth.runs import PassPlan, SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Smoothing, Task
from localsmooth.tasks.graphs import (
    AttackLimits,
    AttributedGraph,
    GraphSettings,
    GraphTask,
    NodeClassifier,
    require_other_nodes,
)

__all__ = ["GraphCertificateSection", "GraphConfiguration", "GraphSamplingSection", "NodeRunSection"]

Count = Annotated[int, Field(ge=1)]
Budget = Annotated[int, Field(ge=0)]
Flips = Annotated[
    Annotated[list[Budget], Field(min_length=1), Tag("(values)")] | Annotated[Literal["auto"], Tag("(auto)")],
    Discriminator(lambda value: "(auto)" if isinstance(value, str) else "(values)"),
]


LayoutOf = Callable[[AttributedGraph], Layout]


class GraphSamplingSection(Section):
    """How many noisy graphs are drawn."""

    n_candidate: Count = 1000
    """N₁, samples per cluster to choose the candidates."""
    n_bound: Count = 10_000
    """N₂, further samples per cluster to bound the candidates' probabilities and scores."""
    passes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """In place of these two, the passes over the whole graph that may be spent, both stages and all clusters together:
    a sample takes one for each cluster."""
    split: float | None = Field(default=None, gt=0, lt=1)
    """With `passes`, the share of the samples that choose candidates; 1/9 by default."""
    chunk_size: Count = 1000
    """Samples that are stored together; what an interruption can lose."""
    batch_size: Count = 8
    """Graphs per pass."""
    seed: int = Field(default=0, ge=0)
    """Seed of all noise."""
    replay: int = Field(default=0, ge=0)
    """Samples of the bound stage to draw again at the end, one by one on one thread, to compare their labels."""

    @model_validator(mode="after")
    def _numbers_are_used(self) -> GraphSamplingSection:
        said = [name for name in NUMBERS if self.passes is None or name in self.model_fields_set]
        require_numbers(said, self.passes, self.split)
        return self

    def build(self) -> SamplingPlan | PassPlan:
        """Make the sampling plan, or the work that it follows from."""
        if self.passes is not None:
            return PassPlan(self.passes, self.split or PassPlan.split, self.seed, self.chunk_size)
        return SamplingPlan(self.n_candidate, self.n_bound, self.seed, self.chunk_size)

    def options(self) -> SamplingOptions:
        """Make the options of execution."""
        return SamplingOptions(batch_size=self.batch_size, replay=self.replay)

    def score_counting(self) -> None:
        """Leave it to the task how scores are counted."""


class GraphCertificateSection(StrategySection):
    """What is proven from the samples, for deletions alone, for additions alone, and for every pair of budgets."""

    alpha: float = Field(default=0.01, gt=0, lt=1)
    """Probability with which the certificate may fail."""
    additions: Flips = Field(default=list(range(11)))
    """Budgets ε⁺ of added bits; 0 is added where it is missing. "auto": about 13, as far as certificates can reach."""
    deletions: Flips = Field(default=list(range(41)))
    """Budgets ε⁻ of deleted bits; 0 is added where it is missing, or "auto"."""
    base: list[BaseName] | None = Field(default=["renyi-votes"], min_length=1)
    """Base certificates; votes and scores share alpha, and each node relies on one of the two."""
    baseline: SparseSmoothSection | None = None
    """Count the nodes that tolerate every mix of flips, each on its own, in place of collective bounds: with one
    cluster, votes, and no limits."""
    strictly_local: bool = False
    """Use that a network sees no farther than its depth: attributes outside a node's receptive field cannot matter.
    Thousands of nodes take seconds a curve with `clusters = 1` and one kind of flips (additions or deletions = [0])."""
    node_budget: Budget | None = None
    """Most additions, and most deletions, at any one node."""
    node_flips: Budget | None = None
    """Most additions and deletions together at any one node."""
    attacked_nodes: Budget | None = None
    """Most nodes whose attributes are changed."""
    cluster_budget: Budget | None = None
    """Most additions, and most deletions, in any one cluster."""
    cluster_flips: Budget | None = None
    """Most additions and deletions together in any one cluster."""
    attacked_clusters: Budget | None = None
    """Most clusters in which attributes are changed."""

    @model_validator(mode="after")
    def _certificates_fit(self) -> GraphCertificateSection:
        for name in self.base or ():
            if not _holds_for_flips(name):
                raise ValueError(f'base: "{name}" does not hold for flips of bits; use "renyi-votes", say')
        return self

    def build(self, noise: Noise, threat: object = None) -> GraphSettings:
        """Make what is proven from the tallies.

        Parameters
        ----------
        noise
            What was sampled.
        threat
            Not looked at: what the adversary may do, this section says.
        """
        del threat
        return GraphSettings(
            self.alpha,
            self.additions,
            self.deletions,
            certificates=list(self.certificates(noise)),
            bounds=self.collective_bounds(),
            simultaneous=self.many_outputs.build(),
            score_bound=SCORE_BOUNDS[self.score_bound](),
            limits=AttackLimits(**{field.name: getattr(self, field.name) for field in fields(AttackLimits)}),
            strictly_local=self.strictly_local,
            baseline=None if self.baseline is None else self.baseline.build(),
            targets=make_targets(self.targets),
        )


def _holds_for_flips(name: str) -> bool:
    """Whether a base certificate takes sparsity-aware noise, found by asking it."""
    levels, half, group = np.full((1, 1, 2), 0.25), np.full(1, 0.75), np.zeros(1, np.int64)
    try:
        if name in VOTE_CERTIFICATES:
            VOTE_CERTIFICATES[name]().certificates(SparseFlips(), levels, half, group)
        else:
            SCORE_CERTIFICATES[name]().certificates(SparseFlips(), levels, half, half, half, group)
    except InvalidInputError:
        return False
    return True


class NodeRunSection(Section):
    """What files about a graph's nodes have in common."""

    name: str = "localized"
    """What reports call the method."""
    sampling: GraphSamplingSection = Field(default_factory=GraphSamplingSection)
    """How samples are drawn."""
    execution: ExecutionSection = Field(default_factory=ExecutionSection)
    """Where samples are drawn."""
    calibration: CalibrationGraphSection | None = None
    """A graph that is not certified: `localsmooth tune` chooses noise on it, and `localsmooth plan` shows it to the
    model under noise; not used otherwise."""
    plugins: PluginsSection = Field(default_factory=PluginsSection)
    """Modules with certificates and bounds of your own."""

    @property
    @abstractmethod
    def groups(self) -> int:
        """Number of distributions that are drawn from: that of clusters."""

    @property
    @abstractmethod
    def items(self) -> object:
        """What tells one choice of nodes from another."""

    @property
    def labelled(self) -> bool:
        """Whether nodes have labels; networks learn from them."""
        return True

    def calibration_data(self) -> AttributedGraph | None:
        """Read the graph that may be looked at; None where none is named."""
        return None if self.calibration is None else self.calibration.build()

    def trained(
        self, model: NetworkSection | GraphModuleSection, data: GraphData, out: Path, say: Callable[[str], None]
    ) -> NodeClassifier:
        """Make the classifier; a network without weights is trained, and kept in the run directory."""
        file = out / "network.safetensors"
        if not file.exists():
            say("Preparing the model; a network without weights is trained now.")
        with within("model", model):
            return model.build(data, file)


class GraphConfiguration(NodeRunSection):
    """One certification of a graph's nodes; the section [graph] tells it from other runs."""

    graph: GraphSection
    """The graph and its clusters."""
    model: AnyGraphModel = Field(default_factory=lambda: AppnpSection(kind="appnp"))
    """The base classifier; by default an APPNP network."""
    noise: GraphNoiseSection = Field(default_factory=GraphNoiseSection)
    """The smoothing distribution."""
    certificate: GraphCertificateSection = Field(default_factory=GraphCertificateSection)
    """What is proven from them."""
    tune: GraphTuneSection | None = None
    """What `localsmooth tune` looks for, if not by its defaults; not used otherwise."""

    @model_validator(mode="after")
    def _fits(self) -> GraphConfiguration:
        for name in ("addition", "deletion"):
            pair: tuple[float, float] = getattr(self.noise, name)
            if self.graph.clusters == 1 and pair[0] != pair[1]:
                raise ValueError(f"noise.{name}: one cluster has one level, got {pair}; repeat the same number")
        if self.certificate.baseline is not None and self.graph.clusters != 1:
            raise ValueError("certificate.baseline: sparse-smooth needs the same noise everywhere (graph.clusters = 1)")
        if self.certificate.strictly_local and isinstance(self.model, GraphModuleSection) and self.model.depth is None:
            raise ValueError("certificate.strictly_local: say how far the module sees (model.depth)")
        return self

    @property
    def groups(self) -> int:
        """Number of clusters."""
        return self.graph.clusters

    @property
    def items(self) -> object:
        """The file, and which of its nodes."""
        return self.graph.data, self.graph.choice

    def prepare(self, out: Path, say: Callable[[str], None]) -> tuple[Task[Any, Any], Smoothing, Any]:
        """Make what is certified, how it is smoothed, and what is proven; a network without weights is trained.

        Parameters
        ----------
        out
            The run directory, which keeps the network.
        say
            Told what takes long.
        """
        data = self.graph.build(self.noise)
        if self.calibration is not None:
            require_other_nodes(self.calibration.build(), data.graph)
        task = GraphTask(self.trained(self.model, data, out, say), data.graph, data.nodes, called=data.name)
        return task, Smoothing(data.layout, self.sampling.build()), self.certificate.build(SparseFlips())

    def calibration_data(self) -> AttributedGraph | None:
        """Read the graph that may be looked at; None where none is named, or one of other attributes."""
        graph, certified = super().calibration_data(), read_graph(self.graph.data)[0]
        return None if graph is None or graph.width != certified.width else graph

    def tuning_data(self, layout: LayoutOf) -> GraphData:
        """Read the graph that noise is chosen on.

        Parameters
        ----------
        layout
            Makes its layout.

        Raises
        ------
        ConfigurationError
            If the file names none.
        InvalidInputError
            If it is certified, or has most of its nodes in common with the graph that is.
        """
        if self.calibration is None:
            raise ConfigurationError(
                "calibration: this section is missing. Name a graph that is not certified, as in [graph]."
            )
        (graph, name), certified = read_graph(self.calibration.data), read_graph(self.graph.data)[0]
        require_other_nodes(graph, certified)
        if not graph.class_names and graph.classes == certified.classes:
            graph = replace(graph, class_names=certified.class_names)
        split, nodes = self.calibration.split(graph)
        return GraphData(graph, split, layout(graph), nodes, name)
