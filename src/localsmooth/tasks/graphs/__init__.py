"""Node classification on attributed graphs: data, clusters, models, the sparse sampler, certificates."""

from localsmooth.tasks.graphs.attribute_noise import AttributeNoise, SparseSample, random_stream
from localsmooth.tasks.graphs.calibration import require_other_nodes
from localsmooth.tasks.graphs.certified_graph import solved_together
from localsmooth.tasks.graphs.certified_nodes import bounded_nodes, node_stakes
from localsmooth.tasks.graphs.classifier import EdgeIndexClassifier, NodeClassifier, PreparedClassifier, block_diagonal
from localsmooth.tasks.graphs.clusters import affinity_ranks, metis_clusters, spectral_clusters
from localsmooth.tasks.graphs.digits import digit_graph
from localsmooth.tasks.graphs.edges import (
    EdgeModel,
    EdgeTask,
    cluster_pair_layout,
    edge_bits,
    isotropic_pair_layout,
)
from localsmooth.tasks.graphs.fast import NetworkClassifier
from localsmooth.tasks.graphs.graph import (
    UNLABELED,
    AttributedGraph,
    attributes_digest,
    edges_digest,
    graph_from_arrays,
    graph_from_pyg,
    largest_component,
)
from localsmooth.tasks.graphs.layouts import ClusterLayout, Cut, cluster_layout, isotropic_node_layout
from localsmooth.tasks.graphs.network import APPNP, GCN, GraphNetwork, normalized_adjacency
from localsmooth.tasks.graphs.npz import load_npz, save_npz
from localsmooth.tasks.graphs.problem import NodeProblem, node_problem
from localsmooth.tasks.graphs.receptive import LocalCertificates, receptive_fields, receptive_nodes, strictly_local
from localsmooth.tasks.graphs.sampler import AttributeSubject, node_counters, sample_nodes
from localsmooth.tasks.graphs.settings import GraphSettings
from localsmooth.tasks.graphs.split import NodeSplit, split_per_class
from localsmooth.tasks.graphs.store import SampledGraph
from localsmooth.tasks.graphs.task import GraphTask
from localsmooth.tasks.graphs.thinning import CompiledThinning, NumpyThinning
from localsmooth.tasks.graphs.threat import (
    AttackLimits,
    attribute_caps,
    budget_grid,
    flip_threat,
    node_limit,
)
from localsmooth.tasks.graphs.training import NodeTrainingOptions, NodeTrainingReport, self_labeled, train_with_noise
from localsmooth.tasks.graphs.tunable import GraphTrial

__all__ = [
    "APPNP",
    "GCN",
    "UNLABELED",
    "AttackLimits",
    "AttributeNoise",
    "AttributeSubject",
    "AttributedGraph",
    "ClusterLayout",
    "CompiledThinning",
    "Cut",
    "EdgeIndexClassifier",
    "EdgeModel",
    "EdgeTask",
    "GraphNetwork",
    "GraphSettings",
    "GraphTask",
    "GraphTrial",
    "LocalCertificates",
    "NetworkClassifier",
    "NodeClassifier",
    "NodeProblem",
    "NodeSplit",
    "NodeTrainingOptions",
    "NodeTrainingReport",
    "NumpyThinning",
    "PreparedClassifier",
    "SampledGraph",
    "SparseSample",
    "affinity_ranks",
    "attribute_caps",
    "attributes_digest",
    "block_diagonal",
    "bounded_nodes",
    "budget_grid",
    "cluster_layout",
    "cluster_pair_layout",
    "digit_graph",
    "edge_bits",
    "edges_digest",
    "flip_threat",
    "graph_from_arrays",
    "graph_from_pyg",
    "isotropic_node_layout",
    "isotropic_pair_layout",
    "largest_component",
    "load_npz",
    "metis_clusters",
    "node_counters",
    "node_limit",
    "node_problem",
    "node_stakes",
    "normalized_adjacency",
    "random_stream",
    "receptive_fields",
    "receptive_nodes",
    "require_other_nodes",
    "sample_nodes",
    "save_npz",
    "self_labeled",
    "solved_together",
    "spectral_clusters",
    "split_per_class",
    "strictly_local",
    "train_with_noise",
]
