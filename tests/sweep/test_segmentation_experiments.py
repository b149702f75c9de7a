"""The experiments at the paper's scale are valid, and compared at equal cost."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localsmooth.cli.app import app

FOLDER = Path(__file__).parents[2] / "experiments" / "segmentation"


@pytest.mark.parametrize("name", ["voc_strictly_local", "voc_softly_local", "voc_accuracy_curve", "cityscapes"])
def test_experiment_can_be_planned(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.toml"
    shutil.copy(FOLDER / path.name, path)
    content = tomllib.loads(path.read_text())
    for folder in ("models", content["base"]["data"]["root"]):
        (tmp_path / folder).mkdir()
    for method in content["method"]:
        levels = method["together"]
        for least, most in zip(levels["noise.sigma_min"], levels["noise.sigma_max"], strict=True):
            named = method["set"]["model.checkpoint"].replace("{noise.sigma_min}", str(least))
            (tmp_path / named.replace("{noise.sigma_max}", str(most))).touch()
    done = CliRunner().invoke(app, ["sweep", str(path), "--out", str(tmp_path / "out"), "--dry-run"])
    assert done.exit_code == 0, done.output
    assert "to run" in done.output
