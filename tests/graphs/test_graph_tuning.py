"""Tuning the noise of graphs whose best layout is known, and runs that follow it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth import graphs
from localsmooth.baselines import SparseSmooth
from localsmooth.bounds import Bonferroni
from localsmooth.certificates import SparseScores
from localsmooth.cli.app import app
from localsmooth.config import ConfigurationError, GraphConfiguration, load_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.metrics import average_certifiable_radius
from localsmooth.results import kind_curve
from localsmooth.tasks.graphs import AttributedGraph, ClusterLayout, GraphSettings, GraphTask, graph_from_arrays
from localsmooth.tuning import Tuning, cluster_candidates

CLUSTERS, SIZE, WIDTH = 3, 12, 20
BUDGETS = range(0, 9, 2)
SETTINGS = GraphSettings(0.05, [0], BUDGETS, bounds=["envelope"], simultaneous=Bonferroni())
WORK, SPLITS, AIM = 900, [0.02, 0.5], ls.Aim("accuracy")


class _Own(torch.nn.Module):
    """Every node looks at its own bits: in which half it has more ones, if enough are left."""

    def __init__(self, enough: float = 0.5) -> None:
        super().__init__()
        self.enough = enough

    def forward(self, bits: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        del edges
        halves = bits.reshape(len(bits), 2, -1).sum(-1)
        return torch.stack([halves[:, 0], halves[:, 1], torch.full_like(halves[:, 0], self.enough)], dim=-1)


class _Everyone(torch.nn.Module):
    """Every node looks at the bits of all nodes."""

    def forward(self, bits: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        del edges
        whole = bits.reshape(-1, CLUSTERS * SIZE, WIDTH).sum((1, 2))
        some = (whole > 60).float().repeat_interleave(CLUSTERS * SIZE)
        return torch.stack([some, 0.5 * torch.ones_like(some), torch.zeros_like(some)], dim=-1)


def graph(seed: int, share: float = 0.7) -> AttributedGraph:
    """A path of cliques, each a cluster, where nodes have ones in one half of their bits."""
    nodes = np.arange(CLUSTERS * SIZE)
    edges = (nodes[:, None] // SIZE == nodes // SIZE) & (nodes[:, None] != nodes)
    edges |= np.abs(nodes[:, None] - nodes) == 1
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, nodes.size)
    bits = (generator.random((nodes.size, 2, WIDTH // 2)) < share) & (labels[:, None, None] == [[[0], [1]]])
    return graph_from_arrays(edges.astype(int), bits.reshape(nodes.size, WIDTH).astype(int), labels)


def cut(of: AttributedGraph, count: int, seed: int) -> np.ndarray:
    """The cliques, or fewer clusters of them."""
    del seed
    return np.arange(of.nodes) // SIZE * count // CLUSTERS


def task(seed: int, module: torch.nn.Module | None = None, share: float = 0.7) -> GraphTask:
    made = graph(seed, share)
    classifier = graphs.EdgeIndexClassifier((_Own() if module is None else module).eval(), classes=3)
    return GraphTask(classifier, made, np.arange(made.nodes))


CANDIDATES = cluster_candidates([0.5, 0.9], additions=[0.05], clusters=[CLUSTERS], cut=cut)


@cache
def tuned() -> Tuning:
    """Nodes that look at themselves; several tests look at it."""
    return ls.tune(task(0), SETTINGS, CANDIDATES, work=WORK, draws=2, executor="serial", split=SPLITS, aim=AIM)


def test_candidates_are_isotropic_and_localized_noise() -> None:
    assert [one.name for one in CANDIDATES] == [
        "isotropic θ⁺ 0.05, θ⁻ 0.5",
        "isotropic θ⁺ 0.05, θ⁻ 0.9",
        "3 clusters θ⁺ 0.05, θ⁻ 0.5 … 0.9",
    ]
    assert [one.isotropic for one in CANDIDATES] == [True, True, False]
    both = cluster_candidates([0.5], additions=[0.01, 0.05], clusters=[2, 3])
    assert [one.name for one in both if not one.isotropic] == [
        f"{count} clusters θ⁺ 0.01 … 0.05, θ⁻ 0.5" for count in (2, 3)
    ]
    for arguments, field in (({"clusters": [1]}, "clusters"), ({"additions": []}, "additions")):
        with pytest.raises(InvalidInputError, match=field):
            cluster_candidates([0.5], **arguments)  # pyright: ignore
    with pytest.raises(InvalidInputError, match="deletions"):
        cluster_candidates([1.0])


def test_nodes_that_look_at_themselves_get_local_noise_and_others_isotropic() -> None:
    found = tuned()
    assert found.best.entry.candidate.name == "3 clusters θ⁺ 0.05, θ⁻ 0.5 … 0.9"
    assert found.best.forecast.radius > 1.05 * found.isotropic.forecast.radius
    only = ls.tune(task(0, _Everyone()), SETTINGS, CANDIDATES[::2], work=WORK, draws=1, executor="serial")
    assert only.best is only.isotropic


def test_a_pass_is_over_the_whole_graph_and_clusters_pay_one_each() -> None:
    for one in tuned().tried:
        plan, groups = one.entry.plan, 1 if one.entry.candidate.isotropic else CLUSTERS
        assert groups * (plan.n_candidate + plan.n_bound) == one.entry.work == WORK


def test_a_run_on_another_graph_is_as_foretold_and_on_this_one_refused() -> None:
    found = tuned()
    result = ls.certify(task(1), found.smoothing, SETTINGS)
    curve = kind_curve(result, "deletions").sel(target="accuracy", bound="envelope")["certified"].values.ravel()
    radius = sum(average_certifiable_radius(np.array(BUDGETS, float), curve / (CLUSTERS * SIZE)))
    assert radius == pytest.approx(found.best.forecast.radius, rel=0.35)  # graphs differ
    with pytest.raises(InvalidInputError, match="computed from the attributes"):
        ls.certify(task(0), found.smoothing, SETTINGS)
    fixed = ls.tune(
        task(0),
        SETTINGS,
        [ls.Candidate("made", CANDIDATES[2].layout.on(graph(0)))],  # pyright: ignore
        work=WORK,
        draws=1,
        executor="serial",
    )
    assert fixed.isotropic.entry.candidate.name == "isotropic θ⁺ 0.05, θ⁻ 0.5"
    with pytest.raises(InvalidInputError, match="computed from the attributes"):
        ls.certify(task(0), fixed.smoothing, SETTINGS)


def test_what_is_foretold_is_what_a_run_on_the_same_graph_with_other_samples_certifies() -> None:
    """By the plain rule, which remembers nothing: a measurement, no certificate of "tune, then certify"."""
    best = tuned().best
    made = ls.certify(task(0), ls.Smoothing(best.entry.candidate.layout, best.entry.plan), SETTINGS)
    curve = kind_curve(made, "deletions").sel(target="accuracy", bound="envelope")["certified"].values.ravel()
    radius = sum(average_certifiable_radius(np.array(BUDGETS, float), curve / (CLUSTERS * SIZE)))
    assert best.forecast.radius == pytest.approx(radius, rel=0.1)


def test_one_pilot_serves_all_splits() -> None:
    said: list[str] = []
    few, one = CANDIDATES[:2], task(0)
    splits = [0.9, 0.1]
    found = ls.tune(one, SETTINGS, few, work=600, draws=2, executor="serial", split=splits, tell=said.append)
    pilots = [line for line in said if line.startswith("Round")]
    assert len(pilots) == 2, "two candidates, and a pilot for each"
    assert all("N₁ : N₂" in line for line in pilots)
    alone = [
        ls.tune(one, SETTINGS, few, work=600, draws=2, executor="serial", split=each).best.forecast.radius
        for each in splits
    ]
    assert found.best.forecast.radius == max(alone)
    assert found.plan.n_candidate == round(600 * splits[int(np.argmax(alone))])
    assert max(alone) > 1.05 * min(alone), "the splits differ"


def test_additions_are_another_aim() -> None:
    both = GraphSettings(0.05, additions="auto", deletions="auto", bounds=["envelope"], simultaneous=Bonferroni())
    for aim in (ls.Aim(kind="additions"), ls.Aim(at=3)):
        found = ls.tune(task(0), both, CANDIDATES[:1], work=600, draws=1, aim=aim, executor="serial")
        seen, kind = found.best.forecast, aim.kind or "deletions"
        assert seen.budgets[-1] == max(getattr(found.best.entry.assignment.proven, kind))
        assert (seen.budgets % 1 == 0).all()
        assert aim.at is None or aim.at in seen.budgets


def test_every_candidate_may_have_a_classifier_of_its_own() -> None:
    """What was trained for the localized noise sees nothing."""
    asked: list[str] = []

    def trained(candidate: ls.Candidate) -> GraphTask:
        asked.append(candidate.name)
        return task(0, _Own(0.5 if candidate.isotropic else 99.0))

    found = ls.tune(task(0), SETTINGS, CANDIDATES, work=WORK, draws=1, aim=AIM, executor="serial", trained=trained)
    assert found.best is found.isotropic
    assert asked == [one.name for one in CANDIDATES]


def reordered(of: AttributedGraph) -> AttributedGraph:
    order = np.random.default_rng(5).permutation(of.nodes)
    return replace(
        of, adjacency=of.adjacency[order][:, order], attributes=of.attributes[order], labels=of.labels[order]
    )


def test_what_is_chosen_by_nodes_does_not_certify_them_in_another_order() -> None:
    other = reordered(graph(0))
    classifier = graphs.EdgeIndexClassifier(_Own().eval(), classes=3)
    assert graphs.attributes_digest(other) == graphs.attributes_digest(graph(0)) != graphs.attributes_digest(graph(1))
    with pytest.raises(InvalidInputError, match="computed from the attributes"):
        ls.certify(GraphTask(classifier, other, np.arange(other.nodes)), tuned().smoothing, SETTINGS)


def test_graphs_that_candidates_were_trained_with_are_not_certified_either() -> None:
    found = ls.tune(
        task(0), SETTINGS, CANDIDATES, work=WORK, draws=1, aim=AIM, executor="serial", trained=lambda _: task(1)
    )
    for seed in (0, 1):
        with pytest.raises(InvalidInputError, match="computed from the attributes"):
            ls.certify(task(seed), found.smoothing, SETTINGS)


def test_a_graph_that_holds_the_certified_one_is_no_calibration() -> None:
    parts = [graph(seed) for seed in range(3)]
    whole = AttributedGraph(
        sp.csr_array(sp.block_diag([part.adjacency for part in parts])),
        sp.csr_array(sp.vstack([part.attributes for part in parts])),
        np.concatenate([part.labels for part in parts]),
    )
    with pytest.raises(InvalidInputError, match="nodes that are certified have the attributes of its nodes"):
        graphs.require_other_nodes(whole, parts[0])
    with pytest.raises(InvalidInputError, match="of its nodes have the attributes of nodes that are certified"):
        graphs.require_other_nodes(parts[0], whole)


def test_clusters_do_not_follow_from_attributes() -> None:
    shown = list[AttributedGraph]()

    def seen(of: AttributedGraph, count: int, seed: int) -> np.ndarray:
        shown.append(of)
        return cut(of, count, seed)

    ClusterLayout(CLUSTERS, (0.1, 0.1), (0.5, 0.9), seen).on(graph(0))
    assert shown[0].attributes.shape == graph(0).attributes.shape
    assert not shown[0].attributes.toarray().any()


def test_what_cannot_be_tuned_is_said() -> None:
    one = task(0)
    for settings, arguments, field in (
        (GraphSettings(0.1, baseline=SparseSmooth()), {}, "baseline"),
        (GraphSettings(0.1, certificates=[SparseScores()]), {}, "certificates"),
        (ls.Settings(0.1, [0.0, 1.0]), {}, "prove"),
        (SETTINGS, {"aim": ls.Aim(kind="flips")}, "kind"),
        (SETTINGS, {"aim": ls.Aim(at=1.5)}, "at"),
        (SETTINGS, {"split": []}, "split"),
        (SETTINGS, {"split": [0.1, 1.0]}, "split"),
        (SETTINGS, {"noise": ls.Gaussian()}, "noise"),
        (SETTINGS, {"work": 3}, "n_bound"),
    ):
        with pytest.raises(InvalidInputError, match=f"^{field}"):
            ls.tune(one, settings, CANDIDATES, executor="serial", **{"work": 2000, **arguments})  # pyright: ignore
    with pytest.raises(InvalidInputError, match="layout"):
        ls.tune(one, SETTINGS, ls.grid_candidates([0.3]), work=2000)
    edges = graphs.EdgeTask(one.classifier, one.graph, one.nodes)
    with pytest.raises(InvalidInputError, match="not tuned for edges"):
        ls.tune(edges, ls.Settings(0.1, [0.0, 1.0]), [ls.Candidate("a", CANDIDATES[0].layout)], work=2000)
    unknown = GraphTask(
        one.classifier,
        graph_from_arrays(np.eye(3, k=1, dtype=int), np.eye(3, WIDTH, dtype=int), np.full(3, -1)),
        np.arange(3),
    )
    with pytest.raises(InvalidInputError, match="no labels for accuracy"):
        ls.tune(unknown, SETTINGS, CANDIDATES, work=2000, aim=ls.Aim("accuracy"))


def test_rules_of_clusters() -> None:
    with pytest.raises(InvalidInputError, match="one cluster has one level"):
        ClusterLayout(1, (0.1, 0.1), (0.5, 0.9))
    with pytest.raises(InvalidInputError, match="from edges"):
        ClusterLayout(1, (0.1, 0.1), (0.5, 0.5)).layout((1, 4), (4,))
    made = ClusterLayout(CLUSTERS, (0.1, 0.1), (0.5, 0.9), cut).on(graph(0))
    plain = graphs.cluster_layout(cut(graph(0), 3, 0), graph(0).adjacency, addition=(0.1, 0.1), deletion=(0.5, 0.9))
    assert made.digest() == plain.digest()


FILE = """
[graph]
data = "certified.npz"
clusters = 3
per_class = 3
clustering = "spectral"
[calibration]
data = "other.npz"
per_class = 3
[model]
kind = "gcn"
hidden = [4]
epochs = 10
self_training = false
[noise]
addition = [0.05, 0.05]
deletion = [0.5, 0.9]
[sampling]
passes = 900
split = 0.2
[certificate]
alpha = 0.05
additions = [0]
deletions = [0, 1, 2, 4]
bounds = ["envelope"]
many_outputs = { rule = "bonferroni" }
[execution]
executor = "serial"
[tune]
draws = 1
splits = [0.1, 0.3]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, seed in (("certified", 1), ("other", 0)):
        graphs.save_npz(graph(seed), tmp_path / f"{name}.npz")
    (tmp_path / "run.toml").write_text(FILE, encoding="utf-8")
    return tmp_path


def invoke(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_the_command_writes_a_file_that_certifies_the_other_graph(folder: Path) -> None:
    done = invoke("tune", folder / "run.toml", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert {one["candidate"] for one in told["tried"]} == {one.name for one in CANDIDATES}
    assert told["work"] == 900
    text = (folder / "run-tuned.toml").read_text(encoding="utf-8")
    assert "on the graph other" in text
    assert "passes = " not in text, "what follows from them is said"
    made = load_configuration(folder / "run-tuned.toml")
    assert isinstance(made, GraphConfiguration)
    assert made.sampling.n_bound == told["best"]["n_bound"]
    assert made.groups * (made.sampling.n_candidate + made.sampling.n_bound) <= 900
    assert made.graph.clusters == told["best"]["groups"]
    assert [*made.noise.deletion] == [min(made.noise.deletion), max(made.noise.deletion)]
    task, smoothing, _ = made.prepare(folder / "run", print)
    assert isinstance(task, GraphTask)
    assert task.called == "certified"
    assert isinstance(smoothing.layout, ls.Layout)
    assert smoothing.layout.outputs.count == made.graph.clusters


def test_the_certified_graph_is_no_calibration(folder: Path) -> None:
    same = FILE.replace("other.npz", "certified.npz")
    (folder / "same.toml").write_text(same)
    with pytest.raises(InvalidInputError, match=r"calibration: 100% of its nodes"):
        invoke("tune", folder / "same.toml")
    with pytest.raises(InvalidInputError, match="calibration: "):
        invoke("certify", folder / "same.toml", "--out", folder / "run")
    part = graph(1).subgraph(np.arange(20))
    graphs.save_npz(part, folder / "other.npz")
    with pytest.raises(InvalidInputError, match="calibration: "):
        invoke("tune", folder / "run.toml")
    none = FILE.replace('[calibration]\ndata = "other.npz"\nper_class = 3\n', "")
    (folder / "none.toml").write_text(none)
    with pytest.raises(ConfigurationError, match="calibration: this section is missing"):
        invoke("tune", folder / "none.toml")
    graphs.save_npz(graph(0), folder / "other.npz")
    with pytest.raises(InvalidInputError, match="kind: got 'flips'"):
        invoke("tune", folder / "run.toml", "--flips", "flips")


def test_each_probability_at_the_edge_is_said() -> None:
    (largest, smallest) = tuned().at_edge
    assert largest == "The best θ⁻, 0.9, is the largest that was tried: [tune] deletions above it may be better."
    assert smallest == "The best θ⁻, 0.5, is the smallest that was tried: [tune] deletions below it may be better."


def test_the_calibration_graph_has_the_class_names_of_the_certified_one(folder: Path) -> None:
    def names() -> tuple[str, ...]:
        made = load_configuration(folder / "run.toml")
        assert isinstance(made, GraphConfiguration)
        return made.tuning_data(CANDIDATES[0].layout.on).graph.class_names  # pyright: ignore

    certified = replace(graph(1), class_names=("left", "right"))
    graphs.save_npz(certified, folder / "certified.npz")
    assert names() == ("left", "right")
    graphs.save_npz(replace(certified, class_names=("left", "right", "neither")), folder / "certified.npz")
    assert names() == ()  # of another number of classes
    (folder / "run.toml").write_text(FILE.replace("alpha = 0.05", 'alpha = 0.05\ntargets = ["class:up"]'))
    with pytest.raises(InvalidInputError, match="targets: class:up: 'up' is none of the classes"):
        invoke("tune", folder / "run.toml")
