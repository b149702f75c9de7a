"""Targets for which no output of any item counts are left out of results, of whatever is made of these, and named."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import localsmooth as ls
from localsmooth.evidence import verify_run
from localsmooth.execution import NoProgress
from localsmooth.models import CallableModel, OutputKind
from localsmooth.results import run_info
from localsmooth.tasks.graphs import AttributedGraph, GraphSettings, GraphTask, NetworkClassifier, isotropic_node_layout
from tests.graphs.conftest import tiny
from tests.graphs.exact import sharp_gcn

__all__ = ["tiny"]


def bright(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 0] > 0.5).astype(np.int64)


@pytest.mark.parametrize("labelled", [True, False])
def test_a_class_that_no_item_has_is_left_out_and_named(labelled: bool, tmp_path: Path) -> None:
    model = CallableModel(bright, name="bright", bounds=None, classes=3, output=OutputKind.LABELS)
    image = np.linspace(0, 1, 24, dtype=np.float32).reshape(1, 4, 6)
    labels = [(image[0] > 0.5).astype(np.int64)] if labelled else None
    task = ls.ArrayTask(model, [image], labels, class_names=["dark", "bright", "disc"])
    settings = ls.Settings(0.05, [0.0, 0.1], targets=["ratio", "class:disc", "class:bright"])
    smoothing = ls.Smoothing(ls.GridLayout((2, 2), 0.1, 0.2), ls.SamplingPlan(20, 300))
    with pytest.warns(UserWarning, match="class:disc") if labelled else nullcontext():
        result = ls.certify(task, smoothing, settings, run=ls.Run(tmp_path / "run", progress=NoProgress()))
    assert result["target"].values.tolist() == ["ratio", "class:bright"]
    assert any("no output of the items counts: class:disc" in said for said in run_info(result).assumptions)
    assert verify_run(tmp_path / "run").complete
    ls.write_report(result, tmp_path / "page.html")
    assert "class:disc" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_class_that_no_certified_node_has_is_left_out_of_a_graph(tiny: AttributedGraph, tmp_path: Path) -> None:
    graph = replace(tiny, class_names=("left", "right"))
    nodes = np.flatnonzero(graph.labels == 0)
    task = GraphTask(NetworkClassifier(sharp_gcn(2, 2, 0)), graph, nodes)
    layout = isotropic_node_layout(graph.nodes, addition=0.05, deletion=0.4)
    settings = GraphSettings(0.05, [0], [0, 1], targets=["ratio", "class:right", "class:left"])
    run = ls.Run(tmp_path / "run", progress=NoProgress())
    with pytest.warns(UserWarning, match="class:right, which results leave out"):
        result = ls.certify(task, ls.Smoothing(layout, ls.SamplingPlan(20, 300)), settings, run=run)
    assert result["target"].values.tolist() == ["ratio", "class:left"]
    assert any("no output of the items counts: class:right" in said for said in run_info(result).assumptions)
    assert verify_run(tmp_path / "run").complete
