"""The first page: one screen and a half, its own code runs."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.docs.pages import blocks, page, run
from tests.seeding import seeded
from tests.tiny_runs import changed

README = page("README.md")


def test_it_fits_a_screen_and_a_half() -> None:
    assert len(README.splitlines()) <= 105
    own, _ = blocks(README, "python")
    assert len(own.splitlines()) <= 10


def test_the_own_model_is_certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own, _ = blocks(README, "python")
    small = changed(own, ("(128, 10_240)", "(8, 200)"), ("(3, 5)", "(1, 2)"), ("classes=21", "classes=2"))
    small = re.sub(r"alpha=[\d.]+", "alpha=0.1", small)
    image = np.where(np.arange(12) < 6, 0.1, 0.9) * np.ones((1, 4, 1))
    with seeded(0):
        network = nn.Conv2d(1, 2, 1)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([-1.0, 1.0]).reshape(2, 1, 1, 1))
        network.bias.copy_(torch.tensor([0.5, -0.5]))
    names: dict[str, Any] = {"network": network, "images": [image], "labels": [(image[0] > 0.5).astype(int)]}
    with seeded(0):
        run(small, "README.md", names)
    assert names["result"].sizes["budget"] == 3
    assert (tmp_path / "report.html").is_file()


def test_the_graph_is_certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("pymetis") is None:
        pytest.skip("the page cuts its graph by METIS")
    monkeypatch.chdir(tmp_path)
    _, graph = blocks(README, "python")
    small = changed(
        graph,
        ("digit_graph()", "digit_graph(per_digit=12)"),
        ("metis_clusters(graph, 5)", "metis_clusters(graph, 2)"),
        ("per_class=20", "per_class=3"),
        ("epochs=300", "epochs=30"),
        ("(500, 2000)", "(20, 300)"),
        ("range(13)", "range(3)"),
    )
    names: dict[str, Any] = {}
    with seeded(0):
        run(small, "README.md", names)
    assert names["result"]["certified"].sizes["deletions"] == 3
