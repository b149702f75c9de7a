"""Sweeps: what a file expands to, what is run, what survives failures and interruptions, and what the page says."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from localsmooth.cli.app import app
from localsmooth.cli.sweep import certify_quietly
from localsmooth.config import Configuration, ConfigurationError
from localsmooth.metrics import average_certifiable_radius, mean_curve
from localsmooth.results import load
from localsmooth.sweep import (
    Here,
    Processes,
    Sweep,
    SweepFolder,
    expand,
    load_sweep,
    missing_jobs,
    read_outcomes,
    run_sweep,
    write_sweep_report,
)

FUNCTIONS = """
import os
import numpy as np

def bright(batch):
    return (batch[:, 0] > 0.5).astype(np.int64)

def deadly(batch):
    os._exit(3)
"""

SWEEP = """
title = "Tiny <sweep>"
quality = "accuracy"
target = "ratio"

[base.model]
kind = "callable"
function = "sweep_functions:bright"
classes = 2
output = "labels"
bounds = [0.0, 1.0]

[base.data]
kind = "arrays"
images = "images.npy"
labels = "labels.npy"

[base.layout]
cells = [2, 2]

[base.noise]
distribution = "gaussian"
sigma_min = 0.2
sigma_max = 0.5

[base.sampling]
n_candidate = 20
n_bound = 300
batch_size = 50
chunk_size = 100

[base.certificate]
alpha = 0.05
budgets = { stop = 2.0, count = 9 }
bounds = ["lp", "exact"]

[[method]]
name = "localized"
grid = { "noise.sigma_min" = [0.2, 0.3], "certificate.alpha" = [0.05, 0.1] }

[[method]]
name = "isotropic"
set = { "layout.cells" = [1, 1] }
together = { "noise.sigma_min" = [0.2, 0.4], "noise.sigma_max" = [0.2, 0.4] }

[[comparison]]
title = "At equal samples per output"
ours = ["localized"]
baselines = ["isotropic"]
equal = "samples per output"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(2, 4, 6))
    np.save(tmp_path / "images.npy", np.clip(labels[:, None] + rng.normal(0, 0.1, (2, 1, 4, 6)), 0, 1))
    np.save(tmp_path / "labels.npy", labels)
    (tmp_path / "sweep_functions.py").write_text(FUNCTIONS)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("sweep_functions", None)
    return tmp_path


def sweep_of(folder: Path, *changes: tuple[str, str]) -> Sweep:
    text = SWEEP
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / "sweep.toml").write_text(text)
    return load_sweep(folder / "sweep.toml")


def test_points_are_all_combinations(folder: Path) -> None:
    sweep = load_sweep(folder / "sweep.toml")
    localized = [
        (point.configuration.noise.sigma_min, point.configuration.certificate.alpha)  # pyright: ignore
        for point in sweep.of(["localized"])
    ]
    assert localized == list(itertools.product([0.2, 0.3], [0.05, 0.1]))
    assert [p.configuration.layout.cells for p in sweep.of(["isotropic"])] == [[1, 1], [1, 1]]
    assert [p.label for p in sweep.of(["isotropic"])] == [
        "sigma_min = 0.2, sigma_max = 0.2",
        "sigma_min = 0.4, sigma_max = 0.4",
    ]
    assert len({point.key for point in sweep.points}) == 6
    # Points that differ in α alone share their samples.
    assert len({point.run_key for point in sweep.points}) == 4
    assert [point.total_samples for point in sweep.points] == [1280] * 4 + [320] * 2
    assert len(missing_jobs(sweep, SweepFolder(folder / "none"))) == 4


def test_keys_follow_content_and_nothing_else(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before = [(p.key, p.run_key) for p in load_sweep(folder / "sweep.toml").points]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("images.npy", "labels.npy", "sweep.toml"):
        (elsewhere / name).write_bytes((folder / name).read_bytes())
    assert [(p.key, p.run_key) for p in load_sweep(elsewhere / "sweep.toml").points] == before
    renamed = sweep_of(folder, ('name = "localized"', 'name = "ours"'), ('ours = ["localized"]', 'ours = ["ours"]'))
    assert [(p.key, p.run_key) for p in renamed.points] == before
    images = np.load(folder / "images.npy")
    images[0, 0, 0, 0] = 0.123
    np.save(folder / "images.npy", images)
    after = [(p.key, p.run_key) for p in load_sweep(folder / "sweep.toml").points]
    assert not {key for pair in before for key in pair} & {key for pair in after for key in pair}


def test_early_stopping_ties_samples_to_the_certificate(folder: Path) -> None:
    sweep = sweep_of(folder, ("batch_size = 50", "batch_size = 50\nstop_early = true"))
    assert len({point.run_key for point in sweep.points}) == 6


def test_names_in_braces_are_filled_in(folder: Path) -> None:
    for sigma in ("0.2", "0.4"):
        (folder / f"model-{sigma}.onnx").write_bytes(sigma.encode())
    model = 'kind = "callable"\nfunction = "sweep_functions:bright"\nclasses = 2\noutput = "labels"'
    sweep = sweep_of(
        folder,
        (model, 'kind = "onnx"\npath = "model-{noise.sigma_min}.onnx"'),
        ('"noise.sigma_min" = [0.2, 0.3]', '"noise.sigma_min" = [0.2]'),
    )
    paths = [point.configuration.model.path.name for point in sweep.points]  # pyright: ignore
    assert paths == ["model-0.2.onnx"] * 3 + ["model-0.4.onnx"]
    with pytest.raises(ConfigurationError, match=r"noise\.sigma"):
        sweep_of(folder, ("sweep_functions:bright", "{noise.sigma}"))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"noise.sigma_max" = [0.2, 0.4]', '"noise.sigma_max" = [0.2]', "differ in length"),
        ('"noise.sigma_min" = [0.2, 0.3]', '"noise.sigma_min" = [0.2, -1]', 'method "localized", sigma_min = -1'),
        ('"noise.sigma_min" = [0.2, 0.3]', '"noise.sigma_min" = []', "empty"),
        ('baselines = ["isotropic"]', 'baselines = ["isotropc"]', "isotropc"),
        ('equal = "samples per output"', 'equal = "total samples"', "localized 1280, isotropic 320"),
        ('name = "isotropic"', 'name = "localized"', "share a name"),
        ("grid = {", "gird = {", "gird"),
        ('"layout.cells" = [1, 1]', '"layout.cells.x" = 1', "layout.cells"),
    ],
)
def test_faults_are_named(folder: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        sweep_of(folder, (before, after))


def test_a_sweep_runs_once_and_says_what_its_results_say(folder: Path) -> None:
    sweep, out = load_sweep(folder / "sweep.toml"), folder / "out"
    ended: list[int] = []
    run_sweep(sweep, out, certify_quietly, Here(), lambda job, seconds: ended.append(len(job)))
    assert sorted(ended) == [1, 1, 2, 2]
    page = write_sweep_report(sweep, out)
    assert not page.problems
    for outcome in read_outcomes(sweep, SweepFolder(out)):
        dataset = load(SweepFolder(out).result(outcome.point))
        numbers = outcome.numbers
        assert numbers is not None
        assert numbers.quality == float((dataset["prediction"] == dataset["label"]).mean())
        for bound in ("lp", "exact"):
            certified = dataset["certified"].sel(target="ratio", bound=bound).values
            curve = mean_curve(certified, np.array([24, 24]))
            radius = average_certifiable_radius(dataset["budget"].values, curve)
            assert numbers.radii[bound] == radius.value + radius.tail
        assert numbers.radii["lp"] <= numbers.radii["exact"]
    text = (out / "report.html").read_text()
    assert "Tiny &lt;sweep&gt;" in text
    assert "At equal samples per output" in text
    assert "data:image/svg+xml" in text
    assert {file.name for file in (out / "figures").iterdir()} == {
        f"{name}.{suffix}" for name in ("all", "comparison-1") for suffix in ("svg", "pdf")
    }
    rows = (out / "points.csv").read_text().splitlines()
    assert rows[0] == "method,setting,samples_per_output,samples_per_item,accuracy,acr_lp,acr_exact"
    assert len(rows) == 7

    def never(configuration: Configuration, run: Path) -> xr.Dataset:
        raise AssertionError("a finished point was run again")

    run_sweep(sweep, out, never, Here())
    assert not missing_jobs(sweep, SweepFolder(out))
    # Another certificate for the same samples is another result, and no new run.
    more = sweep_of(folder, ('"certificate.alpha" = [0.05, 0.1]', '"certificate.alpha" = [0.05, 0.2]'))
    assert [point.configuration.certificate.alpha for job in missing_jobs(more, SweepFolder(out)) for point in job] == [
        0.2,
        0.2,
    ]
    chunks = sorted(out.glob("runs/*/chunks/**/*"))
    run_sweep(more, out, certify_quietly, Here())
    assert sorted(out.glob("runs/*/chunks/**/*")) == chunks
    # A result that was damaged is made again.
    damaged = SweepFolder(out).result(sweep.points[0])
    damaged.write_bytes(b"nonsense")
    assert [job[0] for job in missing_jobs(sweep, SweepFolder(out))] == [sweep.points[0]]


def test_a_point_that_fails_stops_no_other(folder: Path) -> None:
    sweep = sweep_of(
        folder, ('"layout.cells" = [1, 1]', '"layout.cells" = [9, 9]'), ('equal = "samples per output"', "")
    )
    out = folder / "out"
    run_sweep(sweep, out, certify_quietly, Here())
    page = write_sweep_report(sweep, out)
    assert [method for method, _, _ in page.problems] == ["isotropic", "isotropic"]
    assert "9 cells along an axis of 4" in page.problems[0][2]
    assert len(page.methods["localized"]) == 4
    assert "9 cells along an axis" in (out / "report.html").read_text()
    assert len(missing_jobs(sweep, SweepFolder(out))) == 2  # tried again by the next call


def test_processes_survive_one_that_dies(folder: Path) -> None:
    sweep = sweep_of(
        folder,
        ('set = { "layout.cells" = [1, 1] }', 'set = { "model.function" = "sweep_functions:deadly" }'),
        ('"noise.sigma_min" = [0.2, 0.4], "noise.sigma_max" = [0.2, 0.4]', '"noise.sigma_min" = [0.2]'),
        ('"noise.sigma_min" = [0.2, 0.3]', '"noise.sigma_min" = [0.2]'),
    )
    out = folder / "out"
    run_sweep(sweep, out, certify_quietly, Processes(2))
    page = write_sweep_report(sweep, out)
    assert [(method, "code 3" in problem) for method, _, problem in page.problems] == [("isotropic", True)]
    assert len(page.methods["localized"]) == 2


def test_an_interrupted_sweep_goes_on(folder: Path) -> None:
    sweep, out = load_sweep(folder / "sweep.toml"), folder / "out"
    calls: list[Path] = []

    def interrupted(configuration: Configuration, run: Path) -> xr.Dataset:
        calls.append(run)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return certify_quietly(configuration, run)

    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, out, interrupted, Here())
    assert sum(SweepFolder(out).finished(point) for point in sweep.points) == 1
    run_sweep(sweep, out, certify_quietly, Here())
    assert all(SweepFolder(out).finished(point) for point in sweep.points)


def _slow(configuration: Configuration, run: Path) -> xr.Dataset:
    run.mkdir(parents=True)
    (run / "pid").write_text(str(os.getpid()))
    time.sleep(600)
    raise AssertionError


def test_no_process_outlives_an_interruption(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import localsmooth.sweep.execute as execute

    sweep, out = load_sweep(folder / "sweep.toml"), folder / "out"

    def interrupt(sentinels: list[int]) -> list[int]:
        deadline = time.monotonic() + 120
        while not list(out.glob("runs/*/pid")) and time.monotonic() < deadline:
            time.sleep(0.1)
        raise KeyboardInterrupt

    monkeypatch.setattr(execute, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, out, _slow, Processes(1))
    pids = [int(path.read_text()) for path in out.glob("runs/*/pid")]
    assert len(pids) == 1
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_no_process_outlives_a_sweep_that_was_killed(folder: Path) -> None:
    script = (
        "from pathlib import Path\n"
        "from localsmooth.sweep import Processes, load_sweep, run_sweep\n"
        "from slow_runner import slow\n"
        "if __name__ == '__main__':\n"
        "    run_sweep(load_sweep('sweep.toml'), Path('out'), slow, Processes(1))\n"
    )
    slow = (
        "import os, time\n\ndef slow(configuration, run):\n"
        "    run.mkdir(parents=True)\n    (run / 'pid').write_text(str(os.getpid()))\n    time.sleep(600)\n"
    )
    (folder / "killed.py").write_text(script)
    (folder / "slow_runner.py").write_text(slow)
    parent = subprocess.Popen([sys.executable, "killed.py"], cwd=folder)
    deadline = time.monotonic() + 120
    while not (found := [p for p in folder.glob("out/runs/*/pid") if p.read_text()]) and time.monotonic() < deadline:
        time.sleep(0.1)
    parent.kill()
    parent.wait()
    child = int(found[0].read_text())
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


def test_the_command(folder: Path) -> None:
    few = SWEEP.replace("[0.2, 0.3]", "[0.2]").replace("[0.05, 0.1]", "[0.05]").replace("[0.2, 0.4]", "[0.4]")
    (folder / "sweep.toml").write_text(few)
    runner = CliRunner()
    listed = runner.invoke(app, ["sweep", str(folder / "sweep.toml"), "--out", str(folder / "out"), "--dry-run"])
    assert listed.exit_code == 0, listed.output
    assert listed.output.count("to run") == 2
    assert not (folder / "out").exists()
    made = runner.invoke(app, ["sweep", str(folder / "sweep.toml"), "--out", str(folder / "out"), "--jobs", "0"])
    assert made.exit_code == 0, made.output
    assert "points of isotropic are dominated" in made.output.replace("\n", " ")
    assert json.dumps("report.html")[1:-1] in made.output
    failing = few.replace('"layout.cells" = [1, 1]', '"layout.cells" = [9, 9]').replace(
        'equal = "samples per output"', ""
    )
    (folder / "sweep.toml").write_text(failing)
    failed = runner.invoke(app, ["sweep", str(folder / "sweep.toml"), "--out", str(folder / "out"), "--jobs", "0"])
    assert failed.exit_code == 1
    assert "9 cells" in failed.output


def test_points_without_labels_have_no_quality(folder: Path) -> None:
    sweep = sweep_of(folder, ('labels = "labels.npy"', ""))
    out = folder / "out"
    run_sweep(expand(sweep.section.model_dump(), folder), out, certify_quietly, Here())
    page = write_sweep_report(sweep, out)
    assert len(page.problems) == 6
    assert "no item has labels" in page.problems[0][2]
