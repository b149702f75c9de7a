"""Graphs that are not certified: what `plan` may show a classifier of nodes."""

from __future__ import annotations

from collections import Counter

from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.tasks.graphs.graph import AttributedGraph, edges_digest, rows_of

__all__ = ["NO_CALIBRATION_GRAPH", "require_other_attributes", "require_other_edges", "require_other_nodes"]

NO_CALIBRATION_GRAPH = (
    "How much of its predictions the model keeps under noise is not known: there is no calibration graph (calibration= "
    "in Python; data, the path of an .npz file, under [calibration] in a file). The graph that is certified is not "
    "used for it, nor are other nodes of it: levels chosen by them would change with the perturbation, and void the "
    "certificate. Pass another graph of the same attributes"
)
_COMMON = 0.5  # share of nodes with equal attributes, some of which have few ones, from which on graphs are the same
_WHY = "levels chosen by what noise leaves of its predictions would change with the perturbation"
_REMEDY = "Pass another graph, or none"


def require_other_attributes(calibration: object, certified: AttributedGraph) -> AttributedGraph:
    """Refuse a calibration graph that is the certified one or a part of it: the adversary changes attributes of both.

    Parameters
    ----------
    calibration
        What is to be shown.
    certified
        Whose attributes are perturbed.

    Raises
    ------
    InvalidInputError
        If it is no graph, has other attributes, or as `require_other_nodes` does.
    """
    graph = _graph(calibration, certified)
    require_other_nodes(graph, certified)
    return graph


def require_other_nodes(calibration: AttributedGraph, certified: AttributedGraph) -> None:
    """Refuse a calibration graph whose nodes, by their attributes, are nodes of the certified one.

    Parameters
    ----------
    calibration
        What is looked at. One with another number of attributes has other nodes.
    certified
        Whose attributes are perturbed.

    Raises
    ------
    InvalidInputError
        If more than half of its nodes that have attributes have those of nodes of that graph, or if more than half of
        that graph's nodes that have attributes have those of one of its nodes, and of no other.
    """
    rows, known = Counter(rows_of(calibration)), Counter(rows_of(certified))
    common = (rows & known).total() / max(1, rows.total())
    # A large graph has nodes like any where attributes are few; there, only nodes unlike all others say something.
    part = sum(rows[row] == count == 1 for row, count in known.items()) / max(1, known.total())
    if calibration.width == certified.width and (common > _COMMON or not rows):
        raise InvalidInputError(
            "calibration", f"{common:.0%} of its nodes have the attributes of nodes that are certified: {_WHY}", _REMEDY
        )
    if calibration.width == certified.width and part > _COMMON:
        raise InvalidInputError(
            "calibration",
            f"{part:.0%} of the nodes that are certified have the attributes of its nodes: {_WHY}",
            _REMEDY,
        )


def require_other_edges(calibration: object, certified: AttributedGraph) -> AttributedGraph:
    """Refuse a calibration graph whose edges are to be certified.

    Parameters
    ----------
    calibration
        What is to be shown.
    certified
        Whose edges are perturbed.

    Raises
    ------
    InvalidInputError
        If it is no graph, has other attributes or the same edges.
    """
    graph = _graph(calibration, certified)
    if edges_digest(graph.adjacency) == edges_digest(certified.adjacency):
        raise InvalidInputError("calibration", f"its edges are to be certified: {_WHY}", _REMEDY)
    return graph


def _graph(calibration: object, certified: AttributedGraph) -> AttributedGraph:
    require_kind("calibration", calibration, AttributedGraph)
    assert isinstance(calibration, AttributedGraph)
    if calibration.width != certified.width:
        raise InvalidInputError(
            "calibration",
            f"it has {calibration.width} attributes, and the graph {certified.width}",
            "Pass a graph with the same attributes in the same order",
        )
    return calibration
