"""Graphs in the widely used flat-CSR .npz form, read without unpickling anything."""

from __future__ import annotations

import io
import os

import numpy as np
import scipy.sparse as sp

from localsmooth.archives import Archive
from localsmooth.disk import write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.tasks.graphs.graph import AttributedGraph, graph_from_arrays

__all__ = ["load_npz", "save_npz"]

_PARTS = ("data", "indices", "indptr", "shape")


def load_npz(path: str | os.PathLike[str]) -> AttributedGraph:
    """Read `adj_matrix`, `attr_matrix` and `labels` from a flat-CSR file; self-loops go, edges become undirected.

    Attributes become bits (every non-zero entry is a one), kept as a sparse matrix. All nodes stay: what a file of
    configuration certifies is `largest_component` of this graph.

    Such files often hold pickled objects as well. Only the arrays needed are read, and none of them is unpickled.

    Parameters
    ----------
    path
        The file: `adj_matrix.data`, `.indices`, `.indptr`, `.shape`, the same for `attr_matrix`, `labels`, and
        optionally `class_names`, `node_names` and `attr_names` as text.

    Raises
    ------
    InvalidInputError
        Naming the file and the entry that is missing, pickled, or inconsistent.
    FileNotFoundError
        If there is no such file.
    """
    with Archive(path, "path") as archive:
        return graph_from_arrays(
            _matrix(archive, "adj_matrix"),
            _matrix(archive, "attr_matrix"),
            archive["labels"],
            class_names=_names(archive, "class_names"),
            node_names=_names(archive, "node_names"),
            attribute_names=_names(archive, "attr_names"),
        )


def save_npz(graph: AttributedGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph in the form that `load_npz` and configuration files read, names as text.

    Parameters
    ----------
    graph
        The graph.
    path
        The file; an ending other than .npz is kept.
    """
    entries: dict[str, np.ndarray] = {"labels": graph.labels}
    for name, matrix in (("adj_matrix", graph.adjacency), ("attr_matrix", graph.attributes)):
        parts = matrix.data.astype(np.float32), matrix.indices, matrix.indptr, np.array(matrix.shape)
        entries |= {f"{name}.{part}": array for part, array in zip(_PARTS, parts, strict=True)}
    named = {"class_names": graph.class_names, "node_names": graph.node_names, "attr_names": graph.attribute_names}
    entries |= {key: np.array(names, dtype=np.str_) for key, names in named.items() if names}
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **entries)
    write_atomically(path, content.getvalue())


def _matrix(archive: Archive, name: str) -> sp.csr_array:
    data, indices, indptr, shape = (archive[f"{name}.{part}"] for part in _PARTS)
    try:
        if shape.shape != (2,):
            raise ValueError(f"the shape has {shape.size} entries")
        matrix = sp.csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInputError(
            "path", f"{name} of {archive.path} is not a CSR matrix ({error})", "Store data, indices, indptr and shape"
        ) from error
    return matrix


def _names(archive: Archive, key: str) -> tuple[str, ...]:
    """Text arrays as tuples; names that are missing or pickled are left out, for nothing depends on them."""
    if key not in archive.names:
        return ()
    try:
        values = archive[key]
    except InvalidInputError:
        return ()
    return tuple(str(value) for value in values) if values.ndim == 1 and values.dtype.kind in "US" else ()
