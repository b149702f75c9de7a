"""Handwritten digits as an attributed graph: the small data set that runs anywhere."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from localsmooth.errors import InvalidInputError
from localsmooth.tasks.graphs.graph import AttributedGraph, graph_from_arrays, largest_component

__all__ = ["digit_graph"]


def digit_graph(neighbors: int = 5, per_digit: int | None = None) -> AttributedGraph:
    """One node per handwritten digit (8 × 8 grey values, 10 classes) from the copy that scikit-learn carries.

    Attributes are the 64 pixels, one where at least half inked. Edges join each digit to its nearest neighbours in
    grey values (Euclidean), without a look at labels. The largest connected component is kept.

    Parameters
    ----------
    neighbors
        Nearest neighbours that each node is joined to.
    per_digit
        Use only the first so many pictures of each digit; all 1797 pictures by default.

    Raises
    ------
    InvalidInputError
        If a count is below 1, or there are fewer nodes than neighbours.
    """
    if neighbors < 1:
        raise InvalidInputError("neighbors", f"got {neighbors}", "Join each node to at least one neighbour")
    pixels, classes = load_digits(return_X_y=True)
    kept = np.arange(classes.size)
    if per_digit is not None:
        if per_digit < 1:
            raise InvalidInputError("per_digit", f"got {per_digit}", "Keep at least one picture of each digit")
        kept = np.sort(np.concatenate([np.flatnonzero(classes == digit)[:per_digit] for digit in range(10)]))
    if kept.size <= neighbors:
        raise InvalidInputError("neighbors", f"{neighbors} of {kept.size} nodes", "Use fewer neighbours than nodes")
    graph = graph_from_arrays(
        kneighbors_graph(pixels[kept], neighbors),
        pixels[kept] >= 8,
        classes[kept].astype(np.int64),
        class_names=tuple(f"digit {digit}" for digit in range(10)),
        attribute_names=tuple(f"pixel {row},{column}" for row in range(8) for column in range(8)),
    )
    return largest_component(graph)
