import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsmooth.tasks.graphs import AttributedGraph, digit_graph, graph_from_arrays


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    with _metis_or_skip():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    with _metis_or_skip():
        return (yield)


@contextmanager
def _metis_or_skip() -> Generator[None]:
    """Tests that get to METIS need it."""
    try:
        yield
    except ImportError as error:
        if "pymetis" not in str(error) or find_spec("pymetis") is not None:
            raise
        pytest.skip(str(error))


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
