"""A graph's run is verified with its certificate; a weaker count is true, and a missing chunk is missed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localsmooth.evidence import DoesNotHoldError, export_certificate, verify_run
from localsmooth.execution import NoProgress
from localsmooth.results import load_result, save_result
from localsmooth.runs import SamplingPlan
from localsmooth.tasks.graphs import GCN, AttributedGraph, GraphSettings, NetworkClassifier, cluster_layout
from tests.flat import certify_graph
from tests.seeding import seeded


def test_a_graph_is_verified_with_its_certificate(tiny: AttributedGraph, tmp_path: Path):
    labels = np.arange(tiny.nodes) % 2
    layout = cluster_layout(labels, tiny.adjacency, addition=(0.02, 0.02), deletion=(0.4, 0.6))
    with seeded(0):
        classifier = NetworkClassifier(GCN(tiny.width, tiny.classes, (4,)).eval())
    run, certificate = tmp_path / "run", tmp_path / "certificate.json"
    certify_graph(
        classifier,
        tiny,
        layout,
        np.arange(tiny.nodes),
        plan=SamplingPlan(20, 100, chunk_size=50),
        settings=GraphSettings(0.1, [0, 1], [0, 1, 2]),
        progress=NoProgress(),
        out=run,
    )
    export_certificate(run, certificate)
    assert verify_run(run, certificate).complete
    result = load_result(run / "result.nc").copy(deep=True)
    result["certified"][...] = np.maximum(result["certified"] - 1, 0)
    save_result(result, run / "result.nc")
    assert "counts differ" in verify_run(run).notes[0]
    next((run / "chunks").rglob("*.tally")).unlink()
    with pytest.raises(DoesNotHoldError, match="missing"):
        verify_run(run)
