"""The files of README and manual work with every command, with fewer samples and small pictures."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.seeding import seeded
from tests.tiny_runs import changed
from torch import nn
from typer.testing import CliRunner

from localsmooth.cli.app import app
from localsmooth.config import parse_configuration
from localsmooth.results import load

ROOT = Path(__file__).parents[2]
SIZE = (12, 15)


def block(page: str, start: str) -> str:
    """The one TOML file of a page that begins so."""
    found = re.findall(r"```toml\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    (text,) = [text for text in found if text.startswith(start)]
    return text


FILE = block("README.md", "[model]") + block("docs/comparing.md", "[calibration]")
"""The file of the first page, with the section that `localsmooth locality` adds."""


def reduced(text: str) -> str:
    return changed(
        text,
        ("n_candidate = 128", "n_candidate = 8"),
        ("n_bound = 10240", "n_bound = 64"),
        ('budgets = "auto"', "budgets = { stop = 4.0, count = 9 }"),
        ("cells = [3, 5]", "cells = [1, 2]"),
        ("items = [0, 1, 2, 3] ", "items = [0, 1] "),
        ("items = [4, 5, 6, 7]", "items = [4]"),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    made = tmp_path_factory.mktemp("readme")
    generator = np.random.default_rng(0)
    for name in ("pictures", "masks"):
        (made / name).mkdir()
    for number in range(8):
        colors = generator.integers(0, 256, (*SIZE, 3), dtype=np.uint8)
        Image.fromarray(colors).save(made / "pictures" / f"{number}.png")
        mask = (colors[..., 0] > 127).astype(np.uint8)
        mask[0, 0] = 255
        Image.fromarray(mask).save(made / "masks" / f"{number}.png")
    with seeded(0):
        network = nn.Conv2d(3, 2, 1).eval()
    with torch.no_grad():
        network.weight.zero_()[:, 0, 0, 0] = torch.tensor([-1.0, 1.0])
        network.bias.copy_(torch.tensor([0.5, -0.5]))
    sizes = {0: "batch", 2: "height", 3: "width"}
    with seeded(0):
        torch.onnx.export(
            network,
            (torch.rand(1, 3, *SIZE),),
            str(made / "segmenter.onnx"),
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": sizes, "y": sizes},
            dynamo=False,
        )
    (made / "run.toml").write_text(reduced(FILE))
    return made


def invoke(*arguments: object) -> str:
    with seeded(0):  # what is imported for the first time may draw from the global generators
        done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_file_is_certified_shown_and_certified_again(folder: Path) -> None:
    invoke("certify", folder / "run.toml", "--out", folder / "run")
    result = load(folder / "run" / "result.nc")
    assert result["item"].values.tolist() == ["0", "1"]
    assert result.sel(budget=0.5).sizes["item"] == 2
    invoke("report", folder / "run")
    assert (folder / "run" / "report.html").stat().st_size > 10_000
    invoke("recertify", folder / "run", "--alpha", "0.001", "--budgets", "0:2:41")
    assert load(folder / "run" / "recertified.nc").attrs["alpha"] == 0.001
    assert "gaussian" in invoke("runs", folder)


def test_its_locality_is_measured_and_its_noise_is_tuned(folder: Path) -> None:
    invoke("locality", folder / "run.toml", "--out", folder / "locality")
    with (folder / "run.toml").open("a") as file:
        file.write("\n[tune]\ncount = 2\nratios = [2.0]\ndraws = 1\n")
    measured = folder / "locality" / "measurement.npz"
    invoke("tune", folder / "run.toml", "--floor", "mean_iou=0.2", "--locality", measured)
    invoke("certify", folder / "run-tuned.toml", "--out", folder / "tuned")


def test_it_is_the_base_of_the_manuals_sweep(folder: Path) -> None:
    text = reduced(FILE)
    base = re.sub(r"^\[(\w+)\]", r"[base.\1]", text, flags=re.MULTILINE)
    sweep = block("docs/comparing.md", "title =")
    model, rest = sweep.index("[base.model]"), sweep.index("[[method]]")
    whole = sweep[:model] + base + sweep[rest:]
    given, meant = tomllib.loads(sweep)["base"]["model"], tomllib.loads(text)["model"]
    assert {**meant, **given} == meant
    smaller = changed(
        whole,
        ('"noise.sigma_min" = [0.1, 0.2], "noise.sigma_max" = [0.8, 1.0]', '"noise.sigma_min" = [0.2]'),
        ("= [0.1, 0.2, 0.4]", "= [0.2]"),
    )
    (folder / "sweep.toml").write_text(whole)
    assert "7" in invoke("sweep", folder / "sweep.toml", "--out", folder / "sweep", "--dry-run")
    (folder / "sweep.toml").write_text(smaller)
    invoke("sweep", folder / "sweep.toml", "--out", folder / "sweep", "--jobs", "0")
    assert (folder / "sweep" / "report.html").is_file()


def test_the_problem_is_solved(tmp_path: Path) -> None:
    found = re.search(r"echo '(.*)' > problem\.json", (ROOT / "docs" / "solving.md").read_text("utf-8"))
    assert found is not None
    (tmp_path / "problem.json").write_text(found.group(1))
    invoke("solve", tmp_path / "problem.json", "--bound", "exact", "--verify")


def test_file_of_perturbed_edges_is_a_valid_configuration(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    path.touch()
    text = changed(block("docs/recipes.md", "[edges]"), ("graph.npz", path.as_posix()))
    made: Any = parse_configuration(tomllib.loads(text))
    assert made.edges.clusters == 1
    assert made.noise.distribution == "sparse-flips"
