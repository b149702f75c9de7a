"""Running a sweep: what survives failures and interruptions, and what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import localsmooth.sweep.execute as execute
from localsmooth.cli.app import app
from localsmooth.cli.sweep import certify_quietly
from localsmooth.config import AnyFile
from localsmooth.errors import InvalidInputError
from localsmooth.metrics import average_certifiable_radius, mean_curve
from localsmooth.results import NO_LABEL, load
from localsmooth.sweep import (
    Here,
    Processes,
    SweepFolder,
    load_sweep,
    missing_jobs,
    operating_point,
    read_outcomes,
    run_sweep,
    sweep_page,
    write_sweep_report,
)
from tests.sweep.files import BASELINES, ONE_EACH, sweep_of
from tests.sweep.runners import deadly, instant, never, refusing, slow


def test_a_sweep_runs_once_and_says_what_its_results_say(folder: Path) -> None:
    sweep = sweep_of(folder, ("[0.2, 0.3]", "[0.2]"), ("[0.2, 0.4]", "[0.4]"), ("count = 9", "count = 4"))
    out = folder / "out"
    ended: list[int] = []
    run_sweep(sweep, out, certify_quietly, Here(), lambda job, seconds: ended.append(len(job)))
    assert sorted(ended) == [1, 2]
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
    abouts = [outcome.run.smoothing for outcome in read_outcomes(sweep, SweepFolder(out)) if outcome.run is not None]
    assert len(abouts) == 3
    cells = set(re.findall(r"<td[^>]*>(.*?)</td>", text))
    assert all(about is not None and set(about.facts().values()) <= cells for about in abouts)
    assert "data:image/svg+xml" in text
    assert {file.name for file in (out / "figures").iterdir()} == {
        f"{name}.{suffix}" for name in ("all", "comparison-1") for suffix in ("svg", "pdf")
    }
    rows = (out / "points.csv").read_text().splitlines()
    assert rows[0] == "method,setting,samples_per_output,samples_per_item,accuracy,acr_lp,acr_exact"
    assert len(rows) == 4

    run_sweep(sweep, out, never, Here())
    assert not missing_jobs(sweep, SweepFolder(out))
    # Another certificate for the same samples is another result, and no new run.
    more = sweep_of(
        folder,
        ("[0.2, 0.3]", "[0.2]"),
        ("[0.2, 0.4]", "[0.4]"),
        ("count = 9", "count = 4"),
        ('"certificate.alpha" = [0.05, 0.1]', '"certificate.alpha" = [0.05, 0.2]'),
    )
    assert [point.configuration.certificate.alpha for job in missing_jobs(more, SweepFolder(out)) for point in job] == [
        0.2
    ]
    chunks = sorted(out.glob("runs/*/chunks/**/*"))
    run_sweep(more, out, certify_quietly, Here())
    assert sorted(out.glob("runs/*/chunks/**/*")) == chunks
    # A result that was damaged is made again.
    damaged = SweepFolder(out).result(sweep.points[0])
    damaged.write_bytes(b"nonsense")
    assert [job[0] for job in missing_jobs(sweep, SweepFolder(out))] == [sweep.points[0]]


def test_a_point_that_fails_stops_no_other(folder: Path) -> None:
    sweep, out = load_sweep(folder / "sweep.toml"), folder / "out"
    run_sweep(sweep, out, refusing, Here())
    page = write_sweep_report(sweep, out)
    assert [method for method, _, _ in page.problems] == ["isotropic", "isotropic"]
    assert page.problems[0][2].startswith("InvalidInputError: cells: there are")
    assert len(page.methods["localized"]) == 4
    assert "cells: there are" in (out / "report.html").read_text()
    assert len(missing_jobs(sweep, SweepFolder(out))) == 2  # tried again by the next call
    run_sweep(sweep, out, instant, Here())
    assert not write_sweep_report(sweep, out).problems


def test_processes_survive_one_that_dies(folder: Path) -> None:
    sweep, out = sweep_of(folder, *ONE_EACH), folder / "out"
    run_sweep(sweep, out, deadly, Processes(2))
    page = write_sweep_report(sweep, out)
    assert [(method, "code 3" in problem) for method, _, problem in page.problems] == [("isotropic", True)]
    assert len(page.methods["localized"]) == 1


def test_an_interrupted_sweep_goes_on(folder: Path) -> None:
    sweep, out = load_sweep(folder / "sweep.toml"), folder / "out"
    calls: list[Path] = []

    def interrupted(configuration: AnyFile, run: Path) -> xr.Dataset:
        calls.append(run)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return instant(configuration, run)

    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, out, interrupted, Here())
    assert sum(SweepFolder(out).finished(point) for point in sweep.points) == 1
    run_sweep(sweep, out, instant, Here())
    assert all(SweepFolder(out).finished(point) for point in sweep.points)


def test_no_process_outlives_an_interruption(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, out = load_sweep(folder / "sweep.toml"), folder / "out"

    def interrupt(sentinels: list[int]) -> list[int]:
        deadline = time.monotonic() + 120
        while not list(out.glob("runs/*/pid")) and time.monotonic() < deadline:
            time.sleep(0.1)
        raise KeyboardInterrupt

    monkeypatch.setattr(execute, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, out, slow, Processes(1))
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
    sweep_of(folder, *ONE_EACH)
    arguments = ["sweep", str(folder / "sweep.toml"), "--out", str(folder / "out")]
    runner = CliRunner()
    listed = runner.invoke(app, [*arguments, "--dry-run"])
    assert listed.exit_code == 0, listed.output
    assert listed.output.count("to run") == 2
    assert not (folder / "out").exists()
    made = runner.invoke(app, [*arguments, "--jobs", "0"])
    assert made.exit_code == 0, made.output
    assert "points of isotropic are dominated" in made.output.replace("\n", " ")
    assert json.dumps("report.html")[1:-1] in made.output
    equal = ('equal = "samples per output"', "")
    sweep_of(folder, *ONE_EACH, ('"layout.cells" = [1, 1]', '"layout.cells" = [9, 9]'), equal)
    failed = runner.invoke(app, [*arguments, "--jobs", "0"])
    assert failed.exit_code == 1
    assert "9 cells along an axis of 4" in " ".join(failed.output.split())
    assert "The same command tries them again." in failed.output


def test_a_baseline_stands_under_every_collective_bound(folder: Path) -> None:
    sides = 'title = "All"\nours = ["localized"]\nbaselines = ["isotropic", "segcertify", "centre"]\n'
    sweep, out = sweep_of(folder, *ONE_EACH, further=f"{BASELINES}\n[[comparison]]\n{sides}"), folder / "out"
    run_sweep(sweep, out, instant, Here())
    page = write_sweep_report(sweep, out)
    assert list(page.bounds) == ["lp", "exact"]
    (segcertify,) = page.methods["segcertify"]
    assert segcertify.radii["lp"] == segcertify.radii["exact"]
    assert len(page.sides[1].beaten("exact")) == 3
    assert any("centre, segcertify is its own" in note for note in page.notes)
    assert any("differ in budgets" in note for note in page.notes)
    # Baselines alone, each with a bound of its own.
    alone = sweep_of(folder, *ONE_EACH, further=BASELINES)
    names = {"segcertify", "centre"}
    outcomes = [outcome for outcome in read_outcomes(alone, SweepFolder(out)) if outcome.point.method in names]
    assert list(sweep_page(alone, outcomes).bounds) == ["own bound"]


def test_two_sweeps_share_a_directory(folder: Path) -> None:
    first, out = sweep_of(folder, *ONE_EACH), folder / "out"
    run_sweep(first, out, instant, Here())
    second = sweep_of(folder, *ONE_EACH, ('[0.2], "certificate', '[0.2, 0.3], "certificate'))
    assert [job[0].label for job in missing_jobs(second, SweepFolder(out))] == ["sigma_min = 0.3, alpha = 0.05"]
    run_sweep(second, out, instant, Here())
    write_sweep_report(second, out)
    assert len((out / "points.csv").read_text().splitlines()) == 4
    run_sweep(first, out, never, Here())
    write_sweep_report(first, out)
    assert len((out / "points.csv").read_text().splitlines()) == 3


def test_results_without_labels_have_no_quality(folder: Path) -> None:
    sweep = sweep_of(folder, *ONE_EACH)
    point = sweep.points[0]
    result = certify_quietly(point.configuration, folder / "run")
    unlabelled = result.assign(label=xr.full_like(result["label"], NO_LABEL))
    with pytest.raises(InvalidInputError, match="no item has labels"):
        operating_point(point, unlabelled, "accuracy", "ratio")
