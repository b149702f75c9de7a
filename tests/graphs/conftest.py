import os
from pathlib import Path

import numpy as np
import pytest

from localsmooth.graphs import AttributedGraph, digit_graph, graph_from_arrays


def _data_folder() -> Path:
    """Folder of the citation graphs: an environment variable, or a neighbour of the repository."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("LOCALSMOOTH_GRAPH_DATA", root.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def citeseer_path() -> Path:
    path = _data_folder() / "citeseer.npz"
    if not path.exists():
        pytest.skip(f"{path} is missing; set LOCALSMOOTH_GRAPH_DATA to the folder of citeseer.npz")
    return path


@pytest.fixture(scope="session")
def digits() -> AttributedGraph:
    return digit_graph(per_digit=30)


@pytest.fixture
def tiny() -> AttributedGraph:
    """Five nodes, two bits: a path with a triangle at its end."""
    edges = np.array([[0, 1, 2, 2, 3], [1, 2, 3, 4, 4]])
    bits = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1]])
    return graph_from_arrays(edges, bits, np.array([0, 0, 0, 1, 1]))


def random_graph(generator: np.random.Generator, nodes: int, width: int, edge: float = 0.4) -> AttributedGraph:
    upper = np.triu(generator.random((nodes, nodes)) < edge, 1)
    bits = generator.random((nodes, width)) < 0.4
    return graph_from_arrays(upper.astype(int), bits.astype(int), generator.integers(0, 2, nodes))
