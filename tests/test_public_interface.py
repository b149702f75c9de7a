"""Every public name can be imported, is documented, and the functions among them can be called."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import localsmooth

ROOMS = sorted(m.name for m in pkgutil.walk_packages(localsmooth.__path__, "localsmooth."))


@pytest.mark.parametrize("name", localsmooth.__all__)
def test_public_name_exists_and_is_documented(name: str) -> None:
    found = getattr(localsmooth, name)
    if inspect.isclass(found) or callable(found):
        assert inspect.getdoc(found), f"{name} has no docstring"


@pytest.mark.parametrize("module", ROOMS)
def test_every_module_says_what_it_offers(module: str) -> None:
    loaded = importlib.import_module(module)
    assert loaded.__doc__
    assert len(loaded.__doc__.strip()) > 5
    for name in getattr(loaded, "__all__", ()):
        assert hasattr(loaded, name), f"{module} promises {name}"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["certify", "--help"], ["demo", "--help"]])
def test_command_line_answers(arguments: list[str]) -> None:
    command = [sys.executable, "-c", "from localsmooth.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "localsmooth" in done.stdout.lower() or "usage" in done.stdout.lower()
