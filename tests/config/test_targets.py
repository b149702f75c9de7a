"""What is counted, from files, from the command line, and in sweeps."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_runs import SECTIONS, configuration, write_inputs
from typer.testing import CliRunner

from localsmooth.cli.app import app
from localsmooth.config import (
    ConfigurationError,
    GraphCertificateSection,
    load_certificate,
    load_configuration,
)
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Gaussian, SparseFlips
from localsmooth.pipeline import settings_of
from localsmooth.results import load
from localsmooth.sweep import load_sweep
from localsmooth.tasks import Balanced, Foreground, OfClass, Ratio, Weighted

TARGETS = """
targets = [
  "ratio",
  "balanced",
  { kind = "foreground", background = ["class 1", 0] },
  { kind = "class", of = "class 1" },
  "class:0",
  { kind = "weighted", file = "weights.npy", name = "middle", correct = true },
]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run's file with every kind of target, and what it needs."""
    np.save(tmp_path / "weights.npy", np.arange(24.0).reshape(4, 6))
    pictures = np.zeros((1, 1, 4, 6), np.float32)
    pictures[..., 3:] = 1
    write_inputs(tmp_path, pictures)
    (tmp_path / "run.toml").write_text(configuration(certificate=SECTIONS["certificate"] + TARGETS))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def invoke(*arguments: object) -> str:
    made = CliRunner().invoke(app, [str(each) for each in arguments])
    if made.exception is not None and not isinstance(made.exception, SystemExit):
        raise made.exception
    return made.output


def test_every_kind_is_built(folder: Path) -> None:
    section = load_configuration(folder / "run.toml").certificate
    *named, weighted = section.build(Gaussian()).targets
    assert named == [Ratio(), Balanced(), Foreground(("class 1", 0)), OfClass("class 1"), OfClass("0")]
    assert isinstance(weighted, Weighted)
    assert (weighted.name, weighted.correct, weighted.weights.sum()) == ("middle", True, 276)
    assert load_certificate(folder / "run.toml").build(Gaussian()).targets[5].name == "middle"


def test_graphs_take_them_too() -> None:
    section = GraphCertificateSection.model_validate({"targets": ["agreement", {"kind": "class", "of": 2}]})
    assert [target.name for target in section.build(SparseFlips()).targets] == ["agreement", "class:2"]
    assert GraphCertificateSection().build(SparseFlips()).targets == ()


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ('["ration"]', r"targets\[0\]: 'ration' is not known. Name one of ratio, accuracy"),
        ('["class"]', "class:NAME"),
        ("[]", "targets"),
        ('[{ kind = "foregrund" }]', r'targets\[0\].kind: "foregrund" is not valid. Did you mean "foreground"'),
        ('[{ kind = "class" }]', r"targets\[0\].of: this key is missing"),
        ('[{ kind = "weighted", file = "none.npy" }]', "no such file"),
        ('["ratio", "ratio"]', "one comes twice"),
        ('[{ kind = "weighted", file = "run.toml" }]', "holds no weights"),
    ],
)
def test_faults_are_named(folder: Path, targets: str, message: str) -> None:
    (folder / "run.toml").write_text(configuration(certificate=f"{SECTIONS['certificate']}\ntargets = {targets}"))
    with pytest.raises(ConfigurationError, match=message):
        load_configuration(folder / "run.toml").certificate.build(Gaussian())


def test_a_run_counts_and_shows_them_and_another_can_be_asked_for(folder: Path) -> None:
    (folder / "run.toml").write_text(
        configuration(certificate=SECTIONS["certificate"] + 'targets = ["ratio", "balanced", "class:class 1"]')
    )
    shown = invoke("certify", folder / "run.toml", "--out", folder / "run")
    for words in ("certified ratio", "certified balanced recall", "certified recall of class 1", "Agreement with the"):
        assert words in shown
    result = load(folder / "run" / "result.nc")
    assert result["target"].values.tolist() == ["ratio", "balanced", "class:class 1"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert settings_of(folder / "run").targets == (Ratio(), Balanced(), OfClass("class 1"))
    invoke("recertify", folder / "run", "--target", "foreground", "--target", "class:1")
    again = load(folder / "run" / "recertified.nc")
    assert again["target"].values.tolist() == ["foreground", "class:1"]
    assert again["total"].values.tolist() == [[12, 12]]
    invoke("report", folder / "run", "--figures", folder / "figures")
    names = {file.name for file in (folder / "figures").iterdir()}
    assert {"certified-balanced.pdf", "certified-class-class-1.png"} <= names
    with pytest.raises(InvalidInputError, match="--target"):
        invoke("recertify", folder / "run", "--target", "backgruond")


def test_baselines_say_so_where_nothing_is_a_count(folder: Path) -> None:
    text = configuration(
        certificate='alpha = 0.05\nbudgets = [0.0]\nbaseline = { method = "cohen" }\ntargets = ["balanced"]',
        layout="cells = [1, 1]",
        noise='distribution = "gaussian"\nsigma_min = 0.2\nsigma_max = 0.2',
    )
    (folder / "run.toml").write_text(text)
    with pytest.raises(InvalidInputError, match="baselines count them"):
        invoke("certify", folder / "run.toml", "--out", folder / "run")


def test_sweeps_compare_radii_of_any_target_that_is_counted(folder: Path) -> None:
    method = '\n[[method]]\nname = "a"\nset = {{ "certificate.targets" = {} }}\n'
    sweep = 'target = "balanced"\n' + configuration(name=None, within="base.")
    (folder / "sweep.toml").write_text(sweep + method.format('["ratio", "balanced"]'))
    assert load_sweep(folder / "sweep.toml").section.target == "balanced"
    for targets in ('["ratio"]', '[{ kind = "weighted", file = "weights.npy" }]'):
        (folder / "sweep.toml").write_text(sweep + method.format(targets))
        with pytest.raises(ConfigurationError, match=r'certificate.targets: radii are those of "balanced"'):
            load_sweep(folder / "sweep.toml")
