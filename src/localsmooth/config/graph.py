"""The sections of a configuration file for a node classifier on a graph."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from localsmooth.config.base_certificates import ExactVotesSection
from localsmooth.config.baselines import SparseSmoothSection
from localsmooth.config.certificate import AnyRule, BonferroniSection
from localsmooth.config.execution import ExecutionSection
from localsmooth.config.schema import ExistingPath
from localsmooth.config.section import Section

__all__ = [
    "AppnpSection",
    "GcnSection",
    "GraphCertificateSection",
    "GraphConfiguration",
    "GraphModuleSection",
    "GraphNoiseSection",
    "GraphSamplingSection",
    "GraphSection",
    "NetworkSection",
]

Probability = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
Budget = Annotated[int, Field(ge=0)]


class GraphSection(Section):
    """The graph, which of its nodes are certified, and its clusters."""

    data: Literal["digits"] | ExistingPath = "digits"
    """"digits" for the embedded graph of handwritten digits, or the path of an .npz file with `adj_matrix.data`,
    `.indices`, `.indptr` and `.shape` (CSR), the same for `attr_matrix`, and `labels`, as `localsmooth.graphs.save_npz`
    writes it. Of a file, the largest connected component is certified."""
    per_class: Count = 20
    """Training nodes per class, and validation nodes per class; the rest is the test set."""
    split_seed: int = Field(default=0, ge=0)
    """Another seed gives another split."""
    evaluate: Literal["test", "validation"] = "test"
    """Nodes that are certified."""
    clusters: Count = 5
    """Number of clusters that share a noise level; 1 is isotropic smoothing."""
    clustering: Literal["metis", "spectral"] = "metis"
    """METIS (with the extra `graph`), or spectral clustering."""


class NetworkSection(Section):
    """How a network of this package is trained, with noise from the distributions that are certified."""

    weights: ExistingPath | None = None
    """Trained weights (safetensors) to load; by default the network is trained and kept in the run directory."""
    epochs: Count = 3000
    """Most training steps."""
    patience: Count = 200
    """Steps without a lower validation loss after which training stops."""
    learning_rate: float = Field(default=1e-3, gt=0, allow_inf_nan=False)
    """Of Adam."""
    weight_decay: float = Field(default=1e-3, ge=0, allow_inf_nan=False)
    """Of Adam."""
    self_training: bool = True
    """Train a second time with the first network's smoothed predictions as labels of unlabeled nodes."""
    seed: int = Field(default=0, ge=0)
    """Seed of initial weights, training noise and dropout."""


class AppnpSection(NetworkSection):
    """APPNP: a perceptron with one hidden layer per node, followed by personalised PageRank."""

    kind: Literal["appnp"]
    hidden: Count = 64
    """Width of the hidden layer."""
    steps: int = Field(default=10, ge=0)
    """Propagation steps."""
    teleport: float = Field(default=0.15, ge=0, le=1)
    """Share of a node's own prediction in each step."""


class GcnSection(NetworkSection):
    """A graph convolutional network."""

    kind: Literal["gcn"]
    hidden: list[Count] = Field(default=[64], min_length=1)
    """Width of each hidden layer: one layer less than the network has hops."""


class GraphModuleSection(Section):
    """A module of the user's own, called with (attributes, edge_index) as those of PyTorch Geometric are."""

    kind: Literal["module"]
    factory: str
    """`package.module:function`; called without arguments, returns the module."""
    checkpoint: ExistingPath | None = None
    """Weights to load into the module: safetensors, or a torch state dict (read with weights_only)."""
    depth: int | None = Field(default=None, ge=0)
    """Hops over which an attribute can influence a prediction, for strictly local certificates."""


class GraphNoiseSection(Section):
    """Sparsity-aware flips of attribute bits."""

    addition: tuple[Probability, Probability] = (0.01, 0.01)
    """Probability that a zero becomes one: in the output's own cluster, and in the farthest."""
    deletion: tuple[Probability, Probability] = (0.5, 0.9)
    """Probability that a one becomes zero: in the output's own cluster, and in the farthest."""


class GraphSamplingSection(Section):
    """How many noisy graphs are drawn."""

    n_candidate: Count = 1000
    """N₁, samples per cluster to choose the candidates."""
    n_bound: Count = 10_000
    """N₂, further samples per cluster to bound the candidates' probabilities and scores."""
    chunk_size: Count = 1000
    """Samples that are stored together; what an interruption can lose."""
    batch_size: Count = 8
    """Graphs per pass."""
    seed: int = Field(default=0, ge=0)
    """Seed of all noise."""


class GraphCertificateSection(Section):
    """What is proven from the samples, for deletions alone, for additions alone, and for every pair of budgets."""

    alpha: float = Field(default=0.01, gt=0, lt=1)
    """Probability with which the certificate may fail."""
    additions: list[Budget] = Field(default=list(range(11)), min_length=1)
    """Budgets ε⁺ of added bits; 0 is added where it is missing."""
    deletions: list[Budget] = Field(default=list(range(41)), min_length=1)
    """Budgets ε⁻ of deleted bits; 0 is added where it is missing."""
    bounds: list[Literal["naive", "lp", "envelope", "exact"]] = Field(default=["naive", "lp", "envelope"], min_length=1)
    """Collective bounds, weakest first."""
    exact_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """Time limit of the exact bound, for all pairs of budgets together."""
    exact_gap: int = Field(default=0, ge=0)
    """Nodes by which the exact bound may fall short of the optimum."""
    base: list[Literal["renyi-votes", "exact-votes", "sparse-scores"]] = Field(default=["renyi-votes"], min_length=1)
    """Base certificates; votes and scores share alpha, and each node relies on one of the two."""
    renyi_orders: list[Annotated[float, Field(gt=1, allow_inf_nan=False)]] | None = Field(default=None, min_length=1)
    """Orders of renyi-votes."""
    exact_votes: ExactVotesSection = Field(default_factory=ExactVotesSection)
    """Settings of exact-votes; many samples deserve more `vectors`."""
    many_outputs: AnyRule = Field(default_factory=lambda: BonferroniSection(rule="bonferroni"))
    """How alpha is shared among the nodes."""
    score_bound: Literal["empirical_bernstein", "cdf_band", "betting"] = "empirical_bernstein"
    """Bound on scores, for certificates from scores."""
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
    def _settings_are_used(self) -> GraphCertificateSection:
        if self.exact_votes != ExactVotesSection() and "exact-votes" not in self.base:
            raise ValueError('exact_votes has no effect unless "exact-votes" is in base')
        if self.renyi_orders is not None and "renyi-votes" not in self.base:
            raise ValueError('renyi_orders has no effect unless "renyi-votes" is in base')
        return self


AnyGraphModel = Annotated[AppnpSection | GcnSection | GraphModuleSection, Field(discriminator="kind")]


class GraphConfiguration(Section):
    """One certification of a graph's nodes; the section [graph] tells it from other runs."""

    name: str = "localized"
    """What reports call the method."""
    graph: GraphSection
    """The graph and its clusters."""
    model: AnyGraphModel = Field(default_factory=lambda: AppnpSection(kind="appnp"))
    """The base classifier; by default an APPNP network."""
    noise: GraphNoiseSection = Field(default_factory=GraphNoiseSection)
    """The smoothing distribution."""
    sampling: GraphSamplingSection = Field(default_factory=GraphSamplingSection)
    """How samples are drawn."""
    certificate: GraphCertificateSection = Field(default_factory=GraphCertificateSection)
    """What is proven from them."""
    execution: ExecutionSection = Field(default_factory=ExecutionSection)
    """Where samples are drawn."""

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
