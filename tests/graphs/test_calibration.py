"""What `plan` shows of another graph: hand-counted agreement, and nothing of the graph that is certified."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth import graphs
from localsmooth.cli.app import app
from localsmooth.pipeline import Estimate
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Task
from tests.graphs.conftest import random_graph

LAYOUT = graphs.isotropic_node_layout(5, addition=0.0, deletion=0.9)
PLAN = ls.SamplingPlan(n_candidate=20, n_bound=100, seed=3, chunk_size=20)


class FirstBit(nn.Module):
    """Class 1 where the node has its first attribute."""

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return torch.stack([0.5 - attributes[:, 0], attributes[:, 0] - 0.5], dim=1)


class FirstEdge(nn.Module):
    """Class 1 where the node has a neighbour."""

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        joined = torch.zeros(len(attributes)).index_fill(0, edge_index[0], 1.0)
        return torch.stack([0.5 - joined, joined - 0.5], dim=1)


def graph(first: list[int], nodes: int = 5) -> graphs.AttributedGraph:
    """A path, of which some nodes have the first of two attributes, and all the second."""
    bits = np.ones((nodes, 2), int)
    bits[:, 0] = np.isin(np.arange(nodes), first)
    return graphs.graph_from_arrays(
        np.array([np.arange(nodes - 1), np.arange(1, nodes)]), bits, np.arange(nodes) % 2, class_names=("off", "on")
    )


def planned(task: Task, layout: ls.Layout, prove: object, calibration: object) -> Estimate:
    smoothing = ls.Smoothing(layout, PLAN)
    run = ls.Run(options=SamplingOptions(batch_size=20))
    return ls.plan(task, smoothing, prove, run=run, calibration=calibration, seconds=0.05)  # pyright: ignore


def shown(calibration: object, certified: graphs.AttributedGraph) -> Estimate:
    task = graphs.GraphTask(graphs.EdgeIndexClassifier(FirstBit().eval(), 2), certified, np.arange(5))
    return planned(task, LAYOUT, graphs.GraphSettings(0.1, [0], [0, 1]), calibration)


def test_noise_of_deletions_takes_the_class_that_the_bit_makes() -> None:
    # Nine of ten ones go: nodes with the first bit lose their class, nodes without it keep theirs, whatever is drawn.
    made = shown(graph([0, 1, 2, 3, 4, 5], nodes=16), graph([0]))
    (sight,) = made.sights
    assert sight.level == (0.0, 0.9)
    assert (sight.agreement, sight.balanced, sight.worst) == (5 / 8, 1 / 2, ("on", 0.0))
    assert "In calibration, noise of level 0, 0.9: 62.5 % of the outputs keep" in str(made)
    assert made.unseen == ""


def test_without_another_graph_it_says_why_there_is_nothing_and_what_to_pass() -> None:
    made = shown(None, graph([0]))
    assert made.sights == ()
    assert "void the certificate" in made.unseen
    assert "Pass another graph" in str(made)


@pytest.mark.parametrize("part", [[0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [1, 2]], ids=["itself", "reordered", "a part"])
def test_the_certified_graph_is_not_looked_at(part: list[int]) -> None:
    certified = graph([0, 2])
    with pytest.raises(ls.InvalidInputError, match="100% of its nodes have the attributes of nodes that are certified"):
        shown(certified.subgraph(np.array(part)), certified)


def test_most_of_the_certified_nodes_are_too_many() -> None:
    with pytest.raises(ls.InvalidInputError, match="62% of its nodes"):
        shown(graph([0, 1, 2], nodes=8), graph([0]))


def test_graphs_of_other_attributes_and_other_things_are_refused() -> None:
    with pytest.raises(ls.InvalidInputError, match="3 attributes, and the graph 2"):
        shown(random_graph(np.random.default_rng(0), 4, 3), graph([0]))
    with pytest.raises(ls.InvalidInputError, match="calibration"):
        shown(np.zeros((4, 2)), graph([0]))


def test_edges_are_shown_those_of_another_graph() -> None:
    certified, alone = graph([0]), graphs.graph_from_arrays(np.eye(5), np.ones((5, 2), int), np.zeros(5, int))
    task = graphs.EdgeTask(graphs.EdgeIndexClassifier(FirstEdge().eval(), 2), certified, np.arange(4))
    layout = graphs.isotropic_pair_layout(5, addition=0.7, deletion=0.0)
    made = planned(task, layout, ls.Settings(0.1, [0, 1]), alone)
    # Nodes that have no edge get one with probability 1 − .3⁴.
    assert [(each.agreement, each.worst) for each in made.sights] == [(0.0, ("off", 0.0))]
    with pytest.raises(ls.InvalidInputError, match="its edges are to be certified"):
        planned(task, layout, ls.Settings(0.1, [0, 1]), certified)
    assert "void the certificate" in planned(task, layout, ls.Settings(0.1, [0, 1]), None).unseen


def test_files_name_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])  # the program adds the file's folder
    (tmp_path / "calibrated_bits.py").write_text(f"from {__name__} import FirstBit\nmake = FirstBit\n")
    graphs.save_npz(graph([0, 1, 4], nodes=12), tmp_path / "one.npz")
    graphs.save_npz(graph([0, 1], nodes=8), tmp_path / "two.npz")
    (tmp_path / "run.toml").write_text(
        "[graph]\ndata = 'one.npz'\nclusters = 1\nper_class = 1\n[calibration]\ndata = 'two.npz'\n"
        "[model]\nkind = 'module'\nfactory = 'calibrated_bits:make'\n[noise]\ndeletion = [0.9, 0.9]\n"
        "addition = [0.0, 0.0]\n[sampling]\nn_candidate = 8\nn_bound = 100\n"
        "[certificate]\nadditions = [0]\ndeletions = [0, 1]\n"
    )
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "run.toml"), "--seconds", "0.05"])
    # A part of "one.npz" as far as its attributes tell.
    assert "attributes of nodes that are certified" in str(done.exception)
    graphs.save_npz(graph([*range(20)], nodes=40), tmp_path / "two.npz")
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "run.toml"), "--seconds", "0.05"])
    assert "In calibration, noise of level 0, 0.9: 50.0 %" in done.output.replace("\n", " ")
