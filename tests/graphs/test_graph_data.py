from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.tasks.graphs import (
    AttributedGraph,
    digit_graph,
    graph_from_arrays,
    graph_from_pyg,
    largest_component,
    load_npz,
    save_npz,
    split_per_class,
)
from localsmooth.tasks.graphs.task import named_classes


def test_preparation_drops_loops_makes_edges_undirected_and_binarises():
    matrix = np.array([[5, 1, 0], [0, 0, 2], [0, 0, 0]])
    graph = graph_from_arrays(matrix, np.array([[0.0, 3.0], [0.5, 0.0], [0.0, 0.0]]), np.array([0, 1, -1]))
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.attributes.toarray().tolist() == [[0, 1], [1, 0], [0, 0]]
    assert (graph.nodes, graph.edges, graph.width, graph.ones, graph.classes) == (3, 2, 2, 2, 2)
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize("form", ["coo", "csr"])
@pytest.mark.parametrize(("kind", "count"), [("u1", 256), ("i1", 256), ("u2", 65536)])
def test_parallel_edges_are_one_edge_however_many_there_are(form: str, kind: str, count: int):
    ones, ends = np.ones(count, kind), np.ones(count, int)

    def parallel(width: int):
        if form == "coo":
            return sp.coo_matrix((ones, (np.zeros(count, int), ends)), shape=(4, width))
        return sp.csr_array((ones, ends, np.array([0, count, count, count, count])), shape=(4, width))

    graph = graph_from_arrays(parallel(4), parallel(3), np.arange(4) % 2)
    assert (graph.edges, graph.ones) == (1, 1)
    if form == "csr":
        assert AttributedGraph(graph.adjacency, parallel(3), graph.labels).ones == 1


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("change", ["to_sparse", "to_sparse_csr", "to_sparse_csc", "bfloat16", "half", "bool"])
def test_attributes_of_any_layout_and_precision_are_read(change: str):
    bits, edges = torch.eye(3, 4), torch.tensor([[0, 1], [1, 2]])
    plain = graph_from_pyg(SimpleNamespace(x=bits, edge_index=edges, y=torch.zeros(3, dtype=torch.long)))
    other = SimpleNamespace(x=getattr(bits, change)(), edge_index=edges, y=torch.zeros(3, dtype=torch.long))
    assert graph_from_pyg(other).digest() == plain.digest()


def test_attributes_that_are_no_numbers_are_named():
    class Odd:
        detach = None

    with pytest.raises(InvalidInputError, match=r"^data\.x: Odd is no array of numbers"):
        graph_from_pyg(SimpleNamespace(x=Odd(), edge_index=np.zeros((2, 0), int), y=np.zeros(3, int)))


def test_numbers_do_not_become_bits_without_a_word():
    with pytest.warns(UserWarning, match=r"attributes: they are not all 0 or 1, .* \(75\.0% of the bits\)"):
        graph = graph_from_arrays(np.zeros((2, 0), int), np.array([[0.5, 1.0], [0.0, 2.0]]), np.zeros(2, int))
    assert graph.ones == 3


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_every_sparse_form_makes_the_same_graph(form: str):
    matrix = sp.csr_matrix(np.array([[0, 300, 0], [0, 0, 2], [0, 0, 0]]))
    graph = graph_from_arrays(matrix.asformat(form), sp.csr_matrix(np.eye(3)).asformat(form), np.zeros(3, int))
    assert (graph.edges, graph.ones) == (2, 3)
    with pytest.raises(InvalidInputError, match=r"^edges: an entry is negative"):
        graph_from_arrays((-matrix).asformat(form), np.eye(3), np.zeros(3, int))


def test_edge_lists_sparse_matrices_and_pyg_objects_make_the_same_graph():
    edges = np.array([[0, 0, 2], [1, 0, 1]])
    bits, labels = np.eye(3, 4), np.array([0, 1, 1])
    listed = graph_from_arrays(edges, bits, labels)
    sparse = graph_from_arrays(sp.coo_matrix(([1, 1], ([0, 2], [1, 1])), shape=(3, 3)), sp.csc_matrix(bits), labels)
    data = SimpleNamespace(
        x=torch.from_numpy(bits), edge_index=torch.from_numpy(edges), y=torch.from_numpy(labels)[:, None]
    )
    assert listed.digest() == sparse.digest() == graph_from_pyg(data).digest()
    assert graph_from_pyg([data]).digest() == listed.digest()
    for unusable, problem in (([data, data], "2 graphs"), (SimpleNamespace(x=1, edge_index=2), "no y")):
        with pytest.raises(InvalidInputError, match=problem):
            graph_from_pyg(unusable)
    moved = graph_from_arrays(edges, np.roll(bits, 1, axis=1), labels)
    assert moved.digest() != listed.digest()


@pytest.mark.parametrize(
    ("edges", "bits", "labels", "field"),
    [
        (np.array([[0], [3]]), np.eye(3), np.zeros(3, int), "edges"),
        (np.zeros((2, 2)), np.eye(3), np.zeros(3, int), "edges"),
        (np.zeros((3, 3)), np.full((3, 2), np.nan), np.zeros(3, int), "attributes"),
        (np.zeros((3, 3)), -np.eye(3), np.zeros(3, int), "attributes"),
        (np.zeros((3, 3)), np.eye(2), np.zeros(3, int), "attributes"),
        (np.zeros((3, 3)), np.eye(3), np.zeros(3), "labels"),
        (np.zeros((3, 3)), np.eye(3), np.full(3, -2), "labels"),
    ],
)
def test_unusable_arrays_are_named(edges: np.ndarray, bits: np.ndarray, labels: np.ndarray, field: str):
    with pytest.raises(InvalidInputError) as caught:
        graph_from_arrays(edges, bits, labels)
    assert caught.value.field == field


def test_directed_edges_and_loops_are_refused_by_the_container():
    for matrix, word in (([[0, 1], [0, 0]], "one direction"), ([[1, 0], [0, 0]], "itself")):
        with pytest.raises(InvalidInputError, match=word):
            AttributedGraph(sp.csr_array(np.array(matrix)), sp.csr_array(np.eye(2)), np.zeros(2, int))


def test_largest_component_keeps_names_and_order():
    graph = graph_from_arrays(
        np.array([[1, 3], [3, 4]]), np.eye(5), np.arange(5), node_names=tuple("abcde"), class_names=tuple("ABCDE")
    )
    kept = largest_component(graph)
    assert kept.node_names == ("b", "d", "e")
    assert kept.labels.tolist() == [1, 3, 4]
    assert kept.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def _save(path, **changes):
    adjacency, attributes = sp.csr_matrix(np.eye(3, k=1)), sp.csr_matrix(np.eye(3, 4))
    content = {"labels": np.arange(3), "class_names": np.array(["a", "b", "c"]), "metadata": np.array(None)}
    for name, matrix in (("adj_matrix", adjacency), ("attr_matrix", attributes)):
        content |= {f"{name}.{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    content = {key: value for key, value in (content | changes).items() if value is not None}
    np.savez(path, **content)  # type: ignore[arg-type]
    return path


def test_npz_reads_past_pickled_objects(tmp_path):
    graph = load_npz(_save(tmp_path / "graph.npz", attr_names=np.array(None)))
    assert graph.class_names == ("a", "b", "c")
    assert graph.attribute_names == ()
    assert graph.edges == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "no entry 'labels'"),
        ({"labels": np.array([None, None, None], object)}, "cannot be read as a plain array"),
        ({"adj_matrix.indices": np.array([1, 7])}, "adj_matrix .*not a CSR matrix"),
        ({"attr_matrix.indptr": np.array([0, 1])}, "attr_matrix .*not a CSR matrix"),
        ({"adj_matrix.shape": np.array([3])}, "adj_matrix .*not a CSR matrix"),
    ],
)
def test_npz_says_what_is_wrong(tmp_path, changes, message):
    with pytest.raises(InvalidInputError, match=message):
        load_npz(_save(tmp_path / "graph.npz", **changes))


def test_files_that_are_no_archives_are_refused(tmp_path):
    np.save(tmp_path / "single.npy", np.arange(3))
    (tmp_path / "text.npz").write_text("hello")
    for name in ("single.npy", "text.npz"):
        with pytest.raises(InvalidInputError, match=r"archive|single array"):
            load_npz(tmp_path / name)


def test_split_is_seeded_disjoint_and_balanced():
    labels = np.repeat([0, 1, 2, -1], [50, 60, 70, 5])
    split, same, other = (split_per_class(labels, per_class=10, seed=seed) for seed in (3, 3, 4))
    assert split.train.tolist() == same.train.tolist() != other.train.tolist()
    for part in (split.train, split.validation):
        assert np.bincount(labels[part]).tolist() == [10, 10, 10]
    everything = np.concatenate([split.train, split.validation, split.test])
    assert sorted(everything.tolist()) == list(range(180))
    with pytest.raises(InvalidInputError, match="class 0 has only 50"):
        split_per_class(labels, per_class=25)


def test_digits_make_a_connected_graph():
    graph = digit_graph(per_digit=20)
    assert graph.width == 64
    assert graph.classes == 10
    assert 150 <= graph.nodes <= 200
    assert largest_component(graph).nodes == graph.nodes


def test_citeseer_has_its_known_size(citeseer_path):
    graph = largest_component(load_npz(citeseer_path))
    assert (graph.nodes, graph.width, graph.ones, graph.edges, graph.classes) == (2110, 3703, 67659, 3668, 6)


def test_a_graph_survives_its_file(tmp_path):
    """Edges, bits, labels and names come back; the configuration reads the same file."""
    graph = graph_from_arrays(
        np.array([[0, 0, 2], [1, 0, 1]]), np.eye(4, 5), np.array([0, 1, -1, 1]), class_names=("a", "b")
    )
    save_npz(graph, tmp_path / "mine.npz")
    again = load_npz(tmp_path / "mine.npz")
    assert again.digest() == graph.digest()
    assert again.class_names == ("a", "b")
    assert again.labels.tolist() == [0, 1, -1, 1]


def test_two_edges_of_two_nodes_are_no_adjacency():
    index = np.array([[0, 1], [1, 0]])
    data = SimpleNamespace(x=np.ones((2, 3), int), edge_index=index, y=np.array([0, 1]))
    assert graph_from_pyg(data).edges == 1
    loops = SimpleNamespace(x=np.ones((2, 3), int), edge_index=np.array([[0, 1], [0, 1]]), y=np.array([0, 1]))
    assert graph_from_pyg(loops).edges == 0


def test_every_class_of_a_graph_has_a_name_of_its_own():
    def named(*names: str, classes: int = 3) -> list[str]:
        graph = graph_from_arrays(np.array([[0], [1]]), np.eye(2), np.array([0, 1]), class_names=names)
        return named_classes(graph, classes)

    assert named("a", "b") == ["a", "b", "class 2"]
    for names in (("a", "a"), ("class 2", "b")):
        with pytest.raises(InvalidInputError, match="class_names: two classes are called"):
            named(*names)
