"""Modules and data sets of PyTorch Geometric itself."""

import numpy as np
import pytest
import torch
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.runs import SamplingPlan
from localsmooth.tasks.graphs import (
    APPNP,
    GCN,
    EdgeIndexClassifier,
    GraphSettings,
    cluster_layout,
    graph_from_pyg,
    metis_clusters,
    sample_nodes,
)
from tests.flat import certify_graph
from tests.seeding import seeded

from .conftest import random_graph

pyg = pytest.importorskip("torch_geometric", reason="needs PyTorch Geometric (pip install torch-geometric)")
layers = pytest.importorskip("torch_geometric.nn", reason="needs PyTorch Geometric (pip install torch-geometric)")


class PygGCN(nn.Module):
    def __init__(self, width: int, classes: int, cached: bool = False, norm: bool = False) -> None:
        super().__init__()
        self.first = layers.GCNConv(width, 6, cached=cached)
        self.norm = layers.GraphNorm(6) if norm else nn.Identity()
        self.last = layers.GCNConv(6, classes, cached=cached)

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(self.first(attributes, edge_index)).relu(), edge_index)


class PygAPPNP(nn.Module):
    def __init__(self, width: int, classes: int, steps: int = 4) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(width, 5), nn.Linear(5, classes)
        self.spread = layers.APPNP(K=steps, alpha=0.15)

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.spread(self.last(self.first(attributes).relu()), edge_index)


@seeded(3)
def _pairs(width: int, classes: int) -> list[tuple[nn.Module, nn.Module]]:
    """The same networks, by PyTorch Geometric and by this package."""
    theirs, ours = PygGCN(width, classes).eval(), GCN(width, classes, (6,)).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    with torch.no_grad():
        ours.weight.copy_(theirs.first.lin.weight.T)
        ours.weights[0].copy_(theirs.last.lin.weight.T)
        ours.biases[0].copy_(theirs.first.bias)
        ours.biases[1].copy_(theirs.last.bias)
    other, own = PygAPPNP(width, classes).eval(), APPNP(width, classes, 5, steps=4).eval()
    for parameter in other.parameters():
        nn.init.normal_(parameter)
    with torch.no_grad():
        own.weight.copy_(other.first.weight.T)
        own.bias.copy_(other.first.bias)
        own.last_weight.copy_(other.last.weight.T)
        own.last_bias.copy_(other.last.bias)
    return [(theirs, ours), (other, own)]


@pytest.fixture
def graph():
    return random_graph(np.random.default_rng(5), 30, 8, edge=0.1)


@pytest.mark.parametrize("which", [0, 1])
def test_their_modules_get_the_votes_of_ours(graph, which):
    theirs, ours = _pairs(8, 2)[which]
    layout = cluster_layout(metis_clusters(graph, 3), graph.adjacency, addition=(0.1, 0.2), deletion=(0.2, 0.5))
    plan = SamplingPlan(20, 60, seed=1)
    adapted = sample_nodes(EdgeIndexClassifier(theirs, 2, ours.depth), graph, layout, plan)
    native = sample_nodes(EdgeIndexClassifier(ours, 2), graph, layout, plan)
    # The same noise, and scores that agree up to the rounding of sums: hardly any vote differs.
    assert np.abs(adapted.votes - native.votes).max() <= 1
    assert np.array_equal(adapted.candidate, native.candidate)
    assert (adapted.votes < 60).sum() > 0


def test_a_module_is_certified(graph, tmp_path):
    theirs, _ = _pairs(8, 2)[0]
    layout = cluster_layout(metis_clusters(graph, 2), graph.adjacency, addition=(0.05, 0.1), deletion=(0.2, 0.5))
    settings = GraphSettings(0.1, [0], [0, 1], strictly_local=True)
    result = certify_graph(
        EdgeIndexClassifier(theirs, 2, 2), graph, layout, np.arange(30), plan=SamplingPlan(20, 300), settings=settings
    )
    assert result["certified"].sel(target="ratio", bound="envelope")[0, 0] > 0


def test_fingerprints_see_hyperparameters(graph):
    with seeded(0):
        first = PygAPPNP(8, 2).eval()
        same, other = PygAPPNP(8, 2).eval(), PygAPPNP(8, 2, steps=5).eval()
    for module in (same, other):
        module.load_state_dict(first.state_dict())
    prints = [EdgeIndexClassifier(module, 2).fingerprint() for module in (first, same, other)]
    assert prints[0] == prints[1] != prints[2]
    EdgeIndexClassifier(first, 2).try_out(graph)
    assert EdgeIndexClassifier(first, 2).fingerprint() == prints[0]


@pytest.mark.parametrize("options", [{"cached": True}, {"norm": True}])
def test_caches_and_normalisation_over_the_batch_are_refused(graph, options):
    with seeded(0):
        classifier = EdgeIndexClassifier(PygGCN(8, 2, **options).eval(), 2)
    with pytest.raises(InvalidInputError, match="batch"):
        classifier.try_out(graph)


def test_data_objects_and_data_sets_are_read(tmp_path):
    data_module = pytest.importorskip("torch_geometric.data", reason="needs PyTorch Geometric")
    generator = np.random.default_rng(0)
    bits, labels = (generator.random((5, 4)) < 0.5).astype(np.float32), np.array([0, 1, 0, 2, 1])
    edges = np.array([[0, 1, 2, 4], [1, 2, 3, 4]])
    data = data_module.Data(torch.from_numpy(bits), torch.from_numpy(edges), y=torch.from_numpy(labels))

    class One(data_module.InMemoryDataset):
        def __init__(self) -> None:
            super().__init__(str(tmp_path))
            self.data, self.slices = self.collate([data])

    graph = graph_from_pyg(data)
    assert np.array_equal(graph.attributes.toarray(), bits > 0)
    assert graph.edges == 3
    assert graph.labels.tolist() == labels.tolist()
    assert graph_from_pyg(One()).digest() == graph.digest()
