"""A sweep over settings of a graph, with the embedded one."""

from __future__ import annotations

import shutil
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from localsmooth.cli.sweep import certify_quietly
from localsmooth.metrics import average_certifiable_radius
from localsmooth.results import kind_curve, load
from localsmooth.sweep import Here, SweepFolder, expand, load_sweep, missing_jobs, run_sweep, write_sweep_report
from tests.sweep.runners import never
from tests.tiny_runs import changed

SWEEP = """
target = "accuracy"
flips = "additions"

[base.graph]
clusters = 2
clustering = "metis"
evaluate = "validation"

[base.model]
kind = "gcn"
hidden = [8]
epochs = 5
self_training = false

[base.noise]
addition = [0.1, 0.2]
deletion = [0.5, 0.5]

[base.sampling]
n_candidate = 10
n_bound = 150

[base.certificate]
alpha = 0.05
additions = [0, 1, 2]
deletions = [0, 1]
renyi_orders = [2.0]
bounds = ["lp", "envelope"]

[[method]]
name = "localized"

[[method]]
name = "isotropic"
set = { "graph.clusters" = 1, "noise.addition" = [0.1, 0.1] }
"""


@pytest.mark.skipif(find_spec("pymetis") is None, reason="needs METIS (pip install localsmooth[graph])")
def test_a_sweep_on_a_graph_compares_accuracies(tmp_path: Path) -> None:
    sweep = expand(tomllib.loads(SWEEP))
    run_sweep(sweep, tmp_path, certify_quietly, Here())
    page = write_sweep_report(sweep, tmp_path)
    assert not page.problems
    assert page.quality == "accuracy"
    assert "additions, attribute bits" in page.radius
    assert len(list(tmp_path.glob("runs/*/network.safetensors"))) == 2
    for point in sweep.points:
        dataset = load(SweepFolder(tmp_path).result(point))
        curve = kind_curve(dataset, "additions")["certified"].sel(target="accuracy", bound="envelope").values[0]
        total = int(dataset["total"].sel(target="accuracy").item())
        radius = average_certifiable_radius(dataset["additions"].values.astype(float), curve / total)
        shown = next(one for one in page.methods[point.method] if one.label == point.label)
        assert shown.radii["envelope"] == pytest.approx(radius.value + radius.tail)
        assert shown.quality == pytest.approx(curve[0] / total)
    run_sweep(sweep, tmp_path, never, Here())
    # Over deletions it is another table from the same results.
    other = expand(tomllib.loads(changed(SWEEP, ('"additions"', '"deletions"'))))
    assert not missing_jobs(other, SweepFolder(tmp_path))


def test_the_experiment_can_be_planned(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    shutil.copy(Path(__file__).parents[2] / "experiments" / "graphs" / "sweep.toml", path)
    (tmp_path / "citeseer.npz").touch()
    assert len(load_sweep(path).points) == 15
