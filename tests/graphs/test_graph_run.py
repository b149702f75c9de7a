import importlib
import itertools
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch
import xarray as xr
from rich.console import Console

from localsmooth.baselines import SparseSmooth
from localsmooth.bounds import (
    Betting,
    Bonferroni,
    JointCount,
    KFamilywise,
    VoteConfidenceSequence,
    clopper_pearson_lower,
)
from localsmooth.certificates import ABSTAIN, Basis, RenyiVotes, SparseScores
from localsmooth.cli.summary import print_summary
from localsmooth.collective import AtMostGroups, Exact, GroupBudgets, Naive
from localsmooth.collective.search.progress import Reporter
from localsmooth.config import ConfigurationError, parse_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.noise import SparseFlips
from localsmooth.pipeline import certified_overlap
from localsmooth.report import render_report
from localsmooth.results import ACCURACY, RATIO, kind_curve, load, run_info, save
from localsmooth.runs import DirectoryStore, OtherRunError, SamplingPlan
from localsmooth.tasks import StopWhenDecided
from localsmooth.tasks.arrays import Settings
from localsmooth.tasks.graphs import (
    GCN,
    AttackLimits,
    EdgeIndexClassifier,
    GraphSettings,
    NetworkClassifier,
    NodeTrainingOptions,
    attribute_caps,
    budget_grid,
    cluster_layout,
    flip_threat,
    metis_clusters,
    sample_nodes,
    self_labeled,
    split_per_class,
    train_with_noise,
)
from localsmooth.tasks.graphs.graph import graph_from_arrays
from localsmooth.tasks.graphs.task import chosen_nodes, require_classifier
from localsmooth.tasks.record import RunRecordError
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from tests.collective.tired import OutOfTime
from tests.flat import certify_graph, recertify
from tests.graphs.curves import certify_nodes, node_certificates
from tests.seeding import seeded

solve_module = importlib.import_module("localsmooth.collective.solving")


def test_training_lowers_the_loss_and_keeps_the_best_epoch(digits):
    layout = cluster_layout(metis_clusters(digits, 2), digits.adjacency, addition=(0.02, 0.02), deletion=(0.1, 0.3))
    split = split_per_class(digits.labels, per_class=5)
    networks = []
    for _ in range(2):
        with seeded(0):
            network = GCN(digits.width, digits.classes, (16,))
        options = NodeTrainingOptions(learning_rate=0.02, epochs=40, patience=40)
        report = train_with_noise(network, digits, split, layout, options)
        assert not network.training
        assert report.losses[-1] < 0.7 * report.losses[0]
        assert report.best_epoch == 5 * int(np.argmin(report.validation_losses))
        networks.append(network.state_dict())
    assert all(torch.equal(networks[0][key], networks[1][key]) for key in networks[0])


class _Plain(torch.nn.Module):
    """A network that is known only as something to call."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, attributes, edge_index):
        return self.network(attributes, edge_index)


def test_any_module_is_trained_like_a_network_of_the_package(digits):
    layout = cluster_layout(metis_clusters(digits, 2), digits.adjacency, addition=(0.02, 0.02), deletion=(0.1, 0.3))
    split = split_per_class(digits.labels, per_class=5)
    losses = []
    for wrap in (lambda network: network, _Plain):
        with seeded(0):
            network = wrap(GCN(digits.width, digits.classes, (16,)))
        report = train_with_noise(network, digits, split, layout, NodeTrainingOptions(learning_rate=0.02, epochs=10))
        assert not network.training
        losses.append((report.losses, report.validation_losses))
    np.testing.assert_allclose(losses[0][0], losses[1][0], rtol=1e-3)
    np.testing.assert_allclose(losses[0][1], losses[1][1], rtol=1e-3)


def test_self_labels_leave_known_labels_and_validation_alone(digits):
    split = split_per_class(digits.labels, per_class=5)
    graph, wide = self_labeled(digits, split, np.zeros(digits.nodes, int))
    assert np.array_equal(graph.labels[split.train], digits.labels[split.train])
    assert np.array_equal(graph.labels[split.validation], digits.labels[split.validation])
    assert not graph.labels[split.test].any()
    assert np.array_equal(wide.validation, split.validation)
    assert not np.intersect1d(wide.train, wide.validation).size
    assert wide.train.size == digits.nodes - split.validation.size


PLAN = SamplingPlan(30, 300, seed=3, chunk_size=100)
SETTINGS = GraphSettings(
    0.1, [0, 1], [0, 1, 3], bounds={**DEFAULT_BOUNDS, "exact": Exact(time_limit=3.0)}, simultaneous=Bonferroni()
)
QUICK = GraphSettings(0.1, [0, 1], [0, 1, 3], bounds=DEFAULT_BOUNDS, simultaneous=Bonferroni())


@pytest.fixture(scope="module")
def parts(digits):
    """A trained network, a layout, and nodes of the digits' graph."""
    layout = cluster_layout(metis_clusters(digits, 3), digits.adjacency, addition=(0.02, 0.02), deletion=(0.4, 0.6))
    with seeded(0):
        network = GCN(digits.width, digits.classes, (16,))
    split = split_per_class(digits.labels, per_class=5)
    train_with_noise(network, digits, split, layout, NodeTrainingOptions(learning_rate=0.02, epochs=60))
    return NetworkClassifier(network), digits, layout, split.test


@pytest.fixture(scope="module")
def run(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph") / "run"
    return folder, certify_graph(*parts, plan=PLAN, settings=SETTINGS, out=folder)


def test_overlaps_are_certified_for_every_pair_of_budgets(run):
    folder, result = run
    made = certified_overlap(folder)
    assert made["iou"].dims == ("item", "class", "additions", "deletions")
    counted = ~result["ignored"].values[0]
    label, prediction = result["label"].values[0][counted], result["prediction"].values[0][counted]
    for c in np.unique(label):
        hit, spared = (label == c) & (prediction == c), (label != c) & ~np.isin(prediction, [c, ABSTAIN])
        at = made["iou"].isel({"item": 0, "class": c, "additions": 0, "deletions": 0}).item()
        assert at == pytest.approx(hit.sum() / (label.size - spared.sum()), abs=1e-12)
    for name in ("iou", "dice", "mean_iou", "iou_upper"):
        for kind in ("additions", "deletions"):
            assert not (made[name].diff(kind) > 1e-3).any()  # up to the tolerance, between parts solved together
    assert float(made["mean_iou"].isel(additions=0, deletions=1).item()) > 0.1
    page = render_report({"graph": result}, overlaps={"graph": made})
    assert "Certified mean IoU, deletions only" in page
    joint = certified_overlap(
        folder, simultaneous=JointCount(), certificates=[RenyiVotes()], additions=[0], deletions=[0]
    )
    assert 0 < joint["mean_iou"].item() <= float(made["candidate_iou"].mean())
    with pytest.raises(InvalidInputError, match="baseline"):
        certified_overlap(folder, baseline=SparseSmooth(), certificates=[RenyiVotes()])


def same_but_exact(first: xr.Dataset, second: xr.Dataset) -> None:
    """What the exact bound reaches in its time may differ."""
    kept = ["naive", "lp", "envelope"]
    xr.testing.assert_identical(first.sel(bound=kept).drop_attrs(), second.sel(bound=kept).drop_attrs())


def test_exact_solving_tells_how_far_it_is(parts, monkeypatch):
    class Told(NoProgress):
        lines: ClassVar[list[str]] = []

        def message(self, text: str) -> None:
            self.lines.append(text)

    monkeypatch.setattr(solve_module, "Reporter", partial(Reporter, every=0.0))
    settings = replace(SETTINGS, bounds={"exact": Exact(time_limit=1.0)})
    certify_graph(*parts, plan=PLAN, settings=settings, progress=Told())
    told = [line for line in Told.lines if line.startswith("graph: exact, budget")]
    assert told
    assert "certified so far, best attack leaves" in told[0]


class _Coarse(torch.nn.Module):
    """A linear classifier of each node's own attributes, in the precision of its weights."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, classes).to(torch.bfloat16)

    def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        del edges
        return self.linear(attributes.to(torch.bfloat16)).float()


def test_the_record_says_where_and_in_which_precision_nodes_were_classified(parts):
    _, graph, layout, nodes = parts
    with seeded(0):
        classifier = EdgeIndexClassifier(_Coarse(graph.width, graph.classes).eval(), graph.classes)
    made = certify_graph(classifier, graph, layout, nodes, plan=PLAN, settings=QUICK)
    assert (made.attrs["device"], made.attrs["precision"]) == ("cpu", "bfloat16")
    assert "the model as evaluated in bfloat16" in made.attrs["assumptions"]
    assert parts[0].evaluated_in == "float32"


def test_the_table_holds_what_the_parts_compute(parts, run):
    """The result against certificates, threat and collective bound put together by hand."""
    classifier, graph, layout, nodes = parts
    folder, result = run
    xr.testing.assert_identical(load(folder / "result.nc").drop_attrs(), result.drop_attrs())
    tally = sample_nodes(classifier, graph, layout, PLAN)
    base = node_certificates(tally, layout, nodes, alpha=0.1, certificates=(RenyiVotes(),))
    caps = attribute_caps(graph, layout.inputs)
    additions, deletions = budget_grid([0, 1], [0, 1, 3])
    for name in ("naive", "lp", "envelope"):
        threat = flip_threat(caps, additions=additions, deletions=deletions)
        by_hand = certify_nodes(base, graph.labels[nodes], threat, DEFAULT_BOUNDS[name])
        table = result["certified"].isel(item=0).sel(bound=name)
        assert table.sel(target="ratio").values.ravel().tolist() == by_hand.robust.tolist()
        assert table.sel(target="accuracy").values.ravel().tolist() == by_hand.correct.tolist()
    assert result["certified"].sel(target="accuracy", additions=0, deletions=1).max() > 0
    assert result["total"].values.tolist() == [[nodes.size, nodes.size]]
    added = kind_curve(result, "additions")
    assert added["budget"].values.tolist() == [0, 1]
    assert np.array_equal(added["certified"].values, result["certified"].sel(deletions=0).values)


def test_bounds_are_ordered_and_plans_break_what_they_say(parts, run):
    _, result = run
    certified = result["certified"]
    for weak, strong in (("naive", "lp"), ("lp", "envelope"), ("envelope", "exact")):
        assert (certified.sel(bound=weak) <= certified.sel(bound=strong)).all()
    for name, axis in (("additions", 3), ("deletions", 4)):
        assert (np.diff(certified.values, axis=axis) <= 0).all(), name
    alone = result["alone"].isel(item=0).values
    falls = result["falls"].isel(item=0)
    # A node that holds alone cannot fall under any plan; the plan leaves as many as the upper count says.
    assert not (alone & falls.values).any()
    alive = (result["prediction"] >= 0).values[0]
    left = int(alive.sum()) - falls.sel(target="ratio").sum("output_position")
    assert (left >= result["upper"].isel(item=0).sel(target="ratio")).all()
    assert (left <= result["upper"].isel(item=0).sel(target="ratio") + 1).all()
    naive = alone.sum(axis=-1)
    # Where every node has one certificate the naive bound counts exactly those; with several orders it counts fewer.
    assert (certified.isel(item=0).sel(target="ratio", bound="naive").values <= naive).all()
    spent = result["attack"].isel(item=0).sum("input_group")
    assert (spent.sel(kind="additions") <= spent["additions"]).all()
    assert (spent.sel(kind="deletions") <= spent["deletions"]).all()


def test_the_ratio_is_at_least_the_accuracy(parts, run):
    """A bound may get farther with the correct nodes alone; what it proves of them it proves of all."""
    _, graph, _, nodes = parts
    folder, result = run
    correct = result["prediction"].values[0, nodes] == graph.labels[nodes]
    assert correct.sum() < (result["prediction"].values[0, nodes] != ABSTAIN).sum()
    tired = {"tired": OutOfTime(int(correct.sum()))}
    again = recertify(folder, GraphSettings(0.1, [0, 1], [0, 1, 3], bounds=tired))
    for table in ("certified", "lower"):
        assert (again[table].sel(target=RATIO) >= again[table].sel(target=ACCURACY)).all()
    naive = result["certified"].sel(target=RATIO, bound="naive", drop=True)
    assert (again["certified"].sel(target=ACCURACY, bound="tired", drop=True) > naive).any()
    base = node_certificates(sample_nodes(*parts[:3], PLAN), parts[2], nodes, alpha=0.1, certificates=(RenyiVotes(),))
    threat = flip_threat(attribute_caps(graph, parts[2].inputs), additions=[0, 0], deletions=[1, 3])
    curve = certify_nodes(base, graph.labels[nodes], threat, tired["tired"])
    assert (curve.robust >= curve.correct).all()


def test_nodes_rely_on_votes_or_on_scores(parts, run, tmp_path):
    """Which of the two is stored, and the same for every way to the certificates."""
    folder, votes = run
    nodes = parts[3]
    assert set(np.unique(votes["relies_on"]).tolist()) <= {Basis.NOTHING, Basis.VOTES}
    kinds = {"certificates": (RenyiVotes((1.02, 1.05)), SparseScores()), "score_bound": Betting()}
    both = GraphSettings(0.1, [0, 1], [0, 1, 3], **kinds)
    result = recertify(folder, both)
    basis, prediction = result["relies_on"].values[0], result["prediction"].values[0]
    assert {Basis.VOTES, Basis.SCORES} <= set(basis.tolist())
    assert np.array_equal(basis == Basis.NOTHING, prediction < 0)
    assert "relies_on" in " ".join(run_info(result).assumptions)
    save(result, tmp_path / "both.nc")
    assert np.array_equal(load(tmp_path / "both.nc")["relies_on"].values[0], basis)
    tally = sample_nodes(*parts[:3], PLAN)
    base = node_certificates(tally, parts[2], nodes, alpha=0.1, **kinds)
    assert np.array_equal(base.relies_on, basis[nodes])
    # Of one output group, too, and through certificates that know how far the network sees.
    local = recertify(folder, replace(both, strictly_local=True))
    assert np.array_equal(local["relies_on"].values[0], basis)
    assert (local["certified"].sel(bound="envelope") >= result["certified"].sel(bound="naive")).all()
    assert (result["certified"].sel(additions=0, deletions=0, target=RATIO) == (prediction >= 0).sum()).all()


def test_certifying_again_needs_neither_data_nor_model(run, tmp_path):
    folder, result = run
    again = recertify(folder, QUICK)
    same_but_exact(again, result)
    stricter = recertify(folder, GraphSettings(0.001, [0], [0, 1], bounds={"naive": Naive()}))
    assert stricter["certified"].sel(bound="naive")[0, 0, 0, 0] <= result["certified"].sel(bound="naive")[0, 0, 0, 0]
    scores = recertify(folder, GraphSettings(0.1, [0], [0, 1], certificates=[SparseScores(), RenyiVotes()]))
    assert scores["certified"].shape == (1, 2, 3, 1, 2)
    discounted = recertify(folder, GraphSettings(0.1, [0], [0], simultaneous=KFamilywise(3)))
    assert "2 bounds may fail" in discounted.attrs["assumptions"]
    same_but_exact(recertify(folder), result)
    with pytest.raises(InvalidInputError, match="GraphSettings"):
        recertify(folder, Settings(0.1, [1.0]))
    with pytest.raises(RunRecordError):
        recertify(tmp_path, SETTINGS)


def test_interrupted_sampling_goes_on(parts, run, tmp_path):
    class StoppedError(RuntimeError):
        pass

    class Progress(NoProgress):
        done = 0

        def start(self, total: int, done: int) -> None:
            self.done = done

        def advance(self, samples: int) -> None:
            self.done += samples
            if self.done >= 400:
                raise StoppedError

    with pytest.raises(StoppedError):
        certify_graph(*parts, plan=PLAN, settings=QUICK, out=tmp_path, progress=Progress())
    assert not (tmp_path / "result.nc").exists()
    resumed = certify_graph(*parts, plan=PLAN, settings=QUICK, out=tmp_path)
    same_but_exact(resumed, run[1])


def test_limits_reach_the_threat(parts, run):
    _, graph, layout, _ = parts
    folder, result = run
    clusters = np.arange(3)

    def constraints(**limits):
        return AttackLimits(**limits).threat(graph, layout.inputs, clusters, additions=2, deletions=5).constraints(6)

    caps = attribute_caps(graph, layout.inputs)
    plain = flip_threat(caps, additions=2, deletions=5)
    assert np.array_equal(constraints().caps, plain.constraints(6).caps)
    budgets = GroupBudgets(np.arange(6), 3).constraints(6)
    limited = constraints(cluster_budget=3)
    assert np.array_equal(limited.rows[-6:], budgets.rows)
    assert limited.budgets[0, -6:].tolist() == [3] * 6
    assert constraints(attacked_clusters=1).limits[0][0] == 1
    assert np.array_equal(constraints(attacked_clusters=1).limits[0][1], AtMostGroups(1, np.tile(clusters, 2)).labels)
    # One bit at each node: a cluster holds no more deletions than it has nodes with ones.
    few = constraints(node_budget=1)
    holders = np.bincount(layout.inputs.labels, weights=graph.ones_per_node > 0, minlength=3)
    assert np.array_equal(few.caps[3:], holders)
    tighter = recertify(folder, GraphSettings(0.1, [0], [0, 3], limits=AttackLimits(attacked_nodes=0)))
    assert (tighter["certified"][..., 1] == tighter["certified"][..., 0]).all()
    assert "at no more than 0 nodes" in tighter.attrs["threat"]
    both = constraints(node_flips=1, cluster_flips=2)
    assert both.budgets[0, -3:].tolist() == [2] * 3
    assert np.array_equal(both.rows[-3:], np.tile(np.eye(3), 2))
    for limits in (
        AttackLimits(cluster_budget=1),
        AttackLimits(node_budget=1, attacked_nodes=2),
        AttackLimits(node_flips=1, cluster_flips=1),
    ):
        found = recertify(folder, replace(QUICK, limits=limits))
        for bound in ("naive", "envelope"):
            chosen = {"bound": bound}
            assert (found["certified"].sel(chosen) >= result["certified"].sel(chosen)).all()
    for name, value in itertools.product(("attacked_nodes", "cluster_flips", "cluster_budget"), (-1, 10**30)):
        with pytest.raises(InvalidInputError, match=name):
            AttackLimits(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"additions": [-1]}, "additions"),
        ({"additions": range(10**9)}, "additions"),
        ({"additions": range(400), "deletions": range(400)}, "160000 budgets"),
        ({"certificates": []}, "certificates"),
        ({"bounds": {}}, "bounds"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, field):
    with pytest.raises(InvalidInputError, match=field):
        GraphSettings(**({"alpha": 0.1} | arguments))


def test_nodes_outside_the_graph_are_refused(parts):
    classifier, graph, layout, _ = parts
    for nodes in ([], [graph.nodes], [-1]):
        with pytest.raises(InvalidInputError, match="nodes"):
            certify_graph(classifier, graph, layout, np.array(nodes, int), plan=PLAN, settings=SETTINGS)


def test_masks_name_the_nodes_they_mark(parts):
    classifier, graph, layout, nodes = parts
    mask = np.isin(np.arange(graph.nodes), nodes)
    arguments = {"plan": SamplingPlan(5, 200), "settings": GraphSettings(0.1, [0], [0, 1])}
    by_mask, by_number = (certify_graph(classifier, graph, layout, each, **arguments) for each in (mask, nodes))
    xr.testing.assert_identical(by_mask.drop_attrs(), by_number.drop_attrs())
    for wrong in (mask[:-1], np.zeros_like(mask), nodes + 0.5, np.array([graph.nodes])):
        with pytest.raises(InvalidInputError, match="nodes"):
            chosen_nodes(wrong, graph.nodes)


def test_what_is_no_classifier_is_told_how_to_become_one(parts):
    require_classifier(parts[0])
    with pytest.raises(InvalidInputError, match="Wrap it"):
        require_classifier(parts[0].network)


def test_clusters_of_another_graph_are_refused(digits):
    with pytest.raises(InvalidInputError, match="clusters"):
        cluster_layout(np.arange(3), digits.adjacency, addition=(0.1, 0.1), deletion=(0.1, 0.1))


def test_too_few_samples_are_refused_before_sampling(parts):
    with pytest.raises(InvalidInputError, match="n_bound"):
        certify_graph(*parts, plan=SamplingPlan(5, 5), settings=GraphSettings(0.001))


SMALL = {
    "graph": {"data": "digits", "clusters": 3},
    "noise": {"addition": (0.02, 0.02), "deletion": (0.1, 0.4)},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graph": {"clusters": 1}}, "one cluster has one level"),
        ({"model": {"kind": "appnp", "hidden": [4, 4]}}, "hidden"),
        ({"noise": {"deletion": (0.1, 1.0)}}, "deletion"),
        ({"graph": {"data": "digits", "colour": "red"}}, "colour"),
        ({"graph": {"data": "no-such-file.npz"}}, "no such file"),
        ({"certificate": {"deletions": [-1]}}, "deletions"),
        (
            {"model": {"kind": "module", "factory": "a:b"}, "certificate": {"strictly_local": True}},
            "depth",
        ),
    ],
)
def test_files_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_configuration(SMALL | change)


def test_citeseer_end_to_end(citeseer_path, tmp_path):
    """Reduced: little training and few samples, but the real graph through every step."""
    configuration = parse_configuration(
        {
            "graph": {"data": str(citeseer_path), "clusters": 5, "evaluate": "validation"},
            "model": {"kind": "appnp", "epochs": 25, "learning_rate": 0.02, "self_training": False},
            "noise": {"deletion": (0.1, 0.5)},
            "sampling": {"n_candidate": 20, "n_bound": 20, "chunk_size": 20},
            "certificate": {"alpha": 0.5, "additions": [0, 1], "deletions": [0, 1]},
        }
    )
    data = configuration.graph.build(configuration.noise)
    assert data.graph.nodes == 2110
    assert data.name == "citeseer"
    assert data.nodes.size == 120
    classifier = configuration.model.build(data, tmp_path / "network.safetensors")
    again = configuration.model.build(data, tmp_path / "network.safetensors")
    assert classifier.fingerprint() == again.fingerprint()
    result = certify_graph(
        classifier,
        data.graph,
        data.layout,
        data.nodes,
        plan=configuration.sampling.build(),
        settings=configuration.certificate.build(SparseFlips()),
        out=tmp_path,
    )
    right = (result["candidate"][0].values == data.graph.labels)[data.split.test].mean()
    assert right > 0.5
    certified = kind_curve(result)["certified"].sel(target="ratio", bound="envelope")[0].values
    assert 120 >= certified[0] >= certified[1] >= 0


def test_a_second_certificate_of_a_graph_keeps_the_first(parts, tmp_path):
    certify_graph(*parts, plan=PLAN, settings=QUICK, out=tmp_path)
    with pytest.warns(UserWarning, match=r"kept as result-1\.nc"):
        certify_graph(*parts, plan=PLAN, settings=replace(QUICK, alpha=0.05), out=tmp_path)
    assert [load(tmp_path / name).attrs["alpha"] for name in ("result-1.nc", "result.nc")] == [0.1, 0.05]


def test_a_graphs_configuration_is_checked_before_sampling_and_named_afterwards(parts, tmp_path):
    with pytest.raises(InvalidInputError, match="configuration: it is not plain JSON"):
        certify_graph(*parts, plan=PLAN, settings=QUICK, out=tmp_path / "run", configuration={"x": {1}})
    assert not (tmp_path / "run").exists()
    asked = {"sampling": {"seed": 3}}
    certify_graph(*parts, plan=PLAN, settings=QUICK, out=tmp_path / "run", configuration=asked)
    with pytest.raises(OtherRunError, match=r"sampling\.seed was 3 and is 4"):
        certify_graph(
            *parts,
            plan=replace(PLAN, seed=4),
            settings=QUICK,
            out=tmp_path / "run",
            configuration={"sampling": {"seed": 4}},
        )


def test_a_failed_first_attempt_on_a_graph_leaves_its_directory_usable(parts, tmp_path):
    classifier, graph, layout, nodes = parts

    class Failing(NetworkClassifier):
        def try_out(self, graph):
            raise InvalidInputError("classifier", "it sees farther than it says", "Correct its depth")

        def fingerprint(self):
            return "another"

    with pytest.raises(InvalidInputError, match="sees farther"):
        certify_graph(Failing(classifier.network), graph, layout, nodes, plan=PLAN, settings=QUICK, out=tmp_path)
    certify_graph(*parts, plan=PLAN, settings=QUICK, out=tmp_path)
    with pytest.raises(OtherRunError, match=r"model\.fingerprint"):
        certify_graph(Failing(classifier.network), graph, layout, nodes, plan=PLAN, settings=QUICK, out=tmp_path)


def test_a_graph_is_certified_again_from_chunks_that_are_kept_elsewhere(parts, tmp_path):
    first = certify_graph(*parts, plan=PLAN, settings=QUICK, out=tmp_path / "run", store=str(tmp_path / "chunks"))
    assert not (tmp_path / "run" / "chunks").exists()
    same_but_exact(recertify(tmp_path / "run", QUICK), first)


def test_a_result_on_a_graph_says_which_smoothed_classifier_it_is_about(parts, tmp_path, capsys):
    result = certify_graph(*parts, plan=PLAN, settings=QUICK, out=tmp_path / "run")
    said = run_info(result).smoothing
    assert said.noise == {"distribution": "sparse-flips"}
    assert said.levels == {"θ⁺": (0.02, 0.02), "θ⁻": (0.4, 0.6)}
    assert (said.output_groups, said.plan["seed"]) == (3, 3)
    assert said.sampled
    assert run_info(load(tmp_path / "run" / "result.nc")).smoothing == said
    assert run_info(recertify(tmp_path / "run", QUICK)).smoothing == said
    print_summary({"localized": result}, Console(width=300))
    assert said.line() in capsys.readouterr().out
    assert (said.model, said.data) == (parts[0].fingerprint(), parts[1].digest())
    assert said.model[:16] in render_report(result)


def test_clusters_that_are_decided_stop_early(parts, tmp_path):
    """Bounded by a sequence that holds at every number of samples: no count depends on when it stopped."""
    classifier, graph, layout, nodes = parts
    plan = SamplingPlan(30, 2000, seed=3, chunk_size=50, stop=StopWhenDecided(target=0.6))
    result = certify_graph(classifier, graph, layout, nodes, plan=plan, settings=QUICK, out=tmp_path)
    said = run_info(result)
    assert said.saving is not None
    assert 0.1 < said.saving.total < 1
    assert "confidence sequence" in " ".join(said.assumptions)
    assert result["certified"].sel(additions=0, deletions=0, target=RATIO).max() > 0.5 * nodes.size
    # The oracle: the sequence's bound at each node's own number of samples, at the level that the chosen nodes share.
    with DirectoryStore(tmp_path, read_only=True) as store:
        votes, counted = store.get_array("item0-votes")[nodes], store.get_array("item0-n")[nodes]
    level = QUICK.alpha / nodes.size
    assert counted.min() < 2000
    assert np.array_equal(result["votes"].values[0, nodes], votes)
    by_hand = VoteConfidenceSequence().lower(votes.astype(np.int64), counted.astype(np.int64), level)
    lower = result["lower_probability"].values[0, nodes]
    np.testing.assert_allclose(lower, by_hand, rtol=1e-12)
    assert (lower < clopper_pearson_lower(votes.astype(np.int64), counted.astype(np.int64), level)).any()
    again = recertify(tmp_path, QUICK)
    xr.testing.assert_identical(again.drop_attrs(), result.drop_attrs())
    with pytest.raises(InvalidInputError, match="scores"):
        recertify(tmp_path, replace(QUICK, certificates=(SparseScores(),)))
    with pytest.raises(InvalidInputError, match="fixed beforehand"):
        certify_graph(*parts, plan=plan, settings=replace(QUICK, certificates=(SparseScores(),)))


def test_a_graph_without_edges_is_certified_and_kept(tmp_path):
    bits = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    graph = graph_from_arrays(np.zeros((2, 0), np.int64), bits, np.array([0, 0, 1, 1]))
    layout = cluster_layout(np.zeros(4, np.int64), graph.adjacency, addition=(0.05, 0.05), deletion=(0.2, 0.2))
    with seeded(0):
        classifier = NetworkClassifier(GCN(3, 2, (4,)).eval())
    made = certify_graph(
        classifier,
        graph,
        layout,
        np.arange(4),
        settings=GraphSettings(0.1, [0], [0, 1]),
        plan=SamplingPlan(n_candidate=20, n_bound=100),
        progress=NoProgress(),
    )
    save(made, tmp_path / "result.nc")
    assert load(tmp_path / "result.nc").sizes["edge"] == 0
    assert "<html" in render_report({"bare": made})
