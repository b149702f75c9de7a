"""The commands on a graph, from the example's file to the page."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from localsmooth.cli.app import app
from localsmooth.collective import Naive
from localsmooth.config import ConfigurationError, GraphConfiguration, load_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.noise import SparseFlips
from localsmooth.results import load
from localsmooth.runs import SamplingPlan
from localsmooth.tasks.graphs import APPNP, AttackLimits, GraphSettings, NetworkClassifier, cluster_layout, digit_graph
from tests.flat import certify_graph
from tests.seeding import seeded

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digit_graph.toml"
SMALLER = {
    "clusters = 5": 'clusters = 4\nevaluate = "validation"',
    "epochs = 300": "epochs = 20",
    "n_candidate = 500": "n_candidate = 20",
    "n_bound = 2000": "n_bound = 150\nchunk_size = 50",
    "additions = [0, 1, 2, 3]": "additions = [0, 1]",
}
MODULE = """
import torch

class Ink(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(64, 10)

    def forward(self, attributes, edge_index):
        return self.last(attributes)

def make():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Ink()
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """The example with less of everything, run once."""
    folder = tmp_path_factory.mktemp("commands")
    text = EXAMPLE.read_text("utf-8")
    for old, new in SMALLER.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    text = re.sub(r"deletions = \[.*\]", "deletions = [0, 1, 3]", text)
    (folder / "small.toml").write_text(text, "utf-8")
    shown = _invoke("certify", folder / "small.toml", "--out", folder / "run")
    assert shown.exit_code == 0
    assert "certified accuracy (envelope)" in shown.output
    assert "ε⁺=1" in shown.output
    return folder


def _invoke(*arguments: object):
    environment = {"COLUMNS": "160"}
    return CliRunner(env=environment).invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_the_example_is_valid():
    configuration = load_configuration(EXAMPLE)
    assert isinstance(configuration, GraphConfiguration)
    assert configuration.model_dump(mode="json")["graph"]["data"] == "digits"


def test_a_run_leaves_result_network_and_tallies(small):
    _invoke("certify", small / "small.toml", "--out", small / "run")  # other tests certify the same run otherwise
    result = load(small / "run" / "result.nc")
    assert result["certified"].sel(target="accuracy", bound="envelope", additions=0, deletions=0) > 100
    assert (small / "run" / "network.safetensors").exists()
    before = (small / "run" / "network.safetensors").stat().st_mtime_ns
    # The same command again trains and samples nothing, and certifies the same.
    _invoke("certify", small / "small.toml", "--out", small / "run")
    assert (small / "run" / "network.safetensors").stat().st_mtime_ns == before
    assert np.array_equal(load(small / "run" / "result.nc")["certified"].values, result["certified"].values)


def test_json_is_json_for_graphs_as_well(small, tmp_path):
    _invoke("certify", small / "small.toml", "--out", small / "run")  # other tests certify the same run otherwise
    shown = _invoke("certify", small / "small.toml", "--out", tmp_path / "run", "--log", "json")
    assert shown.exit_code == 0
    told = [json.loads(line) for line in shown.output.splitlines()]
    assert {"message", "start", "progress", "certifying", "result"} <= {event["event"] for event in told}
    assert told[-1] == told[-1] | {"event": "result", "file": str(tmp_path / "run" / "result.nc")}
    assert np.array_equal(load(told[-1]["file"])["eta"].values, load(small / "run" / "result.nc")["eta"].values)


def test_the_run_is_listed_as_complete(small):
    shown = _invoke("runs", small / "run", "--json")
    (run,) = json.loads(shown.output)
    assert (run["items"], run["missing"], run["damaged"]) == (1, [], [])
    assert run["counted"] == run["planned"] > 0


def test_a_network_trained_otherwise_is_not_taken(small, tmp_path):
    text = (small / "small.toml").read_text("utf-8").replace("epochs = 20", "epochs = 21")
    (tmp_path / "other.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match="trained with other settings"):
        _invoke("certify", tmp_path / "other.toml", "--out", small / "run")


def test_certifying_again_takes_other_budgets_and_sections(small, tmp_path):
    run = small / "run"
    arguments = ("--alpha", "0.05", "--additions", "0,2", "--deletions", "0,1,2", "--bound", "envelope")
    assert _invoke("recertify", run, *arguments, "--to", tmp_path / "a.nc").exit_code == 0
    again, first = load(tmp_path / "a.nc"), load(run / "result.nc")
    assert again["additions"].values.tolist() == [0, 2]
    assert again["bound"].values.tolist() == ["envelope"]
    same = {"target": "ratio", "bound": "envelope", "additions": 0, "deletions": 1}
    assert again["certified"].sel(same).item() >= first["certified"].sel(same).item()
    (tmp_path / "other.toml").write_text(
        '[certificate]\nalpha = 0.05\nbase = ["sparse-scores"]\nadditions = [0]\ndeletions = [0, 1]\n'
        "attacked_nodes = 3\n"
    )
    assert _invoke("recertify", run, "--config", tmp_path / "other.toml", "--to", tmp_path / "b.nc").exit_code == 0
    assert "at no more than 3 nodes" in load(tmp_path / "b.nc").attrs["threat"]
    with pytest.raises(InvalidInputError, match="--additions and --deletions"):
        _invoke("recertify", run, "--budgets", "0,1")
    with pytest.raises(InvalidInputError, match="whole number"):
        _invoke("recertify", run, "--deletions", "0,0.5")


def test_the_page_is_written(small):
    assert _invoke("report", small / "run").exit_code == 0
    page = (small / "run" / "report.html").read_text("utf-8")
    assert "Certified ratio, additions only" in page
    assert page.count("data-a=") == 2 * 3


def test_a_module_of_the_users_own_and_strict_locality(small, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ink_module.py").write_text(MODULE)
    text = (small / "small.toml").read_text("utf-8")
    text = re.sub(
        r"\[model\].*?\[noise\]",
        '[model]\nkind = "module"\nfactory = "ink_module:make"\ndepth = 0\n[noise]',
        text,
        flags=re.S,
    )
    text = text.replace('["naive", "lp", "envelope"]', '["envelope"]').replace("[0, 1, 3]", "[0, 3]")
    text = text.replace("additions = [0, 1]", "additions = [0]")
    (tmp_path / "run.toml").write_text(text + "strictly_local = true\n", "utf-8")
    assert _invoke("certify", tmp_path / "run.toml", "--out", tmp_path / "run").exit_code == 0
    local = load(tmp_path / "run" / "result.nc")
    assert "sees 0 hops" in local.attrs["assumptions"]
    certificate = text[text.index("[certificate]") :]
    (tmp_path / "wide.toml").write_text(certificate, "utf-8")
    _invoke("recertify", tmp_path / "run", "--config", tmp_path / "wide.toml")
    wide = load(tmp_path / "run" / "recertified.nc")
    # A node that sees itself alone: three deletions break at most three nodes.
    ratio = {"target": "ratio", "bound": "envelope"}
    assert (local["certified"].sel(ratio) >= wide["certified"].sel(ratio)).all()
    whole = int((local["prediction"] >= 0).sum())
    assert local["certified"].sel(ratio | {"additions": 0, "deletions": 3}).item() >= whole - 3


def test_faults_name_the_key(tmp_path):
    (tmp_path / "bad.toml").write_text("[graph]\nclusterz = 3\n")
    with pytest.raises(ConfigurationError, match=r'(?s)graph.*clusterz.*Did you mean "clusters"'):
        _invoke("certify", tmp_path / "bad.toml", "--out", tmp_path / "run")


@pytest.mark.long
def test_the_example_certifies_most_digits(tmp_path):
    assert _invoke("certify", EXAMPLE, "--out", tmp_path / "run").exit_code == 0
    accuracy = load(tmp_path / "run" / "result.nc")["certified"].sel(target="accuracy", bound="envelope")
    assert accuracy.sel(additions=0, deletions=2) > 1000
    assert tomllib.loads(EXAMPLE.read_text("utf-8"))["sampling"]["n_bound"] == 2000


def test_limits_are_read_from_the_file(small):
    text = (small / "small.toml").read_text("utf-8")
    names = ("node_budget", "node_flips", "attacked_nodes", "cluster_budget", "cluster_flips", "attacked_clusters")
    lines = "".join(f"{name} = {value}\n" for value, name in enumerate(names))
    (small / "limits.toml").write_text(text.replace("[certificate]", f"[certificate]\n{lines}"), "utf-8")
    configuration = load_configuration(small / "limits.toml")
    assert isinstance(configuration, GraphConfiguration)
    limits = configuration.certificate.build(SparseFlips()).limits
    assert [getattr(limits, name) for name in names] == list(range(6))
    for value, name in enumerate(names):
        assert f" {value} " in AttackLimits(**{name: value}).words()


def test_alpha_can_follow_the_candidate_stage(small):
    rule = '\nmany_outputs = { rule = "weighted_bonferroni" }'
    text = (small / "small.toml").read_text("utf-8").replace("[certificate]", f"[certificate]{rule}")
    (small / "weighted.toml").write_text(text, "utf-8")
    _invoke("recertify", small / "run", "--config", small / "weighted.toml", "--to", small / "weighted.nc")
    found, equal = load(small / "weighted.nc"), load(small / "run" / "result.nc")
    assert "weighted_bonferroni" in " ".join(str(value) for value in found.attrs.values())
    assert (found["certified"].sel(additions=0, deletions=0) > 0).all()
    assert not np.array_equal(found["eta"].values, equal["eta"].values)
    # The same from the start as from what was kept.
    _invoke("certify", small / "weighted.toml", "--out", small / "run")
    assert np.array_equal(load(small / "run" / "result.nc")["eta"].values, found["eta"].values)


def test_the_baseline_fills_the_table(small, tmp_path):
    text = (small / "small.toml").read_text("utf-8").replace("[0.5, 0.8]", "[0.5, 0.5]")
    text = text.replace("clusters = 4", "clusters = 1").replace("[certificate]", "[certificate]\nCHOSEN")
    baseline = 'baseline = { method = "sparse-smooth" }'
    for name, chosen in (("baseline", baseline), ("votes", 'base = ["exact-votes"]')):
        rule = f'{chosen}\nmany_outputs = {{ rule = "joint_count" }}'
        (tmp_path / f"{name}.toml").write_text(text.replace("CHOSEN", rule), "utf-8")
    _invoke("certify", tmp_path / "votes.toml", "--out", tmp_path / "run")
    _invoke("recertify", tmp_path / "run", "--config", tmp_path / "baseline.toml", "--to", tmp_path / "table.nc")
    ours, table = load(tmp_path / "run" / "result.nc"), load(tmp_path / "table.nc")
    assert table["bound"].values.tolist() == ["naive"]
    assert "SparseSmooth" in str(table.attrs["assumptions"])
    counts = [each["certified"].sel(bound="naive") for each in (ours, table)]
    assert (counts[1] >= counts[0]).all()
    assert (counts[1].sel(additions=0, deletions=1) > 0).all()
    assert (table["attack"].sum(dim=["kind", "input_group"]).sel(additions=1, deletions=3) == 4).all()
    wide = tmp_path / "wide.nc"
    _invoke("recertify", tmp_path / "run", "--config", tmp_path / "baseline.toml", "--additions", "0,2", "--to", wide)
    assert load(wide)["additions"].values.tolist() == [0, 2]
    shown = _invoke("report", wide, "--to", tmp_path / "page.html")
    assert shown.exit_code == 0, shown.output
    (tmp_path / "five.toml").write_text((small / "small.toml").read_text("utf-8") + baseline + "\n", "utf-8")
    with pytest.raises(ConfigurationError, match="same noise everywhere"):
        load_configuration(tmp_path / "five.toml")


def test_a_run_made_in_python_keeps_its_budgets(tmp_path):
    graph = digit_graph()
    layout = cluster_layout(
        np.zeros(graph.nodes, dtype=np.int64), graph.adjacency, addition=(0.05, 0.05), deletion=(0.6, 0.6)
    )
    with seeded(0):
        classifier = NetworkClassifier(APPNP(graph.width, graph.classes, hidden=4, steps=1).eval())
    settings = GraphSettings(0.2, additions=range(2), deletions=range(4), bounds={"naive": Naive()})
    nodes = np.arange(30)
    certify_graph(classifier, graph, layout, nodes, plan=SamplingPlan(20, 60), settings=settings, out=tmp_path / "run")
    assert _invoke("recertify", tmp_path / "run", "--alpha", "0.1").exit_code == 0
    again = load(tmp_path / "run" / "recertified.nc")
    assert again["additions"].values.tolist() == [0, 1]
    assert again["deletions"].values.tolist() == [0, 1, 2, 3]
    assert again["bound"].values.tolist() == ["naive"]


def test_a_missing_graph_file_is_one_sentence(tmp_path):
    text = EXAMPLE.read_text("utf-8").replace('data = "digits"', 'data = "nowhere.npz"')
    assert "nowhere" in text
    (tmp_path / "missing.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(tmp_path / "missing.toml")
    assert "graph.data" in str(caught.value)
    assert not re.search(r"function|literal|lax", str(caught.value))


def test_other_executors_parts_and_stores_draw_the_same_votes(small, tmp_path):
    """What images have, graphs have from the same engine."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "network.safetensors").write_bytes((small / "run" / "network.safetensors").read_bytes())
    arguments = ("certify", small / "small.toml", "--out", tmp_path / "run", "--store", tmp_path / "chunks")
    first = _invoke(*arguments, "--part", "1/2", "--executor", "processes", "--workers", 2)
    assert first.exit_code == 0
    assert "this part is finished" in " ".join(first.output.split())
    assert not (tmp_path / "run" / "result.nc").exists()
    assert _invoke(*arguments, "--executor", "serial").exit_code == 0
    expected, found = (load(folder / "run" / "result.nc") for folder in (small, tmp_path))
    for name in ("votes", "candidate"):  # the module's run may have been certified again by now
        np.testing.assert_array_equal(expected[name], found[name])
