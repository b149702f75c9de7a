"""Attributed graphs: binary attributes, undirected edges, one label per node."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int

from localsmooth.errors import InvalidInputError
from localsmooth.layout import item_digest

__all__ = [
    "UNLABELED",
    "AttributedGraph",
    "attribute_marks",
    "attributes_digest",
    "edges_digest",
    "graph_from_arrays",
    "graph_from_pyg",
    "largest_component",
    "rows_of",
    "shape_of",
]

UNLABELED = -1
"""Label of a node whose class is unknown; it counts in no accuracy."""


@dataclass(frozen=True, eq=False)
class AttributedGraph:
    """A graph with binary attributes.

    Parameters
    ----------
    adjacency
        Nodes × nodes, boolean, symmetric, without self-loops.
    attributes
        Nodes × attributes, boolean. The stored entries are the ones; every other bit is a zero.
    labels
        Class of each node, `UNLABELED` where it is unknown.
    class_names, node_names, attribute_names
        Names, empty where there are none.

    Raises
    ------
    InvalidInputError
        For an empty graph, shapes that do not match, a self-loop, a directed edge, or labels out of range.
    """

    adjacency: sp.csr_array
    attributes: sp.csr_array
    labels: Int[np.ndarray, "nodes"]
    class_names: tuple[str, ...] = ()
    node_names: tuple[str, ...] = ()
    attribute_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        adjacency, attributes = _boolean(self.adjacency), _boolean(self.attributes)
        nodes = self.labels.size
        if nodes == 0:
            raise InvalidInputError("labels", "the graph has no node", "Pass at least one node")
        if shape_of(adjacency) != (nodes, nodes):
            raise InvalidInputError(
                "adjacency", f"shape {adjacency.shape} for {nodes} labels", "Pass a square matrix, one row per node"
            )
        rows, width = shape_of(attributes)
        if rows != nodes or width == 0:
            raise InvalidInputError(
                "attributes", f"shape {attributes.shape} for {nodes} nodes", "Pass one row per node, one column per bit"
            )
        if adjacency.diagonal().any():
            raise InvalidInputError("adjacency", "a node has an edge to itself", "graph_from_arrays drops it")
        if (adjacency != adjacency.T).nnz:
            raise InvalidInputError(
                "adjacency", "an edge has one direction only", "Use graph_from_arrays, which makes edges undirected"
            )
        if int(self.labels.min()) < UNLABELED:
            raise InvalidInputError("labels", f"got {self.labels.min()}", "Classes count from 0; -1 marks unlabeled")
        if self.class_names and int(self.labels.max()) >= len(self.class_names):
            raise InvalidInputError(
                "class_names", f"{len(self.class_names)} names for label {self.labels.max()}", "Name every class"
            )
        for field, names, size in (
            ("node_names", self.node_names, nodes),
            ("attribute_names", self.attribute_names, width),
        ):
            if names and len(names) != size:
                raise InvalidInputError(field, f"{len(names)} names for {size}", "Name every one, or none")
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "labels", self.labels.astype(np.int64))

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.labels.size

    @property
    def width(self) -> int:
        """Number of attributes per node."""
        return shape_of(self.attributes)[1]

    @property
    def edges(self) -> int:
        """Number of undirected edges."""
        return int(self.adjacency.nnz) // 2

    @property
    def ones(self) -> int:
        """Number of attribute bits that are set."""
        return int(self.attributes.nnz)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_names) or max(int(self.labels.max()) + 1, 1)

    @cached_property
    def edge_index(self) -> Int[np.ndarray, "2 directed_edges"]:
        """Both directions of every edge, sorted, as PyTorch Geometric has them."""
        coordinates = self.adjacency.tocoo()
        return np.stack([coordinates.row, coordinates.col]).astype(np.int64)

    @cached_property
    def ones_per_node(self) -> Int[np.ndarray, "nodes"]:
        """Number of set bits of each node: what deletions can take."""
        return np.diff(self.attributes.indptr).astype(np.int64)

    def subgraph(self, nodes: Int[np.ndarray, "kept"]) -> AttributedGraph:
        """Keep some nodes, in the order given, with the edges between them."""
        return AttributedGraph(
            self.adjacency[nodes][:, nodes],
            self.attributes[nodes],
            self.labels[nodes],
            self.class_names,
            tuple(self.node_names[i] for i in nodes) if self.node_names else (),
            self.attribute_names,
        )

    def digest(self) -> str:
        """Hexadecimal SHA-256 of edges, attributes and labels."""
        state = hashlib.sha256(str((self.nodes, self.width)).encode())
        for matrix in (self.adjacency, self.attributes):
            state.update(matrix.indptr.astype(np.int64).tobytes())
            state.update(matrix.indices.astype(np.int64).tobytes())
        state.update(self.labels.tobytes())
        return state.hexdigest()


def graph_from_arrays(
    edges: Any,
    attributes: Any,
    labels: Any,
    *,
    class_names: tuple[str, ...] = (),
    node_names: tuple[str, ...] = (),
    attribute_names: tuple[str, ...] = (),
) -> AttributedGraph:
    """Make a graph from plain arrays: self-loops dropped, edges made undirected, attributes binarised (≠ 0).

    Parameters
    ----------
    edges
        A nodes × nodes matrix, dense or scipy sparse, or an integer array 2 × edges of node pairs.
    attributes
        A nodes × attributes matrix, dense or scipy sparse; every non-zero entry is a one. A model that was trained on
        counts or weights sees zeros and ones here.
    labels
        Class of each node, -1 where unknown.
    class_names, node_names, attribute_names
        Names, if there are any.

    Raises
    ------
    InvalidInputError
        For shapes that do not match, node numbers out of range, negative or non-finite entries.
    """
    classes = np.asarray(labels)
    if classes.ndim != 1 or not (np.issubdtype(classes.dtype, np.integer)):
        raise InvalidInputError("labels", f"{classes.dtype} of shape {classes.shape}", "Pass one whole number per node")
    nodes = classes.size
    adjacency = edges if sp.issparse(edges) else np.asarray(edges)
    if isinstance(adjacency, np.ndarray) and adjacency.shape[:1] == (2,) and adjacency.shape != (nodes, nodes):
        adjacency = _from_index(adjacency, nodes)
    if adjacency.shape != (nodes, nodes):
        raise InvalidInputError(
            "edges", f"shape {adjacency.shape} for {nodes} nodes", "Pass a nodes × nodes matrix or 2 × edges"
        )
    bits = attributes if sp.issparse(attributes) else np.asarray(attributes)
    if bits.ndim != 2:
        raise InvalidInputError("attributes", f"shape {bits.shape}", "Pass a nodes × attributes matrix")
    for field, matrix in (("edges", adjacency), ("attributes", bits)):
        values = np.asarray(sp.coo_array(matrix).data if sp.issparse(matrix) else matrix)
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise InvalidInputError(field, "an entry is negative, infinite or NaN", "Non-zero entries are ones")
        if field == "attributes" and bool(((values != 0) & (values != 1)).any()):
            share = _boolean(bits).nnz / (nodes * bits.shape[1])
            warnings.warn(
                "attributes: they are not all 0 or 1, and the model will see a one for every other number "
                f"({share:.1%} of the bits). If it was trained on the numbers, train it on bits",
                stacklevel=2,
            )
    one_way = _boolean(adjacency)
    one_way = _boolean(one_way + one_way.T)
    one_way.setdiag(False)
    return AttributedGraph(
        _boolean(one_way), _boolean(bits), classes.astype(np.int64), class_names, node_names, attribute_names
    )


def _from_index(index: np.ndarray, nodes: int) -> sp.coo_array:
    """Make an adjacency of both ends of every edge."""
    if index.ndim != 2 or len(index) != 2 or not np.issubdtype(index.dtype, np.integer):
        raise InvalidInputError("edges", f"{index.dtype} of shape {index.shape}", "Pass integers 2 × edges")
    if index.size and not (int(index.min()) >= 0 and int(index.max()) < nodes):
        raise InvalidInputError("edges", f"a node number lies outside 0 … {nodes - 1}", "Number nodes from 0")
    return sp.coo_array((np.ones(index.shape[1], np.bool_), tuple(index)), shape=(nodes, nodes))


def graph_from_pyg(data: Any) -> AttributedGraph:
    """Make a graph from a PyTorch Geometric data set of one graph, a `Data` object, or the like.

    PyTorch Geometric itself is not needed. Prepared as in `graph_from_arrays`.

    Parameters
    ----------
    data
        Anything with `x`, `edge_index` and `y`, or a sequence of one such object.

    Raises
    ------
    InvalidInputError
        If something is missing, a data set holds several graphs, or the arrays cannot be used.
    """
    if not hasattr(data, "edge_index") and hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        if len(data) != 1:
            raise InvalidInputError("data", f"it holds {len(data)} graphs", "Pass one of them")
        data = data[0]
    fields: dict[str, Any] = {}
    for name in ("x", "edge_index", "y"):
        value = getattr(data, name, None)
        if value is None:
            raise InvalidInputError("data", f"it has no {name}", "Pass an object with x, edge_index and y")
        try:
            fields[name] = _array(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InvalidInputError(
                f"data.{name}", f"{type(value).__name__} is no array of numbers ({error})", "Pass a tensor or an array"
            ) from None
    labels = np.asarray(fields["y"]).reshape(-1)
    # Two edges of two nodes have the shape of an adjacency, and are none.
    edges = fields["edge_index"]
    edges = edges if sp.issparse(edges) else _from_index(np.asarray(edges), labels.size)
    return graph_from_arrays(edges, fields["x"], labels)


def _array(value: Any) -> Any:
    """A tensor of any layout and precision as an array."""
    if not hasattr(value, "detach"):
        return value
    dense = value.detach().cpu().to_dense()
    return (dense.double() if dense.is_floating_point() else dense).numpy()


def largest_component(graph: AttributedGraph) -> AttributedGraph:
    """Keep the largest connected component, its nodes in their old order."""
    _, component = sp.csgraph.connected_components(graph.adjacency, directed=False)
    return graph.subgraph(np.flatnonzero(component == np.bincount(component).argmax()))


def attributes_digest(graph: AttributedGraph) -> str:
    """Hexadecimal SHA-256 of the attributes: the mark of what was chosen or computed by looking at them.

    It is the same in whatever order the nodes come.
    """
    state = hashlib.sha256(f"attributes {shape_of(graph.attributes)}".encode())
    for row in sorted(rows_of(graph)):
        state.update(len(row).to_bytes(8, "little") + row)
    return state.hexdigest()


def attribute_marks(graph: AttributedGraph) -> tuple[str, str]:
    """Both marks of what was computed from the attributes: `attributes_digest`, and `item_digest` of the array."""
    return attributes_digest(graph), item_digest(graph.attributes.toarray().astype(np.float32))


def rows_of(graph: AttributedGraph) -> list[bytes]:
    """The attributes that every node has, nodes without any left out."""
    attributes = graph.attributes
    columns, ends = attributes.indices.astype(np.int64), attributes.indptr
    return [np.sort(columns[start:end]).tobytes() for start, end in pairwise(ends) if end > start]


def edges_digest(adjacency: sp.csr_array) -> str:
    """Hexadecimal SHA-256 of the edges between so many nodes: the mark of what was computed from them."""
    edges = _boolean(adjacency)
    state = hashlib.sha256(f"edges {shape_of(edges)}".encode())
    for part in (edges.indptr, edges.indices):
        state.update(part.astype(np.int64).tobytes())
    return state.hexdigest()


def shape_of(matrix: Any) -> tuple[int, int]:
    """Rows and columns of a sparse matrix."""
    rows, columns = matrix.shape
    return int(rows), int(columns)


def _boolean(matrix: Any) -> sp.csr_array:
    """Non-zero entries as a canonical boolean CSR array."""
    # Entries become boolean before duplicates are added up: sums of small integers wrap around to zero.
    result: Any = sp.csr_array(matrix.astype(np.bool_))
    result.sum_duplicates()
    result.eliminate_zeros()
    result.sort_indices()
    return result
