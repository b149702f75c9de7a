"""In a notebook: progress while a cell runs, and a result that shows itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import localsmooth
from tests.tiny_runs import FUNCTIONS

SOURCE = Path(localsmooth.__file__).parents[1]
SET_UP = """
import numpy as np, localsmooth as ls
from tiny_functions import bright
model = ls.CallableModel(bright, name="bright", classes=2, output=ls.OutputKind.LABELS, bounds=(0.0, 1.0))
task = ls.ArrayTask(model, [np.full((1, 4, 6), 0.9, np.float32)])
smoothing = ls.Smoothing(ls.GridLayout((2, 2), 0.2, 0.5), ls.SamplingPlan(20, 300, seed=0, chunk_size=100))
settings = ls.Settings(alpha=0.05, budgets=[0.0, 0.1])
"""
WITHOUT_WIDGETS = "import sys\nsys.modules['ipywidgets'] = None"
CERTIFY = "result = ls.certify(task, smoothing, settings, run=ls.Run(executor='serial'))"
SHOW = "result.localsmooth"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every cell of a notebook shows, and what its widgets hold."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "tiny_functions.py").write_text(FUNCTIONS, encoding="utf-8")
    cells = {"set up": SET_UP, "bar": CERTIFY, "table": SHOW, "without": WITHOUT_WIDGETS, "lines": CERTIFY}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells.values()])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "IPYTHONDIR": str(folder), "OMP_NUM_THREADS": "1"}
    client.execute(env=environment)
    shown = {name: str(cell.outputs) for name, cell in zip(cells, notebook.cells, strict=True)}
    return shown | {"widgets": str(client.widget_state)}


def test_a_bar_is_drawn_with_widgets(outputs: dict[str, Any]) -> None:
    assert "application/vnd.jupyter.widget-view+json" in outputs["bar"]
    assert "sampling" in outputs["widgets"]
    assert "1280/1280" in outputs["widgets"]
    assert "1,280 samples in" in outputs["bar"]


def test_lines_are_printed_without(outputs: dict[str, Any]) -> None:
    assert "widget-view" not in outputs["lines"]
    assert "Sampling: 1,280 samples, 0 of them stored earlier" in outputs["lines"]
    assert "1,280 samples in" in outputs["lines"]
    assert "ipywidgets" not in outputs["lines"]


def test_a_result_shows_a_table(outputs: dict[str, Any]) -> None:
    assert "text/html" in outputs["table"]
    assert "<table" in outputs["table"]
