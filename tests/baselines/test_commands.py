"""Baselines from a configuration file: certify, recertify, report."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from localsmooth.baselines import CentreSmoothing, Cohen, ReceptiveFields, SegCertify, SparseSmooth
from localsmooth.cli.app import app
from localsmooth.config.certificate import CertificateSection
from localsmooth.config.faults import ConfigurationError
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline import recertify
from localsmooth.results import load, run_info
from tests.tiny_runs import configuration, write_inputs

SAMPLING = "n_candidate = 900\nn_bound = 1000\nbatch_size = 100\nchannels_last = false\nchunk_size = 300"

GAUSSIAN = 'distribution = "gaussian"\nsigma_min = 0.3\nsigma_max = 0.3'
SPARSE = (
    'distribution = "sparse-flips"\naddition_min = 0.1\naddition_max = 0.1\ndeletion_min = 0.3\ndeletion_max = 0.3\n'
    'flips = "deletions"'
)


def text_of(baseline: str, noise: str = GAUSSIAN) -> str:
    certificate = f"alpha = 0.05\nbudgets = [0.0, 0.1, 1.0]\nbaseline = {baseline}"
    return configuration(
        name="baseline", layout="cells = [1, 1]", noise=noise, sampling=SAMPLING, certificate=certificate
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    images = (np.random.default_rng(0).random((2, 1, 4, 5)) > 0.5).astype(np.float32)
    write_inputs(tmp_path, images)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def invoke(*arguments: object):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize(
    ("baseline", "noise", "bounds"),
    [
        ('{ method = "cohen" }', GAUSSIAN, ("naive",)),
        ('{ method = "segcertify", tau = 0.7 }', GAUSSIAN, ("naive",)),
        ('{ method = "centre-smoothing", candidates = 20 }', GAUSSIAN, ("centre",)),
        ('{ method = "sparse-smooth" }', SPARSE, ("naive",)),
        ('{ method = "receptive-fields", receptive_field = 0 }', SPARSE, ("naive", "lp")),
        ('{ method = "receptive-fields", receptive_field = 0 }', GAUSSIAN, ("naive", "lp")),
    ],
)
def test_certify_recertify_report(folder: Path, baseline: str, noise: str, bounds: tuple[str, ...]) -> None:
    (folder / "run.toml").write_text(text_of(baseline, noise))
    invoke("certify", folder / "run.toml", "--out", folder / "run")
    result = load(folder / "run" / "result.nc")
    assert run_info(result).bound_names == bounds
    assert (result["certified"].sel(target="ratio").isel(budget=0).max("bound").values > 0).all()
    assert "aseline" in result.attrs["assumptions"]
    invoke("recertify", folder / "run", "--budgets", "0,0.1,1")
    again = load(folder / "run" / "recertified.nc")
    np.testing.assert_array_equal(again["certified"].values, result["certified"].values)
    assert again.attrs["method"] == "baseline"
    # The same samples serve localized smoothing, here with a single cell.
    (folder / "other.toml").write_text("[certificate]\nalpha = 0.05\nbudgets = [0.0, 0.1, 1.0]\n")
    invoke("recertify", folder / "run", "--config", folder / "other.toml", "--to", folder / "grid.nc")
    assert run_info(load(folder / "grid.nc")).bound_names == ("naive", "lp", "envelope")
    assert load(folder / "grid.nc").attrs["method"] == "baseline (collective)"
    invoke("report", folder / "run", folder / "grid.nc", "--to", folder / "page.html")
    assert "aseline" in (folder / "page.html").read_text()
    with pytest.raises(InvalidInputError, match="bound of its own"):
        invoke("recertify", folder / "run", "--bound", "lp")


def test_another_method_shows_in_the_name(folder: Path) -> None:
    (folder / "run.toml").write_text(text_of('{ method = "cohen" }'))
    invoke("certify", folder / "run.toml", "--out", folder / "run")
    (folder / "other.toml").write_text(
        '[certificate]\nalpha = 0.05\nbudgets = [0.1]\nbaseline = {method="segcertify"}\n'
    )
    invoke("recertify", folder / "run", "--config", folder / "other.toml", "--to", folder / "other.nc")
    assert load(folder / "other.nc").attrs["method"] == "baseline (segcertify)"
    assert recertify(folder / "run", method=SegCertify()).attrs["method"] == "baseline (segcertify)"
    invoke("recertify", folder / "run", "--config", folder / "other.toml", "--name", "Fischer", "--to", folder / "f.nc")
    assert load(folder / "f.nc").attrs["method"] == "Fischer"
    with pytest.raises(InvalidInputError, match="--name"):
        invoke("recertify", folder / "run", "--name", " ")


def section(baseline: str, further: str = "") -> CertificateSection:
    return CertificateSection.model_validate(
        tomllib.loads(f"alpha = 0.1\nbudgets = [0.0]\nbaseline = {baseline}\n{further}")
    )


def test_every_baseline_has_a_name() -> None:
    assert CertificateSection.model_validate({"alpha": 0.1, "budgets": [0.0]}).method() is None
    made = [
        section(text).method()
        for text in (
            '{ method = "cohen" }',
            '{ method = "segcertify", tau = 0.9 }',
            '{ method = "centre-smoothing", delta = 0.1, candidates = 9, share = 0.4 }',
            '{ method = "sparse-smooth", horizon = 7 }',
        )
    ]
    assert made == [Cohen(), SegCertify(0.9), CentreSmoothing(0.1, 9, 0.4), SparseSmooth(7)]
    fields = section('{ method = "receptive-fields", receptive_field = 3, horizon = 7 }').method()
    assert isinstance(fields, ReceptiveFields)
    assert (fields.receptive_field, fields.horizon) == (3, 7)


def test_keys_that_a_baseline_does_not_heed_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"certificate\.bounds"):
        section('{ method = "cohen" }', 'bounds = ["lp"]').method()


def test_faults_are_named(folder: Path) -> None:
    (folder / "run.toml").write_text(text_of('{ method = "cohne" }'))
    with pytest.raises(ConfigurationError, match='"cohne" is not valid'):
        invoke("certify", folder / "run.toml", "--out", folder / "run")
    (folder / "run.toml").write_text(text_of('{ method = "segcertify", taw = 0.7 }'))
    with pytest.raises(ConfigurationError, match='Did you mean "tau"'):
        invoke("certify", folder / "run.toml", "--out", folder / "run")
    (folder / "run.toml").write_text(text_of('{ method = "sparse-smooth" }'))
    with pytest.raises(InvalidInputError, match="Gaussian"):
        invoke("certify", folder / "run.toml", "--out", folder / "run")
