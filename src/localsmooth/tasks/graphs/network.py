"""GCN and APPNP in plain torch, split after the first linear map so that sparse inputs can be summed up.

Sources: Kipf and Welling 2017 (GCN); Gasteiger, Bojchevski and Günnemann 2019 (APPNP).
"""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from typing import cast

import torch
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.models import lasting_name

__all__ = ["APPNP", "GCN", "GraphNetwork", "normalized_adjacency", "parameters_digest"]


def normalized_adjacency(edge_index: torch.Tensor, nodes: int) -> torch.Tensor:
    """D^(−1/2) (A + I) D^(−1/2), sparse nodes × nodes, of a graph whose edges are listed in both directions.

    Parameters
    ----------
    edge_index
        Integers 2 × directed edges, without self-loops. Message (source, target) flows from row 0 to row 1.
    nodes
        Number of nodes.
    """
    loops = torch.arange(nodes, device=edge_index.device)
    source, target = torch.cat([edge_index, loops.expand(2, -1)], dim=1)
    scale = torch.bincount(target, minlength=nodes).to(torch.float32).rsqrt()
    values = scale[source] * scale[target]
    return torch.sparse_coo_tensor(
        torch.stack([target, source]), values, (nodes, nodes), check_invariants=True
    ).coalesce()


class GraphNetwork(nn.Module, ABC):
    """A node classifier that starts with a linear map of the attributes: `tail(attributes @ weight + offset)`.

    Called as `network(attributes, edge_index)`, the convention of PyTorch Geometric.
    """

    weight: nn.Parameter
    """First linear map, attributes × hidden."""

    @property
    @abstractmethod
    def offset(self) -> torch.Tensor:
        """What is added to the first linear map's result before anything else happens, [hidden]."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """Number of classes."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """Hops over which an attribute can influence an output."""

    @abstractmethod
    def tail(self, hidden: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """Go on from the first linear map.

        Parameters
        ----------
        hidden
            Shape (nodes, …, hidden); axes in the middle (samples) are independent of each other.
        adjacency
            Normalised, nodes × nodes, sparse.

        Returns
        -------
        torch.Tensor
            Class scores before the softmax, (nodes, …, classes).
        """

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Class scores before the softmax, nodes × classes."""
        adjacency = normalized_adjacency(edge_index, attributes.shape[0])
        return self.tail(attributes @ self.weight + self.offset, adjacency)


def spread(adjacency: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Sparse adjacency times values of shape (nodes, …)."""
    return torch.sparse.mm(adjacency, values.reshape(values.shape[0], -1)).reshape(
        adjacency.shape[0], *values.shape[1:]
    )


class GCN(GraphNetwork):
    """A graph convolutional network of any depth.

    Parameters
    ----------
    width
        Number of attributes.
    classes
        Number of classes.
    hidden
        Width of each hidden layer; one entry per layer but the last. `(64,)` is the usual two-layer network.
    dropout
        Probability with which hidden units are dropped in training.
    """

    def __init__(self, width: int, classes: int, hidden: tuple[int, ...] = (64,), dropout: float = 0.5) -> None:
        super().__init__()
        _check_sizes(width, classes, hidden)
        widths = (*hidden, classes)
        self.weight = nn.Parameter(_glorot(width, widths[0]))
        self.weights = nn.ParameterList([_glorot(a, b) for a, b in itertools.pairwise(widths)])
        self.biases = nn.ParameterList([torch.zeros(b) for b in widths])
        self.dropout = dropout
        self.hidden = hidden

    @property
    def offset(self) -> torch.Tensor:
        """Nothing: the first bias follows the first propagation."""
        return self.weight.new_zeros(self.weight.shape[1])

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.biases[-1].numel()

    @property
    def depth(self) -> int:
        """One hop per layer."""
        return len(self.biases)

    def tail(self, hidden: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """Propagate, and transform in between."""
        values = spread(adjacency, hidden) + self.biases[0]
        for weight, bias in zip(self.weights, list(self.biases)[1:], strict=True):
            values = nn.functional.dropout(values.relu(), self.dropout, self.training)
            values = spread(adjacency, values @ weight) + bias
        return values


class APPNP(GraphNetwork):
    """A two-layer perceptron per node, followed by personalised PageRank of its predictions.

    Parameters
    ----------
    width
        Number of attributes.
    classes
        Number of classes.
    hidden
        Width of the hidden layer.
    dropout
        Probability with which hidden units are dropped in training.
    steps
        Propagation steps.
    teleport
        Share of a node's own prediction in each step.

    Raises
    ------
    InvalidInputError
        If the teleport probability is outside [0, 1], or the number of steps negative.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        hidden: int = 64,
        dropout: float = 0.5,
        steps: int = 10,
        teleport: float = 0.15,
    ) -> None:
        super().__init__()
        _check_sizes(width, classes, (hidden,))
        if steps < 0 or not 0 <= teleport <= 1:
            raise InvalidInputError("teleport", f"{teleport} over {steps} steps", "Use a share in [0, 1], steps >= 0")
        self.weight = nn.Parameter(_glorot(width, hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.last_weight = nn.Parameter(_glorot(hidden, classes))
        self.last_bias = nn.Parameter(torch.zeros(classes))
        self.dropout = dropout
        self.steps = steps
        self.teleport = teleport

    @property
    def offset(self) -> torch.Tensor:
        """The first bias."""
        return self.bias

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.last_bias.numel()

    @property
    def depth(self) -> int:
        """One hop per propagation step."""
        return self.steps

    def local(self, hidden: torch.Tensor) -> torch.Tensor:
        """Each node's own prediction, before propagation: (…, hidden) to (…, classes)."""
        values = nn.functional.dropout(hidden.relu(), self.dropout, self.training)
        return values @ self.last_weight + self.last_bias

    def tail(self, hidden: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """Predict per node, then propagate."""
        return self.propagate(self.local(hidden), adjacency)

    @torch.no_grad()
    def influence(self, adjacency: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        """Propagation to some nodes as one matrix, outputs × nodes.

        Propagation is linear, and its matrix symmetric because the normalised adjacency is.
        """
        basis = torch.zeros(adjacency.shape[0], outputs.numel())
        basis[outputs, torch.arange(outputs.numel())] = 1.0
        return self.propagate(basis, adjacency).T.contiguous()

    def propagate(self, start: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """Personalised PageRank of values (nodes, …)."""
        values = start
        for _ in range(self.steps):
            values = (1 - self.teleport) * spread(adjacency, values) + self.teleport * start
        return values


def _glorot(rows: int, columns: int) -> torch.Tensor:
    return nn.init.xavier_uniform_(torch.empty(rows, columns))


def _check_sizes(width: int, classes: int, hidden: tuple[int, ...]) -> None:
    for field, value in (("width", width), ("classes", classes), *(("hidden", h) for h in hidden)):
        if value < 1:
            raise InvalidInputError(field, f"got {value}", "Pass a positive number")


def parameters_digest(module: nn.Module) -> str:
    """Hexadecimal SHA-256 of a module's class and state, in a fixed order."""
    state = hashlib.sha256(lasting_name(type(module)).encode())
    for name, value in sorted(cast("dict[str, torch.Tensor]", module.state_dict()).items()):
        state.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        state.update(value.detach().cpu().contiguous().numpy().tobytes())
    return state.hexdigest()
