"""The commands, from a configuration file to a page, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from tests.tiny_runs import SECTIONS, changed, configuration, write_inputs
from typer.testing import CliRunner

from localsmooth.cli.app import app
from localsmooth.cli.demo import demo_configurations
from localsmooth.cli.recertify import parse_budgets
from localsmooth.cli.summary import print_summary
from localsmooth.config import parse_configuration
from localsmooth.config.execution import ExecutionSection
from localsmooth.config.faults import ConfigurationError
from localsmooth.config.load import with_execution
from localsmooth.errors import InvalidInputError
from localsmooth.execution import ProcessExecutor, SerialExecutor, ThreadExecutor
from localsmooth.results import load
from localsmooth.runs import StoreError
from localsmooth.tasks.record import RunRecordError

CONFIG = configuration(
    data=SECTIONS["data"] + 'class_names = ["dark", "<b>bright</b>"]',
    certificate=SECTIONS["certificate"] + 'bounds = ["naive", "lp", "envelope", "exact"]',
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    generator = np.random.default_rng(0)
    images = generator.random((2, 1, 6, 8), dtype=np.float32)
    write_inputs(tmp_path, images)
    (tmp_path / "run.toml").write_text(CONFIG)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def invoke(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.mark.parametrize("command", ["certify", "plan", "dry"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (('images = "images.npy"', 'items = [9]\nimages = "images.npy"'), "data.items: item 9 of 2"),
        (
            ("n_bound = 300", "n_bound = 3"),
            "sampling.n_bound: with N₂ = 3 samples of each output group, ",
        ),
        (
            ("alpha = 0.05", 'alpha = 0.05\ntargets = ["class:9"]'),
            "certificate.targets: class:9: '9' is none of the classes",
        ),
        (("cells = [2, 2]", "cells = [2, 99]"), "layout.cells: 99 cells along an axis of 8 elements"),
    ],
)
def test_errors_of_a_run_name_its_file_and_key(folder: Path, command: str, change: tuple[str, str], text: str) -> None:
    file = folder / "run.toml"
    file.write_text(changed(CONFIG, change))
    arguments = ["plan", file] if command == "plan" else ["certify", file, "--out", folder / "run"]
    with pytest.raises(InvalidInputError) as told:
        invoke(*arguments, *(["--dry-run"] if command == "dry" else []))
    assert str(told.value).startswith(f"{file}: {text}")


def test_no_key_is_named_that_the_file_does_not_have(folder: Path) -> None:
    file = folder / "run.toml"
    file.write_text(configuration(sampling="passes = 8\nbatch_size = 50\nchunk_size = 100"))
    with pytest.raises(InvalidInputError) as told:
        invoke("plan", file)
    assert told.value.field == "n_bound"


@pytest.mark.parametrize("command", ["certify", "plan"])
def test_calibration_items_that_are_certified_are_called_what_they_are(folder: Path, command: str) -> None:
    file = folder / "run.toml"
    file.write_text(configuration(calibration=SECTIONS["data"] + "items = [1]"))
    arguments = ["plan", file] if command == "plan" else ["certify", file, "--out", folder / "run"]
    with pytest.raises(InvalidInputError) as told:
        invoke(*arguments)
    assert str(told.value) == (
        f'{file}: calibration: "item 1" is among its items, which plan, tune and locality look at, and is to be '
        "certified. Name other items there, or certify others"
    )


def test_certify_report_recertify(folder: Path) -> None:
    done = invoke("certify", folder / "run.toml", "--out", folder / "run")
    assert done.exit_code == 0
    assert "certified ratio" in done.output
    assert "About model " in done.output
    assert "seed 0" in " ".join(done.output.split())
    result = load(folder / "run" / "result.nc")
    assert result["certified"].sizes["bound"] == 4
    assert result["batch_size"].item() == 50 if "batch_size" in result else result.attrs["batch_size"] == 50
    paper = ("--pdf", folder / "appendix.pdf")
    assert invoke("report", folder / "run", "--figures", folder / "figures", *paper).exit_code == 0
    assert (folder / "appendix.pdf").read_bytes().startswith(b"%PDF-")
    page = (folder / "run" / "report.html").read_text()
    assert "<b>bright</b>" not in page
    assert "Which smoothed classifier" in page
    assert {p.suffix for p in (folder / "figures").iterdir()} == {".pdf", ".png"}

    again = invoke("recertify", folder / "run", "--alpha", "0.2", "--budgets", "0:0.4:5", "--bound", "envelope")
    assert again.exit_code == 0
    changed = load(folder / "run" / "recertified.nc")
    assert changed.attrs["alpha"] == 0.2
    assert changed["budget"].values.tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert invoke("report", folder / "run" / "recertified.nc").exit_code == 0
    assert (folder / "run" / "report.html").read_text() == page
    assert (folder / "run" / "recertified.html").read_text() != page
    assert str(folder) not in page
    assert (changed["eta"].values >= result["eta"].values).all()

    (folder / "other.toml").write_text(
        '[certificate]\nalpha = 0.05\nbudgets = [0.1]\nmany_outputs = { rule = "k_familywise", k = 3 }\n'
    )
    invoke("recertify", folder / "run", "--config", folder / "other.toml", "--to", folder / "k.nc")
    assert "Up to 2 bounds may fail" in load(folder / "k.nc").attrs["assumptions"]


def test_a_plan_says_what_it_takes_and_writes_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    planned = invoke("plan", folder / "run.toml", "--seconds", "0.05")
    dry = invoke("certify", folder / "run.toml", "--out", folder / "run", "--dry-run")
    for each in (planned, dry):
        assert each.exit_code == 0
        assert f"Model: {2 * 4 * 320:,} forward passes" in each.output
        assert "certificates can reach" in each.output
        assert "grey levels of 255" in each.output
        assert "no calibration items" in each.output
    made = json.loads(invoke("plan", folder / "run.toml", "--seconds", "0.05", "--json").stdout)
    assert made["passes"] == 2560
    assert made["seconds"] > 0
    assert [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts] == before


def test_executor_and_log_are_chosen_on_the_command_line(folder: Path) -> None:
    first = invoke("certify", folder / "run.toml", "--out", folder / "one")
    second = invoke(
        *("certify", folder / "run.toml", "--out", folder / "two"),
        *("--executor", "processes", "--workers", 1, "--log", "json"),
    )
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "samples/s)" in first.stderr
    events = [json.loads(line) for line in second.output.splitlines()]
    kinds = [event["event"] for event in events]
    assert (kinds[0], kinds[-5:]) == ("message", ["summary", *["certifying"] * 3, "result"])
    assert events[-5]["samples"] == 2 * 4 * 320
    assert load(events[-1]["file"]).attrs["method"] == "tiny"
    one, two = (load(folder / name / "result.nc") for name in ("one", "two"))
    assert one["certified"].equals(two["certified"])
    assert one["votes"].equals(two["votes"])


def test_executors_of_the_file_are_changed_by_the_command_line(tmp_path: Path) -> None:
    plain = demo_configurations()["localized"]
    section = {"executor": "processes", "workers": 3, "gpus_per_worker": 1}
    configuration = parse_configuration(plain | {"execution": section})
    assert with_execution(configuration) == configuration
    more = with_execution(configuration, workers=5).execution
    assert (more.executor, more.workers, more.gpus_per_worker) == ("processes", 5, 1)
    other = with_execution(configuration, executor="threads", workers=2).execution
    assert (other.executor, other.workers, other.gpus_per_worker) == ("threads", 2, None)
    executors = {None: type(None), "serial": SerialExecutor, "threads": ThreadExecutor, "processes": ProcessExecutor}
    for name, kind in executors.items():
        assert type(ExecutionSection(executor=name).build()) is kind  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="address goes with"):
        with_execution(configuration, address="auto")
    with pytest.raises(ConfigurationError, match="workers goes with"):
        parse_configuration(plain | {"execution": {"workers": 2}})
    with pytest.raises(ConfigurationError, match=r'execution.executor: "rya" is not valid. Did you mean "ray"'):
        parse_configuration(plain | {"execution": {"executor": "rya"}})


def test_two_results_are_compared_on_one_page(folder: Path) -> None:
    invoke("certify", folder / "run.toml", "--out", folder / "one")
    (folder / "run.toml").write_text(changed(CONFIG, ('"tiny"', '"isotropic"'), ("[2, 2]", "[1, 1]")))
    invoke("certify", folder / "run.toml", "--out", folder / "two")
    assert invoke("report", folder / "one", folder / "two", "--to", folder / "page.html").exit_code == 0
    page = (folder / "page.html").read_text()
    assert "tiny" in page
    assert "isotropic" in page


def test_two_machines_share_a_run(folder: Path) -> None:
    assert invoke("certify", folder / "run.toml", "--out", folder / "alone").exit_code == 0
    for number in (1, 2):
        done = invoke("certify", folder / "run.toml", "--out", folder / f"part{number}", "--part", f"{number}/2")
        assert done.exit_code == 0
        assert "localsmooth merge" in done.output
    listed = invoke("runs", folder)
    assert "50.0%" in listed.output
    assert "missing" in listed.output
    assert "chunks added" in invoke("merge", folder / "part1", folder / "part2").output
    assert invoke("certify", folder / "run.toml", "--out", folder / "part1").exit_code == 0
    together, alone = load(folder / "part1" / "result.nc"), load(folder / "alone" / "result.nc")
    assert (together["certified"].values == alone["certified"].values).all()
    overviews = {Path(entry["place"]).name: entry for entry in json.loads(invoke("runs", folder, "--json").output)}
    assert overviews["part1"]["counted"] == overviews["part1"]["planned"] == 2 * 4 * 320
    assert overviews["part2"]["missing"]


def test_chunks_can_live_elsewhere(folder: Path) -> None:
    address = f"file://{folder}/elsewhere"
    assert invoke("certify", folder / "run.toml", "--out", folder / "run", "--store", address).exit_code == 0
    assert not (folder / "run" / "chunks").exists()
    assert list((folder / "elsewhere" / "chunks").rglob("*.tally"))
    assert "100.0%" in invoke("runs", address).output
    assert invoke("recertify", folder / "run", "--alpha", "0.2").exit_code == 0


def test_a_directory_of_another_run_is_refused_before_sampling(folder: Path) -> None:
    assert invoke("certify", folder / "run.toml", "--out", folder / "run").exit_code == 0
    elsewhere = folder / "elsewhere"
    with pytest.raises(StoreError, match="holds a run already"):
        invoke("certify", folder / "run.toml", "--out", folder / "run", "--store", f"file://{elsewhere}")
    assert not (elsewhere / "manifest.json").exists()
    (folder / "other.toml").write_text(changed(CONFIG, ("n_candidate = 20", "n_candidate = 30")))
    assert (
        invoke("certify", folder / "other.toml", "--out", folder / "two", "--store", f"file://{elsewhere}").exit_code
        == 0
    )
    with pytest.raises(StoreError, match=r"plan\.n_candidate"):
        invoke("certify", folder / "other.toml", "--out", folder / "run", "--store", f"file://{elsewhere}")


def test_a_folder_without_runs_is_named(folder: Path) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="holds no run"):
        invoke("runs", folder / "empty")


def test_faults_are_named(folder: Path) -> None:
    (folder / "bad.toml").write_text(changed(CONFIG, ("n_bound", "n_bond")))
    with pytest.raises(ConfigurationError, match='Did you mean "n_bound"'):
        invoke("certify", folder / "bad.toml", "--out", folder / "run")
    (folder / "bad.toml").write_text(changed(CONFIG, ("tiny_functions:bright", "tiny_functions:brihgt")))
    with pytest.raises(ConfigurationError, match="has no"):
        invoke("certify", folder / "bad.toml", "--out", folder / "run")
    (folder / "bad.toml").write_text(changed(CONFIG, ("n_bound = 300", "n_bound = 3")))
    with pytest.raises(InvalidInputError, match=r"n_bound.*Draw at least"):
        invoke("certify", folder / "bad.toml", "--out", folder / "run")
    with pytest.raises(InvalidInputError, match="does not exist"):
        invoke("report", folder / "absent")
    with pytest.raises(RunRecordError, match="no finished run"):
        invoke("recertify", folder)
    invoke("certify", folder / "run.toml", "--out", folder / "run")
    with pytest.raises(InvalidInputError, match="is no bound"):
        invoke("recertify", folder / "run", "--bound", "envelop")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        invoke("recertify", folder / "run", "--budgets", "0;1")


def test_budgets_on_the_command_line() -> None:
    assert parse_budgets("0,0.5,1") == [0.0, 0.5, 1.0]
    assert parse_budgets("0:1:3") == [0.0, 0.5, 1.0]
    assert parse_budgets("0:1:11")[3] == 0.3
    for text in ("", "a", "0:1", "0:1:x", "0:1:99999999"):
        with pytest.raises(InvalidInputError, match="--budgets"):
            parse_budgets(text)


def test_demonstration_is_a_valid_configuration() -> None:
    made = {name: parse_configuration(values) for name, values in demo_configurations().items()}
    assert made["localized"].layout.cells == [3, 4]
    assert made["isotropic"].layout.cells == [1, 1]
    assert made["localized"].sampling == made["isotropic"].sampling
    assert made["localized"].sampling.passes == 13_824
    assert made["localized"].certificate == made["isotropic"].certificate


def test_summary_fits_a_narrow_terminal(folder: Path) -> None:
    invoke("certify", folder / "run.toml", "--out", folder / "run")
    console = Console(width=80, record=True, file=(folder / "out.txt").open("w"))
    print_summary({"tiny": load(folder / "run" / "result.nc")}, console)
    text = console.export_text()
    assert "envelope" in text
    assert "…" not in text
    assert "ε is an l2 norm (" in text
