import re
import threading
import tomllib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth.baselines import SparseSmooth
from localsmooth.cli.app import app
from localsmooth.cli.sweep import certify_quietly
from localsmooth.config import ConfigurationError, load_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.noise import Gaussian, drawable_probabilities
from localsmooth.pipeline import Run, certify
from localsmooth.results import load
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import ArraySubject, SamplingOptions
from localsmooth.sweep import Here, expand, load_sweep, run_sweep, write_sweep_report
from localsmooth.tasks import Smoothing
from localsmooth.tasks.arrays import Flips, Kind, Settings
from localsmooth.tasks.graphs import (
    EdgeIndexClassifier,
    EdgeTask,
    GraphNetwork,
    NetworkClassifier,
    affinity_ranks,
    cluster_pair_layout,
    edge_bits,
    graph_from_arrays,
    isotropic_pair_layout,
    save_npz,
    spectral_clusters,
)
from localsmooth.testing.chance import assert_binomial

from .exact import sharp_gcn

PLAN, QUIET = SamplingPlan(10, 10), Run(progress=NoProgress())
CLUSTERS = np.array([0, 0, 1, 1, 2])
# From cluster 0 its neighbour comes first, from the others cluster 0: known before any edge is.
RANKS = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0]])


def _labels(graph, network) -> tuple[np.ndarray, np.ndarray]:
    """Predicted labels under every edge set, and the edge sets as bits of the upper triangle."""
    pairs = graph.nodes * (graph.nodes - 1) // 2
    sets = (np.arange(1 << pairs)[:, None] >> np.arange(pairs)) & 1 == 1
    rows, columns = np.triu_indices(graph.nodes, 1)
    attributes = torch.from_numpy(graph.attributes.toarray().astype(np.float32))
    labels = []
    with torch.inference_mode():
        for chosen in sets:
            half = np.stack([rows[chosen], columns[chosen]])
            edges = torch.from_numpy(np.concatenate([half, half[::-1]], axis=1))
            labels.append(network(attributes, edges).argmax(1).numpy())
    return np.array(labels), sets


def _law(sets: np.ndarray, clean: np.ndarray, levels: np.ndarray) -> np.ndarray:
    chance = np.where(clean, 1 - levels[:, 1], levels[:, 0])
    return np.prod(np.where(sets, chance, 1 - chance), axis=1)


def _subject(task: EdgeTask, layout, settings: Settings | None = None) -> ArraySubject:
    settings = Settings(0.5, [0]) if settings is None else settings
    made = task.assign(Smoothing(layout, PLAN), settings, SamplingOptions(), None).subject
    assert isinstance(made, ArraySubject)
    return made


def test_edges_are_symmetric_and_flip_with_their_probability(tiny):
    layout = cluster_pair_layout(CLUSTERS, RANKS, addition=(0.1, 0.3), deletion=(0.2, 0.6))
    seen: list[torch.Tensor] = []

    class Watching(torch.nn.Module):
        def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
            seen.append(edges.clone())
            return torch.zeros(len(attributes), 2)

    task = EdgeTask(EdgeIndexClassifier(Watching().eval(), 2), tiny, np.arange(5))
    subject, count = _subject(task, layout), 4000
    prepared = subject.prepare(0, 1)
    batch = prepared.draw(count, subject.stream((0, 1, 0, 0)))
    drawn = batch[:, 0].numpy()
    prepared.predict(batch)
    for edges in seen[-1:]:  # what the module sees are these bits, in both directions, each graph in its own block
        source, target = edges.numpy()
        matrices = np.zeros((count, 5, 5), bool)
        assert (source // 5 == target // 5).all()
        matrices[source // 5, source % 5, target % 5] = True
        assert (matrices == matrices.transpose(0, 2, 1)).all()
        assert (matrices[:, *np.triu_indices(5, 1)] == drawn).all()
    clean, levels = edge_bits(tiny), layout.level_map(1)
    assert_binomial((drawn != clean).sum(axis=0), count, np.where(clean, levels[:, 1], levels[:, 0]))


def test_pairs_are_near_where_their_nearer_end_is():
    clusters = CLUSTERS
    layout = cluster_pair_layout(clusters, RANKS, addition=(0.1, 0.3), deletion=(0.2, 0.6))
    rows, columns = np.triu_indices(5, 1)
    levels = layout.level_map(0)
    touching = (clusters[rows] == 0) | (clusters[columns] == 0)
    assert np.allclose(levels[touching], [0.1, 0.2])
    assert (levels[~touching] > 0.15).all()


def test_sampled_votes_are_exact_and_no_adversary_beats_the_certificate(tiny):
    network = sharp_gcn(2, 2, 4)
    layout = cluster_pair_layout(CLUSTERS, RANKS, addition=(0.05, 0.3), deletion=(0.1, 0.5))
    labels, sets = _labels(tiny, network)
    clean = edge_bits(tiny)
    groups = layout.outputs.labels
    maps = [drawable_probabilities(layout.level_map(group)) for group in range(3)]

    def votes(bits: np.ndarray, classes: np.ndarray) -> np.ndarray:
        laws = [_law(sets, bits, levels) for levels in maps]
        return np.array([laws[groups[n]] @ (labels[:, n] == classes[n]) for n in range(5)])

    count, settings = 300, {"bounds": ["envelope", "exact"]}
    plan = SamplingPlan(50, count, seed=2, chunk_size=250)
    for kind, nodes in (
        (Kind.ANY, np.arange(5)),
        (Kind.ADDITIONS, np.array([0, 3, 4])),
        (Kind.DELETIONS, np.array([1, 2, 4])),
    ):
        task = EdgeTask(EdgeIndexClassifier(network, 2), tiny, nodes)
        asked = Settings(0.3, [0, 1, 2], threat=Flips(kind), **settings)
        result = certify(task, Smoothing(layout, plan), asked, run=QUIET)
        candidate, prediction = np.zeros(5, int), np.full(5, -1)
        candidate[nodes], prediction[nodes] = result["candidate"].values[0], result["prediction"].values[0]
        assert_binomial(result["votes"].values[0], count, np.clip(votes(clean, candidate)[nodes], 0, 1))
        flipped = {Kind.ANY: sets != clean, Kind.ADDITIONS: sets & ~clean, Kind.DELETIONS: ~sets & clean}[kind]
        certified = result["certified"].sel(target="ratio").values[0]
        assert certified[-1, 0] > 0
        for place, budget in enumerate((0, 1, 2)):
            reach = ((sets != clean) == flipped).all(axis=1) & (flipped.sum(axis=1) <= budget)
            robust = [((votes(bits, candidate) > 0.5) & (prediction >= 0)).sum() for bits in sets[reach]]
            assert (certified[:, place] <= min(robust)).all()


def test_layouts_of_other_graphs_are_refused(tiny):
    classifier = EdgeIndexClassifier(sharp_gcn(2, 2, 0), 2)
    task = EdgeTask(classifier, tiny, np.arange(5))
    with pytest.raises(InvalidInputError, match="pairs"):
        _subject(task, isotropic_pair_layout(4, addition=0.1, deletion=0.1))
    with pytest.raises(InvalidInputError, match="pairs"):
        _subject(task, ls.GridLayout((1, 1), 0.1, 0.1))
    good = isotropic_pair_layout(5, addition=0.1, deletion=0.1)
    with pytest.raises(InvalidInputError, match="SparseFlips"):
        task.assign(Smoothing(good, PLAN, Gaussian()), Settings(0.5, [0]), SamplingOptions(), None)


def test_only_classifiers_of_any_edges_will_do(tiny):
    class Fixed(NetworkClassifier):
        pass

    network = sharp_gcn(2, 2, 0)
    assert isinstance(network, GraphNetwork)
    for classifier in (NetworkClassifier(network), Fixed(network), EdgeIndexClassifier(network, 2)):
        made = EdgeTask(classifier, tiny, np.array([True, False, True, True, True]))
        assert made.nodes.tolist() == [0, 2, 3, 4]
    large = graph_from_arrays(
        np.zeros((2, 0), int), np.ones((5000, 1), int), np.zeros(5000, int), class_names=("a", "b")
    )
    with pytest.raises(InvalidInputError, match="at most 4096"):
        EdgeTask(EdgeIndexClassifier(network, 2), large, np.arange(5))


LEVELS = {"addition": (0.1, 0.3), "deletion": (0.2, 0.6)}


def test_levels_that_follow_from_the_certified_edges_are_refused(tiny):
    """However the layout was reached from the edges; those of another graph are as good as any fixed levels."""
    classifier = EdgeIndexClassifier(sharp_gcn(2, 2, 0), 2)
    reference = graph_from_arrays(tiny.adjacency.toarray()[::-1, ::-1], tiny.attributes, tiny.labels)
    cut = spectral_clusters(tiny, 2)
    fixed = np.array([[0, 1], [1, 0]])
    own = {
        "ranks": cluster_pair_layout(CLUSTERS, affinity_ranks(tiny.adjacency, CLUSTERS), **LEVELS),
        "ranks, copied": cluster_pair_layout(CLUSTERS, affinity_ranks(tiny.adjacency, CLUSTERS).copy(), **LEVELS),
        "clusters": cluster_pair_layout(cut, fixed, **LEVELS),
        "clusters of another type": cluster_pair_layout(cut.astype(np.int32), fixed, **LEVELS),
        "clusters, ranks elsewhere": cluster_pair_layout(cut, affinity_ranks(reference.adjacency, cut), **LEVELS),
    }
    for layout in own.values():
        with pytest.raises(InvalidInputError, match="computed from the set of edges"):
            _subject(EdgeTask(classifier, tiny, np.arange(5)), layout)
    # At another graph it is as fixed as any.
    _subject(EdgeTask(classifier, reference, np.arange(5)), own["ranks"])
    elsewhere = affinity_ranks(reference.adjacency, spectral_clusters(reference, 2))
    for clusters, ranks in ((CLUSTERS, RANKS), (spectral_clusters(reference, 2), elsewhere), (np.array(cut), fixed)):
        _subject(EdgeTask(classifier, tiny, np.arange(5)), cluster_pair_layout(clusters, ranks, **LEVELS))


@pytest.mark.parametrize("ranks", [RANKS[:2, :2], RANKS + 1, RANKS - 1])
def test_ranks_that_do_not_fit_the_clusters_are_refused(ranks):
    with pytest.raises(InvalidInputError, match="ranks"):
        cluster_pair_layout(CLUSTERS, ranks, **LEVELS)


class _OnePair(torch.nn.Module):
    """Every node has class 0 unless nodes 2 and 3 are joined."""

    def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        copies, (source, target) = len(attributes) // 6, edges
        joined = torch.zeros(copies, dtype=torch.bool)
        joined[source[(source % 6 == 2) & (target % 6 == 3)] // 6] = True
        return torch.stack([~joined, joined], 1).float().mul(4).repeat_interleave(6, 0)


def test_the_smoothed_classifier_is_the_same_at_every_graph():
    """One added edge used to swap two ranks, and the class of a node that was certified against five additions."""
    clusters = np.array([0, 0, 1, 1, 2, 2])
    classifier, levels = EdgeIndexClassifier(_OnePair().eval(), 2), {"addition": (0.08, 0.60), "deletion": (0.9, 0.42)}

    def graph(*extra: tuple[int, int]):
        edges = np.array([(0, 1), (0, 2), (0, 4), *extra]).T
        return graph_from_arrays(edges, np.ones((6, 2), int), np.zeros(6, int), class_names=("a", "b"))

    clean, place = graph(), int(np.flatnonzero((np.stack(np.triu_indices(6, 1)) == [[2], [3]]).all(0))[0])
    for derived in (clean, graph((1, 5))):
        ranks = affinity_ranks(derived.adjacency, clusters)
        layout = cluster_pair_layout(clusters, ranks, **levels)
        if derived is clean:
            with pytest.raises(InvalidInputError, match="edges"):
                _subject(EdgeTask(classifier, clean, np.array([0])), layout)
            continue
        asked = Settings(0.001, [0, 1, 2], bounds=["exact"], threat=Flips(Kind.ADDITIONS))
        plan = SamplingPlan(100, 5000, seed=3, chunk_size=1000)
        result = certify(EdgeTask(classifier, clean, np.array([0])), Smoothing(layout, plan), asked, run=QUIET)
        level = drawable_probabilities(layout.level_map(0))[place]
        for additions in (0, 1, 2):
            certified = int(result["certified"].sel(target="ratio").values[0, 0, additions])
            assert certified or additions
            # Only the pair (2, 3) matters to the model, so that the exact law at every perturbed graph is its level.
            for added in combinations([(2, 3), (1, 5), (1, 3)], additions):
                bit = edge_bits(graph(*added))[place]
                joined = 1 - level[1] if bit else level[0]
                kept = (joined > 0.5) == bool(result["candidate"].values[0, 0])
                assert certified <= kept


class _Degrees(torch.nn.Module):
    """Keeps the degrees of the first edges that it sees, for each number of nodes."""

    def __init__(self, caching: bool) -> None:
        super().__init__()
        self.caching, self.kept = caching, {}

    def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        degrees = torch.bincount(edges[0], minlength=len(attributes)).float()
        if self.caching:
            degrees = self.kept.setdefault(len(attributes), degrees)
        return torch.stack([degrees, 2 - degrees], 1)


def test_modules_that_keep_edges_are_refused(tiny):
    layout = isotropic_pair_layout(tiny.nodes, addition=0.1, deletion=0.4)
    _subject(EdgeTask(EdgeIndexClassifier(_Degrees(False).eval(), 2), tiny, np.arange(5)), layout)
    with pytest.raises(InvalidInputError, match="once it was shown another one before"):
        _subject(EdgeTask(EdgeIndexClassifier(_Degrees(True).eval(), 2), tiny, np.arange(5)), layout)


def test_modules_of_which_it_stays_unknown_are_refused(tiny):
    locked = _Degrees(True)
    locked.lock = threading.Lock()  # cannot be copied
    locked.register_forward_hook(lambda *_: None)
    with pytest.raises(InvalidInputError, match=r"module: it cannot be copied .* caches in it could not be noticed"):
        _subject(
            EdgeTask(EdgeIndexClassifier(locked.eval(), 2), tiny, np.arange(5)),
            isotropic_pair_layout(tiny.nodes, addition=0.1, deletion=0.4),
        )


def test_edges_have_all_that_arrays_have(tiny, tmp_path: Path):
    """Kept, certified again by a baseline, and shown."""
    layout = isotropic_pair_layout(tiny.nodes, addition=0.05, deletion=0.4)
    task = EdgeTask(NetworkClassifier(sharp_gcn(2, 2, 4)), tiny, np.array([0, 2, 4]), called="five nodes")
    smoothing, settings = Smoothing(layout, SamplingPlan(50, 500, seed=1)), Settings(0.1, [0, 1, 2])
    result = certify(task, smoothing, settings, run=Run(tmp_path / "run", progress=NoProgress()))
    assert result.attrs["units"] == "edges"
    assert result["item"].values.tolist() == ["five nodes"]
    assert result["label"].values[0].tolist() == tiny.labels[[0, 2, 4]].tolist()
    again = ls.recertify(tmp_path / "run")
    assert np.array_equal(again["certified"], result["certified"])
    exact = ls.recertify(tmp_path / "run", Settings(0.1, [0, 1, 2], method=SparseSmooth()))
    counts = exact["certified"].sel(target="ratio", bound="naive").values[0]
    assert (counts >= result["certified"].sel(target="ratio", bound="envelope").values[0]).all()
    ls.report.write_report({"edges": result}, tmp_path / "page.html")
    assert "five nodes" in (tmp_path / "page.html").read_text(encoding="utf-8")
    fingerprint = task.model.fingerprint()
    assert fingerprint == EdgeTask(NetworkClassifier(sharp_gcn(2, 2, 4)), tiny, np.array([0, 2, 4])).model.fingerprint()
    assert fingerprint != EdgeTask(NetworkClassifier(sharp_gcn(2, 2, 4)), tiny, np.array([0, 2])).model.fingerprint()


EDGES = """
[edges]
data = "graph.npz"
reference = "before.npz"
clusters = 2
clustering = "spectral"
per_class = 2

[model]
kind = "gcn"
hidden = [4]
epochs = 5
self_training = true

[noise]
distribution = "sparse-flips"
addition_min = 0.02
addition_max = 0.05
deletion_min = 0.3
deletion_max = 0.5

[sampling]
n_candidate = 20
n_bound = 200

[certificate]
alpha = 0.1
budgets = [0, 1, 2]
"""


def write_graphs(folder: Path) -> None:
    rng, labels = np.random.default_rng(0), np.arange(20) // 10
    for name in ("graph", "before"):
        joined = np.triu(rng.random((20, 20)) < np.where(labels[:, None] == labels, 0.5, 0.05), 1)
        bits = (rng.random((20, 6)) < np.where(labels[:, None] == (np.arange(6) >= 3), 0.9, 0.1)).astype(int)
        save_npz(graph_from_arrays((joined | joined.T).astype(int), bits, labels), folder / f"{name}.npz")


SWEPT = """
[[method]]
name = "localized"

[[method]]
name = "isotropic"
set = { "edges.clusters" = 1, "noise.addition_max" = 0.02, "noise.deletion_max" = 0.3 }
grid = { "certificate.bounds" = [["naive"], ["naive", "envelope"]] }
"""


def test_sweeps_compare_edges_too(tmp_path: Path):
    write_graphs(tmp_path)
    (tmp_path / "sweep.toml").write_text(
        re.sub(r"^\[(\w+)\]", r"[base.\1]", EDGES, flags=re.MULTILINE) + SWEPT, "utf-8"
    )
    sweep = load_sweep(tmp_path / "sweep.toml")
    assert [point.total_samples for point in sweep.points] == [440, 220, 220]
    assert len({point.run_key for point in sweep.points}) == 2, "what differs in bounds alone shares its samples"
    run_sweep(sweep, tmp_path / "out", certify_quietly, Here())
    page = write_sweep_report(sweep, tmp_path / "out")
    assert not page.problems
    assert page.quality == "accuracy"
    assert "(edges)" in page.radius
    assert {one.label: set(one.radii) for one in page.methods["localized"]} == {"as set": {"naive"}}
    with pytest.raises(ConfigurationError, match="attributes, not edges"):
        expand({**tomllib.loads((tmp_path / "sweep.toml").read_text("utf-8")), "flips": "deletions"}, tmp_path)


def test_pairs_of_budgets_are_no_budgets_of_edges(tmp_path: Path):
    write_graphs(tmp_path)
    (tmp_path / "edges.toml").write_text(EDGES.replace("budgets = [0, 1, 2]", "additions = [0, 1]"), "utf-8")
    with pytest.raises(ConfigurationError, match=r"certificate\.additions"):
        load_configuration(tmp_path / "edges.toml")


def test_files_say_that_edges_are_perturbed(tmp_path: Path):
    write_graphs(tmp_path)
    (tmp_path / "edges.toml").write_text(EDGES, "utf-8")
    run = CliRunner(env={"COLUMNS": "160"})
    for command in ("certify edges.toml --out run", "recertify run --budgets 0,1,3", "report run --to page.html"):
        words = [
            str(tmp_path / word) if word.partition(".")[0] in ("edges", "run", "page") else word
            for word in command.split()
        ]
        assert run.invoke(app, words, catch_exceptions=False).exit_code == 0
    result, again = (load(tmp_path / "run" / f"{name}.nc") for name in ("result", "recertified"))
    assert result["budget"].values.tolist() == [0, 1, 2]
    assert again["budget"].values.tolist() == [0, 1, 3]
    assert result.attrs["threat"] == "perturbation that changes at most ε edges"
    assert (tmp_path / "run" / "network.safetensors").is_file()
    for change, wrong in (
        ('reference = "before.npz"\n', "reference"),
        ("deletion_max = 0.5\n", "deletion_max"),
        ('distribution = "sparse-flips"\n', "distribution"),
    ):
        (tmp_path / "wrong.toml").write_text(EDGES.replace(change, ""), "utf-8")
        with pytest.raises(ConfigurationError, match=wrong):
            load_configuration(tmp_path / "wrong.toml")
