"""A module of somebody else's adds a noise, certificates and a bound: they work by name, without a change elsewhere."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from localsmooth import InvalidInputError, recertify, register, settings_of
from localsmooth.certificates import SCORE_CERTIFICATES, VOTE_CERTIFICATES, GaussianVotes
from localsmooth.cli.app import app
from localsmooth.collective import BOUNDS, Ball, CertificateError, Envelope, Problem, as_bounds, solve
from localsmooth.collective.search.bound import Outcome, RelaxationSolver
from localsmooth.config import ConfigurationError, load_configuration, parse_configuration
from localsmooth.config.noises import NOISE_SECTIONS
from localsmooth.noise import NOISES, Gaussian
from localsmooth.results import load
from tests.tiny_runs import changed

MODULE = '''
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

import localsmooth as ls
from localsmooth.certificates import GaussianVotes
from localsmooth.collective import Envelope
from localsmooth.config import NoiseSection
from localsmooth.noise import Gaussian


@ls.register
class Doubled(Gaussian):
    """A Gaussian of twice the level."""

    distribution = "doubled"
    certificate = "doubled-votes"

    def weights(self, levels):
        return Gaussian().weights(2 * levels)

    def prepare(self, item, level_map, bounds, hidden_value):
        return super().prepare(item, 2 * level_map, bounds, hidden_value)


@ls.register
class DoubledSection(NoiseSection):
    """Gaussian noise of twice the level."""

    distribution: Literal["doubled"]
    half: float = Field(gt=0)
    """Half of the standard deviation."""

    def build(self):
        return Doubled()

    def levels(self):
        return self.half, self.half


@ls.register
class DoubledVotes(GaussianVotes):
    name = "doubled-votes"

    def certificates(self, noise, levels, lower_probability, group):
        return super().certificates(Gaussian(), 2 * levels, lower_probability, group)


@ls.register
class Mine(Envelope):
    name: ClassVar[str] = "mine"
'''

FILE = """
[plugins]
modules = ["plugged_in"]

[model]
kind = "callable"
function = "plugged_model:signs"
classes = 2
output = "labels"

[data]
kind = "arrays"
images = "images.npy"

[layout]
cells = [1, 2]

[noise]
distribution = "doubled"
half = 0.25

[sampling]
n_candidate = 20
n_bound = 200

[certificate]
alpha = 0.01
budgets = [0.0, 0.1, 0.3]
bounds = ["naive", "mine"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "plugged_in.py").write_text(MODULE)
    (tmp_path / "plugged_model.py").write_text(
        "import numpy as np\n\n\ndef signs(batch):\n    return (batch[:, 0] > 0).astype(np.int64)\n"
    )
    np.save(tmp_path / "images.npy", np.full((1, 1, 3, 4), 0.5, np.float32))
    (tmp_path / "run.toml").write_text(FILE)
    yield tmp_path
    for registry, name in (
        (NOISES, "doubled"),
        (NOISE_SECTIONS, "doubled"),
        (VOTE_CERTIFICATES, "doubled-votes"),
        (BOUNDS, "mine"),
    ):
        registry.withdraw(name)
    for module in ("plugged_in", "plugged_model"):
        sys.modules.pop(module, None)


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_one_of_each_from_a_module_elsewhere(folder: Path) -> None:
    invoke("certify", folder / "run.toml", "--out", folder / "run")
    theirs = load(folder / "run" / "result.nc")
    assert theirs["bound"].values.tolist() == ["naive", "mine"]
    plain = changed(
        FILE,
        ('[plugins]\nmodules = ["plugged_in"]\n', ""),
        ('distribution = "doubled"\nhalf = 0.25', 'distribution = "gaussian"\nsigma_min = 0.5\nsigma_max = 0.5'),
        ('"mine"', '"envelope"'),
    )
    (folder / "plain.toml").write_text(plain)
    invoke("certify", folder / "plain.toml", "--out", folder / "plain")
    np.testing.assert_array_equal(theirs["certified"], load(folder / "plain" / "result.nc")["certified"])
    assert theirs["certified"].values[..., -1].max() > 0
    again = recertify(folder / "run", replace(settings_of(folder / "run"), alpha=0.05))
    assert again["bound"].values.tolist() == ["naive", "mine"]
    invoke("recertify", folder / "run", "--bound", "mine")


def test_a_run_directory_never_has_code_imported(folder: Path) -> None:
    """Where nobody registered what a run names, that is an error, and another file's plugins are the remedy."""
    invoke("certify", folder / "run.toml", "--out", folder / "run")
    reading = (
        "import sys; sys.path.insert(0, sys.argv[1]); import localsmooth as ls\n"
        "try: ls.recertify(sys.argv[1] + '/run')\n"
        "except ls.InvalidInputError as error: print(error)\n"
        "from typer.testing import CliRunner; from localsmooth.cli.app import app\n"
        "print(CliRunner().invoke(app, ['recertify', sys.argv[1] + '/run']).exception)\n"
        "CliRunner().invoke(app, ['report', sys.argv[1] + '/run', '--to', sys.argv[1] + '/page.html'])\n"
        "CliRunner().invoke(app, ['runs', sys.argv[1]])\n"
        "print('plugged_in' in sys.modules)\n"
        "done = CliRunner().invoke(app, ['recertify', sys.argv[1] + '/run', '--config', sys.argv[1] + '/run.toml'])\n"
        "print(done.exit_code, 'plugged_in' in sys.modules)\n"
    )
    command = [sys.executable, "-c", reading, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, cwd=folder)
    first, second, imported, after = done.stdout.strip().splitlines()
    for said in (first, second):
        assert "noise: {'distribution': 'doubled', 'clamp': False} describes no distribution" in said
        assert "Import the module that registers" in said
    assert (imported, after) == ("False", "0 True")


def test_parsing_imports_nothing_and_faults_name_their_key(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    values = tomllib.loads(FILE)
    with pytest.raises(ConfigurationError, match=r'noise\.distribution: "doubled" is not valid'):
        parse_configuration(values, folder)
    assert "plugged_in" not in sys.modules
    for wrong, message in (
        ('["absent_module"]', r"plugins\.modules: No module named 'absent_module'"),
        ('["."]', r"plugins\.modules"),
        ("5", r"plugins\.modules"),
    ):
        (folder / "wrong.toml").write_text(changed(FILE, ('["plugged_in"]', wrong)))
        with pytest.raises(ConfigurationError, match=message):
            load_configuration(folder / "wrong.toml")
    load_configuration(folder / "run.toml")
    (folder / "wrong.toml").write_text(changed(FILE, ("half = 0.25", "half = -1"), ('"mine"', '"mien"')))
    with pytest.raises(ConfigurationError, match=r"(?s)noise\.half: .*greater than 0.*\"mien\" is not valid.*\"mine\""):
        load_configuration(folder / "wrong.toml")
    (folder / "wrong.toml").write_text(changed(FILE, ("half =", "hlaf =")))
    with pytest.raises(ConfigurationError, match=r'noise\.hlaf: unknown key\. Did you mean "half"'):
        load_configuration(folder / "wrong.toml")


def test_names_are_not_taken_from_others() -> None:
    class Another(Gaussian):
        """Its name is inherited."""

    class Scores(GaussianVotes):
        name = "gaussian-scores"

    class Nameless(Envelope):
        name = ""

    unchecked = inspect.unwrap(register)  # users have no type checker that speaks first
    for kind in (Another, Scores, Nameless, Gaussian(), int, "gaussian"):
        with pytest.raises(InvalidInputError):
            unchecked(kind)
    assert NOISES["gaussian"] is Gaussian
    assert SCORE_CERTIFICATES.known_as(Scores) is None
    assert register(Gaussian) is Gaussian, "once more does no harm"


class Boastful(Envelope):
    """Claims more than it can prove."""

    def solver(self, problem: Problem) -> RelaxationSolver:
        honest = super().solver(problem)

        class Solver(RelaxationSolver):
            def __init__(self) -> None: ...

            def solve(self, setting, deadline) -> Outcome:
                found = honest.solve(setting, deadline)
                return Outcome(found.lower + 1, found.root, found.attacks[:0], found.prices)

        return Solver()


def test_bounds_from_elsewhere_are_proven_again() -> None:
    """Targets of equal thresholds in two groups: the optimum is above the envelope, so that no attack contradicts."""
    problem = Problem(np.eye(2), [1.0] * 5 + [1.5] * 5, [0] * 5 + [1] * 5, Ball(1.2, 1))
    assert list(as_bounds([Boastful(), Envelope()])) == ["Boastful", "envelope"]
    assert solve(problem, Envelope())[0].verified is None
    with pytest.raises(CertificateError):
        solve(problem, Boastful())
