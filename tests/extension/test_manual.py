"""The page about extensions: its code runs, its suites pass, and its file certifies."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from localsmooth.certificates import VOTE_CERTIFICATES
from localsmooth.cli.app import app
from localsmooth.collective import BOUNDS
from localsmooth.config.noises import NOISE_SECTIONS
from localsmooth.noise import NOISES
from localsmooth.results import load

MANUAL = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
REST = """
[model]
kind = "callable"
function = "my_model:signs"
classes = 2
output = "labels"

[data]
kind = "arrays"
images = "images.npy"

[layout]
cells = [1, 2]

[sampling]
n_candidate = 20
n_bound = 500
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", MANUAL, flags=re.DOTALL)


@pytest.fixture(scope="module")
def page() -> Generator[ModuleType]:
    """A module with all code of the page."""
    module = ModuleType("my_laplace")
    sys.modules["my_laplace"] = module
    for block in blocks("python"):
        exec(compile(block, "docs/extending.md", "exec"), vars(module))
    yield module
    for registry, name in (
        (NOISES, "laplace"),
        (NOISE_SECTIONS, "laplace"),
        (VOTE_CERTIFICATES, "laplace-votes"),
        (BOUNDS, "better"),
    ):
        registry.withdraw(name)
    del sys.modules["my_laplace"]


SUITES = re.findall(r"^class (Test\w+)\(", MANUAL, flags=re.MULTILINE)


@pytest.mark.parametrize("name", SUITES)
def test_suites_pass(name: str, page: ModuleType) -> None:
    suite = getattr(page, name)()
    tests = [test for test in dir(suite) if test.startswith("test_")]
    assert len(tests) >= 6
    for test in tests:
        getattr(suite, test)()


def test_there_is_one_of_each() -> None:
    assert SUITES == [
        "TestThreshold",
        "TestLaplace",
        "TestLaplaceVotes",
        "TestBetter",
        "TestShuffled",
        "TestMappingFiles",
    ]


def test_its_file_certifies(page: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = blocks("toml")
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_model.py").write_text(
        "import numpy as np\n\n\ndef signs(batch):\n    return (batch[:, 0] > 0).astype(np.int64)\n"
    )
    np.save(tmp_path / "images.npy", np.full((1, 1, 3, 4), 1.0, np.float32))
    (tmp_path / "run.toml").write_text(file + REST)
    done = CliRunner().invoke(app, ["certify", str(tmp_path / "run.toml"), "--out", str(tmp_path / "run")])
    sys.modules.pop("my_model", None)
    assert done.exit_code == 0, done.output
    result = load(tmp_path / "run" / "result.nc")
    assert result["bound"].values.tolist() == ["naive", "better"]
    assert result["certified"].sel(budget=0.4).max() > 0


def test_the_package_needs_no_test_runner() -> None:
    """Neither the package nor its suites import pytest or hypothesis."""
    code = (
        "import sys, localsmooth, localsmooth.config, localsmooth.extension; assert 'localsmooth.testing' not in "
        "sys.modules; import localsmooth.testing; print({'pytest', 'hypothesis'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "set()"


def test_suites_that_could_not_fail_are_refused() -> None:
    command = [sys.executable, "-O", "-c", "import localsmooth.testing"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode
    assert "Run tests without it" in done.stderr
