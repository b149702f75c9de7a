"""The commands in the environments that people have: notebooks, logs, plain encodings, names with brackets, homes."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import runpy
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_runs import FUNCTIONS, SECTIONS, changed, configuration, write_inputs
from typer.testing import CliRunner

from localsmooth.cli.app import app
from localsmooth.cli.commands import COMMANDS
from localsmooth.config import ConfigurationError
from localsmooth.errors import InvalidInputError, OutputError
from localsmooth.results import load

CONFIG = configuration()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_inputs(tmp_path, np.random.default_rng(0).random((1, 1, 6, 8), dtype=np.float32))
    (tmp_path / "run.toml").write_text(CONFIG)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, with no terminal anywhere."""
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(
        [sys.executable, "-m", "localsmooth", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=kept | environment,
        timeout=300,
        check=False,
    )


def test_help_imports_nothing_that_takes_seconds() -> None:
    heavy = ("torch", "numpy", "xarray", "scipy", "matplotlib")
    program = (
        "import sys\nfrom localsmooth.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    for arguments in (["--help"], ["certify", "--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("call", COMMANDS, ids=lambda call: call.__name__)
def test_every_command_is_called_with_what_may_be_written(call: Callable[..., None]) -> None:
    done = getattr(importlib.import_module(f"localsmooth.cli.{call.__name__}"), call.__name__)
    assert list(inspect.signature(done).parameters) == list(inspect.signature(call).parameters)


def test_help_shows_brackets_and_defaults() -> None:
    said = " ".join(invoke("certify", "--help").output.split())
    assert "[default: the run directory]" in said
    assert "section [execution]" in said
    assert "[default: RUN/recertified.nc]" in " ".join(invoke("recertify", "--help").output.split())
    assert "a [certificate] section" in " ".join(invoke("recertify", "--help").output.split())
    assert not re.search(r"[a-z]\.\.\.", invoke("--help").output)


def test_what_a_notebook_sets_for_matplotlib_does_no_harm(folder: Path) -> None:
    done = command("certify", "run.toml", "--out", "run", MPLBACKEND="module://a_package_that.is_not_there")
    assert done.returncode == 0, done.stderr


def test_logs_have_whole_lines_and_progress(folder: Path) -> None:
    deep = folder / ("a-rather-long-name-of-a-folder-" * 3)
    (folder / "tiny_functions.py").write_text(FUNCTIONS + "import warnings\nwarnings.warn('mind this')\n")
    done = command("certify", "run.toml", "--out", deep)
    assert "Warning: mind this" in done.stderr.splitlines()
    assert f"Result: {deep}/result.nc. Picture: localsmooth report {deep}" in done.stderr.splitlines()
    assert any(
        line.startswith("Sampling: 1,280 samples, 0 of them stored earlier") for line in done.stderr.splitlines()
    )
    assert "Certifying 1 item" in done.stderr.splitlines()
    assert not any("…" in line for line in done.stdout.splitlines())
    done = command("certify", folder / deep / "nothing.toml", "--out", "x")
    assert (done.returncode, done.stderr) == (2, f"Error: {folder / deep / 'nothing.toml'}: no such file.\n")
    assert str(deep) in invoke("runs", folder).output


def test_brackets_and_colons_in_names_are_letters(folder: Path) -> None:
    out = folder / "runs" / "a[/b]" / ":smile:[bold]"
    (folder / "run.toml").write_text(CONFIG.replace('"tiny"', '"[/x] :smile: [red]"'))
    done = invoke("certify", "run.toml", "--out", out)
    assert done.exit_code == 0
    assert f"Result: {out}/result.nc" in done.stderr
    assert "[/x] :smile: [red]" in done.stdout
    page = invoke("report", out, "--figures", out / "figures")
    assert f"Report: {out}/report.html" in page.stderr
    assert f"Result: {out}/recertified.nc" in invoke("recertify", out, "--alpha", "0.2").stderr
    assert str(out) in invoke("runs", out).output


def test_output_without_unicode_is_no_reason_to_fail(folder: Path) -> None:
    done = command("certify", "run.toml", "--out", "run", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "certified ratio" in done.stdout


def test_a_tilde_is_home_in_options_arguments_and_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    (folder / "images.npy").rename(home / "images.npy")
    (home / "run.toml").write_text(
        configuration(
            data=changed(
                SECTIONS["data"], ('"images.npy"', '"~/images.npy"'), ('"labels.npy"', f'"{folder}/labels.npy"')
            )
        )
    )
    assert invoke("certify", "~/run.toml", "--out=~/run", "--store=~/chunks").exit_code == 0
    assert invoke("report", "~/run", "--to=~/page.html", "--figures=~/figures").exit_code == 0
    assert "100.0%" in invoke("runs", "~/chunks").output
    assert invoke("recertify", "~/run", "--to=~/again.nc").exit_code == 0
    assert not (folder / "~").exists()
    assert {"run", "chunks", "page.html", "figures", "again.nc"} <= {path.name for path in home.iterdir()}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_configurations_with_byte_order_marks_are_read(folder: Path, encoding: str) -> None:
    (folder / "run.toml").write_text(CONFIG.replace('"tiny"', '"σ"'), encoding=encoding)
    assert invoke("certify", "run.toml", "--out", "run").exit_code == 0
    assert load(folder / "run" / "result.nc").attrs["method"] == "σ"


def test_configurations_in_other_encodings_are_named(folder: Path) -> None:
    (folder / "run.toml").write_bytes(CONFIG.replace('"tiny"', '"größer"').encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"run\.toml: not valid TOML: it is not in UTF-8"):
        invoke("certify", "run.toml", "--out", "run")


def events(*arguments: object, status: int = 0) -> list[dict[str, object]]:
    """What a command says with `--log json`, on both streams."""
    done = invoke(*arguments, "--log", "json")
    assert done.exit_code == status
    return [json.loads(line) for line in done.output.splitlines()]


def test_json_is_json_to_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tiny_functions.py").write_text(
        FUNCTIONS + "import warnings\nwarnings.warn('a warning\\nof two lines')\n"
    )
    monkeypatch.delitem(sys.modules, "tiny_functions", raising=False)
    told = events("certify", "run.toml", "--out", "run")
    assert [event["text"] for event in told if event["event"] == "warning"] == ["a warning\nof two lines"]
    assert told[-1]["event"] == "result"
    assert load(str(told[-1]["file"])).sizes["item"] == 1

    told = events("certify", "absent.toml", "--out", "run", status=2)
    assert [(event["event"], event["kind"]) for event in told] == [("error", "ConfigurationError")]

    (folder / "tiny_functions.py").write_text("raise OSError('a fault\\nof the module')\n")
    monkeypatch.delitem(sys.modules, "tiny_functions")
    last = events("certify", "run.toml", "--out", "other", status=1)[-1]
    assert (last["event"], last["text"]) == ("error", "a fault\nof the module")
    assert "tiny_functions.py" in str(last["traceback"])

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("localsmooth.cli.certify.certify_task", interrupt)
    (folder / "tiny_functions.py").write_text(FUNCTIONS)
    assert [event["event"] for event in events("certify", "run.toml", "--out", "run", status=130)] == ["interrupted"]


def test_json_tells_of_part_of_a_run(folder: Path) -> None:
    told = events("certify", "run.toml", "--out", "part", "--part", "1/2")
    assert told[-1]["event"] == "message"
    assert "localsmooth merge" in str(told[-1]["text"])


def test_targets_that_cannot_be_written_are_refused_at_once(folder: Path) -> None:
    assert invoke("certify", "run.toml", "--out", "run").exit_code == 0
    for arguments in (["report", "run", "--to", "nodir/x.html"], ["recertify", "run", "--to", "nodir/x.nc"]):
        with pytest.raises(OutputError, match=r"nodir.x.* cannot be written .*Make its folder"):
            invoke(*arguments)
    assert not (folder / "run" / "report.html").exists()
    (folder / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        invoke("report", "run", "--figures", "file/figures")


@pytest.mark.parametrize(
    "address", ["zip://run.zip", "zip://a::file:///tmp/x.zip", "https://example.invalid/x", "reference://x", "nope://x"]
)
def test_places_that_take_no_chunks_are_one_error_before_sampling(folder: Path, address: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^store: .*(Pass|pass) a folder"):
        invoke("certify", "run.toml", "--out", "run", "--store", address)


def test_module_is_a_program() -> None:
    done = command("--version")
    assert re.fullmatch(r"localsmooth \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("module", ["localsmooth", "localsmooth.cli"])
def test_the_package_and_its_room_of_commands_run(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["localsmooth", "--version"])
    monkeypatch.setenv("MPLBACKEND", "agg")
    with warnings.catch_warnings(), pytest.raises(SystemExit) as done:
        runpy.run_module(module, run_name="__main__")
    assert done.value.code in (None, 0)
    assert capsys.readouterr().out.startswith("localsmooth ")
