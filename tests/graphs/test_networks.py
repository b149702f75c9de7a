import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.models import describe, describe_module
from localsmooth.tasks.graphs import (
    APPNP,
    GCN,
    AttributeNoise,
    EdgeIndexClassifier,
    NetworkClassifier,
    block_diagonal,
    normalized_adjacency,
    random_stream,
    receptive_nodes,
)
from localsmooth.tasks.graphs.linear import sparse_linear
from tests.seeding import seeded

from .conftest import random_graph


@seeded(0)
def _networks(width: int, classes: int) -> list[nn.Module]:
    networks = [
        APPNP(width, classes, hidden=5),
        APPNP(width, classes, hidden=3, steps=2, teleport=0.3),
        GCN(width, classes, (4,)),
        GCN(width, classes, (6, 5, 4)),
    ]
    for network in networks:
        for parameter in network.parameters():
            nn.init.normal_(parameter)
    return [network.eval() for network in networks]


def _dense_adjacency(graph) -> np.ndarray:
    loops = graph.adjacency.toarray() + np.eye(graph.nodes)
    scale = 1 / np.sqrt(loops.sum(axis=1))
    return scale[:, None] * loops * scale


def test_adjacency_is_normalised():
    graph = random_graph(np.random.default_rng(0), 9, 3)
    made = normalized_adjacency(torch.from_numpy(graph.edge_index), graph.nodes).to_dense().numpy()
    assert np.allclose(made, _dense_adjacency(graph), atol=1e-6)


def test_networks_compute_their_definitions():
    graph = random_graph(np.random.default_rng(1), 9, 4)
    attributes, edges = graph.attributes.toarray().astype(np.float32), torch.from_numpy(graph.edge_index)
    adjacency = _dense_adjacency(graph)
    appnp, _, gcn, deep = _networks(4, 3)
    hidden = np.maximum(attributes @ appnp.weight.detach().numpy() + appnp.bias.detach().numpy(), 0)
    own = hidden @ appnp.last_weight.detach().numpy() + appnp.last_bias.detach().numpy()
    # The limit of the recursion after ten steps, in closed form.
    wanted, power = np.zeros_like(own), np.eye(9)
    for _ in range(10):
        wanted, power = wanted + 0.15 * power @ own, 0.85 * adjacency @ power
    wanted += power @ own
    assert np.allclose(appnp(torch.from_numpy(attributes), edges).detach().numpy(), wanted, atol=1e-4)
    for network in (gcn, deep):
        values = attributes
        weights = [network.weight, *network.weights]
        for place, (weight, bias) in enumerate(zip(weights, network.biases, strict=True)):
            values = adjacency @ values @ weight.detach().numpy() + bias.detach().numpy()
            values = np.maximum(values, 0) if place < len(weights) - 1 else values
        assert np.allclose(network(torch.from_numpy(attributes), edges).detach().numpy(), values, atol=1e-3)


@pytest.mark.parametrize("which", range(4))
def test_fast_path_agrees_with_the_module(which):
    graph = random_graph(np.random.default_rng(2), 40, 30, edge=0.05)
    network = _networks(30, 3)[which]
    outputs = np.array([3, 7, 8, 21])
    prepared = NetworkClassifier(network).prepare(graph, outputs)
    generator = np.random.default_rng(3)
    levels = generator.random((2, 40)) * np.array([[0.3], [1.0]])
    noise = AttributeNoise(graph.attributes[prepared.inputs].tocsr(), *levels[:, prepared.inputs])
    samples = [noise.draw(random_stream(0, (k,))) for k in range(5)]
    bits = np.zeros((5, 40, 30), np.float32)
    bits[:, prepared.inputs] = np.stack([noise.bits(sample).toarray() for sample in samples])
    edges = torch.from_numpy(graph.edge_index)
    with torch.inference_mode():
        fast = prepared(noise, samples)
        slow = torch.stack([network(torch.from_numpy(one), edges)[outputs].T for one in bits])
    assert fast.shape == (5, 3, 4)
    assert torch.allclose(fast, slow, atol=1e-3)


def test_attributes_beyond_the_depth_never_matter():
    graph = random_graph(np.random.default_rng(4), 60, 6, edge=0.03)
    with seeded(0):
        network = GCN(6, 2, (4,)).eval()
    outputs = np.array([graph.adjacency.sum(axis=1).argmax()])
    inside = receptive_nodes(graph.adjacency, outputs, network.depth)
    assert 1 < inside.size < graph.nodes
    edges = torch.from_numpy(graph.edge_index)
    bits = torch.from_numpy(graph.attributes.toarray().astype(np.float32)).requires_grad_()
    gradient = torch.autograd.grad(network(bits, edges)[outputs].sum(), bits)[0]
    assert set(np.flatnonzero(gradient.abs().sum(1).numpy())) <= set(inside.tolist())


def test_a_block_diagonal_batch_equals_one_by_one():
    graph = random_graph(np.random.default_rng(5), 12, 5)
    module = _networks(5, 3)[3]
    classifier = EdgeIndexClassifier(module, 3)
    attributes = torch.from_numpy((np.random.default_rng(6).random((4, 12, 5)) < 0.5).astype(np.float32))
    edges = torch.from_numpy(graph.edge_index)
    batch = classifier.scores(attributes, edges)
    for sample, scores in zip(attributes, batch, strict=True):
        assert torch.allclose(module(sample, edges).T, scores, atol=1e-5)
    blocks = block_diagonal(edges, 12, 3)
    assert blocks.shape == (2, 3 * edges.shape[1])
    assert ((blocks[0] // 12) == (blocks[1] // 12)).all()


class Normalised(nn.Module):
    """Looks at the mean over everything in the batch."""

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return attributes[:, :2] - attributes[:, :2].mean(0)


class Remembering(nn.Module):
    """Keeps the first adjacency that it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = None

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        self.edges = edge_index if self.edges is None else self.edges
        source, target = self.edges
        return torch.zeros(len(attributes), 2).index_add(0, target, attributes[source, :2])


@pytest.mark.parametrize("module", [Normalised(), Remembering()])
def test_modules_that_mix_the_graphs_of_a_batch_are_refused(module, tiny):
    classifier = EdgeIndexClassifier(module.eval(), 2)
    classifier.scores(torch.ones(1, 5, 2), torch.from_numpy(tiny.edge_index))
    with pytest.raises(InvalidInputError, match="other graphs in the batch"):
        classifier.try_out(tiny)


def test_a_classifier_whose_copies_fail_is_named_and_not_refused(tiny):
    class Registered(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.known = {id(self): 1.0}

        def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
            return attributes[:, :2] * self.known[id(self)]

    with pytest.warns(UserWarning, match=r"a copy of it fails \(KeyError"):
        EdgeIndexClassifier(Registered().eval(), 2).try_out(tiny)


def test_a_classifier_that_keeps_what_it_saw_first_is_refused(tiny):
    class Keeps(torch.nn.Module):
        kept = None

        def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
            own = attributes[:, :2]
            if self.kept is None:
                self.kept = own[: tiny.nodes]
            return own + self.kept.repeat(len(own) // tiny.nodes, 1)

    with pytest.raises(InvalidInputError, match="once it was shown other attributes"):
        EdgeIndexClassifier(Keeps().eval(), 2).try_out(tiny)


def test_modules_that_see_farther_than_they_say_are_refused():
    graph = random_graph(np.random.default_rng(4), 60, 6, edge=0.03)
    network = _networks(6, 2)[3]
    EdgeIndexClassifier(network, 2, network.depth).try_out(graph)
    with pytest.raises(InvalidInputError, match="sees farther than 1 hops"):
        EdgeIndexClassifier(network, 2, 1).try_out(graph)


def test_sparse_linear_is_the_product_and_its_gradient():
    generator = np.random.default_rng(7)
    bits = sp.csr_array(generator.random((6, 9)) < 0.4)
    weight = torch.from_numpy(generator.normal(size=(9, 4)).astype(np.float32)).requires_grad_()
    dense = torch.from_numpy(bits.toarray().astype(np.float32))
    target = torch.from_numpy(generator.normal(size=(6, 4)).astype(np.float32))
    (sparse_linear(bits, weight) * target).sum().backward()
    assert torch.allclose(sparse_linear(bits, weight), dense @ weight, atol=1e-5)
    assert weight.grad is not None
    assert torch.allclose(weight.grad, dense.T @ target, atol=1e-5)


@seeded(0)
def test_training_mode_and_wrong_widths_are_refused(tiny):
    with pytest.raises(InvalidInputError, match=r"eval\(\)"):
        NetworkClassifier(GCN(2, 2))
    with pytest.raises(InvalidInputError, match=r"eval\(\)"):
        EdgeIndexClassifier(GCN(2, 2), 2)
    for kind in (NetworkClassifier, lambda network: EdgeIndexClassifier(network, 2)):
        with pytest.raises(InvalidInputError, match=r"lie on meta.*cpu\(\)"):
            kind(GCN(2, 2).eval().to("meta"))
    with pytest.raises(InvalidInputError, match="attributes"):
        NetworkClassifier(GCN(3, 2).eval()).prepare(tiny, np.array([0]))


def test_fingerprints_follow_parameters_and_hyperparameters():
    one, same = (_networks(4, 3)[0] for _ in range(2))
    assert NetworkClassifier(one).fingerprint() == NetworkClassifier(same).fingerprint()
    before = NetworkClassifier(same).fingerprint()
    same.teleport = 0.2
    assert NetworkClassifier(same).fingerprint() != before
    with torch.no_grad():
        one.last_bias[0] += 1e-6
    assert NetworkClassifier(one).fingerprint() != before
    with seeded(0):
        modules = [APPNP(4, 3, steps=steps).eval() for steps in (2, 2, 3)]
    for module in modules[1:]:
        module.load_state_dict(modules[0].state_dict())
    prints = [EdgeIndexClassifier(module, 3).fingerprint() for module in modules]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("made", "known"),
    [
        (GCN(3, 2, (4,)), "bf2f2d9059a4b8f1f73b0142a31e0d6d3187fe93e8785711d18da2e67796852d"),
        (APPNP(3, 2), "6048b73c638884660f8672d7c3bb290c0400dec977d7880183295ca51f81b253"),
    ],
)
def test_stored_runs_know_networks_by_a_name_that_lasts(made, known):
    """Runs of before the modules of graphs moved go on: their networks have the fingerprint that they had."""
    with torch.no_grad():
        for place, one in enumerate(made.parameters()):
            one.copy_(torch.arange(one.numel(), dtype=torch.float32).reshape(one.shape) / 8 + place)
    assert NetworkClassifier(made.eval()).fingerprint() == known
    assert "localsmooth.graphs.network." in describe_module(made)
    assert describe(type(made)) == f"localsmooth.graphs.network.{type(made).__name__}"
    assert describe(sys.modules[type(made).__module__]) == "localsmooth.graphs.network"


class ThreeArguments(nn.Module):
    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor, edge_weight: torch.Tensor) -> torch.Tensor:
        return attributes[:, :2]


class Dictionary(nn.Module):
    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": attributes[:, :2]}


class NotFinite(nn.Module):
    """Divides by the number of ones, which noise can take away."""

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return attributes[:, :2] / attributes.sum(dim=1, keepdim=True)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (ThreeArguments(), "edge_weight"),
        (Dictionary(), "returned dict"),
        (NotFinite(), "not finite"),
        (nn.MaxPool1d(3), "it fails"),
    ],
)
def test_modules_that_cannot_be_used_say_why(module, message, tiny):
    with pytest.raises(InvalidInputError, match=message):
        EdgeIndexClassifier(module.eval(), 2).try_out(tiny)
