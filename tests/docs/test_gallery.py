"""The gallery: its page names what there is, its files are valid, and two of its models run in small."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import save_file
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth.cli.app import app
from localsmooth.config import load_configuration
from localsmooth.results import load
from tests.docs.pages import ROOT, page
from tests.tiny_runs import changed

PAGE = page("docs/gallery.md")
EXAMPLES = ROOT / "examples"
FILES = sorted((EXAMPLES / "gallery").glob("*.toml"))


def example(name: str) -> ModuleType:
    """A module of the gallery."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / "gallery" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def certified(file: Path, out: Path) -> str:
    """What the terminal shows of a run."""
    done = CliRunner().invoke(app, ["certify", str(file), "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_every_example_is_shown_and_every_picture_is_small() -> None:
    shown = set(re.findall(r"examples/gallery/\w+\.\w+", PAGE))
    assert shown == {str(path.relative_to(ROOT)) for path in (EXAMPLES / "gallery").glob("*.*")}
    pictures = re.findall(r"!\[.+\]\((images/gallery_\w+\.png)\)", PAGE)
    assert sorted(f"docs/{each}" for each in pictures) == sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "images").glob("gallery_*.png")
    )
    assert all((ROOT / "docs" / each).stat().st_size <= 60_000 for each in pictures)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_is_valid_and_keeps_calibration_apart(file: Path, tmp_path: Path) -> None:
    """With something in the place of each file that its script makes."""
    copied = tmp_path / "examples" / "gallery" / file.name
    copied.parent.mkdir(parents=True)
    for name in (file, file.with_suffix(".py")):
        shutil.copy(name, copied.parent)
    for made in re.findall(r'"(\.\./\.\./runs/[^"]+)"', file.read_text(encoding="utf-8")):
        path = (copied.parent / made).resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch() if path.suffix else path.mkdir(exist_ok=True)
    values = load_configuration(copied)
    data, calibration = values.data, values.calibration
    assert calibration is not None
    assert data.images != calibration.images or not set(data.items) & set(calibration.items)


def test_the_text_detector_is_certified_in_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("skimage", reason="needs localsmooth[examples]")
    pytest.importorskip("onnxruntime", reason="needs localsmooth[onnx]")
    if find_spec("rapidocr_onnxruntime") is None:
        pytest.skip("rapidocr-onnxruntime is not installed")
    module = example("text_detection")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    module.main()
    for path in tmp_path.glob("*/*.png"):
        if path.stem == "photograph":
            path.unlink()
        else:
            Image.open(path).crop((0, 0, 96, 64)).save(path)
    small = changed(
        (EXAMPLES / "gallery" / "text_detection.toml").read_text("utf-8"),
        ("../../runs/gallery/text_detection/", ""),
        ("cells = [2, 4]", "cells = [1, 2]"),
        ("n_candidate = 16", "n_candidate = 4"),
        ("n_bound = 200", "n_bound = 48\nbatch_size = 4"),  # without timing
        ('budgets = "auto"', "budgets = [0.0, 0.02]"),
    )
    (tmp_path / "small.toml").write_text(small, "utf-8")
    certified(tmp_path / "small.toml", tmp_path / "run")
    result = load(tmp_path / "run" / "result.nc")
    found = result["clean"].values.reshape(64, 96)
    assert 0.05 < found.mean() < 0.5
    kept = (result["certified"] / result["total"]).sel(bound="envelope").isel(item=0)
    assert 0 < float(kept.sel(target="foreground", budget=0.02)) <= float(kept.sel(target="foreground", budget=0)) < 1
    assert float(kept.sel(target="ratio", budget=0.02)) > 0.5


def test_the_tagger_is_certified_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "examples/token_tagger.toml" in PAGE
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "token_tagger", raising=False)
    module = importlib.import_module("token_tagger")
    words, tags = module.sentence(np.random.default_rng(0))
    tokens = module.embedded([words])
    layout = module.WindowLayout(windows=4, minimum=0.2, maximum=1.0)
    network = module.trained(layout, 40)
    # What the script leaves behind.
    save_file(network.state_dict(), tmp_path / "localized.safetensors")
    np.savez(tmp_path / "tokens.npz", tokens=tokens, labels=np.array([tags]))
    (tmp_path / "words.txt").write_text(" ".join(words), "utf-8")
    text = changed(
        (EXAMPLES / "token_tagger.toml").read_text("utf-8"),
        ("../runs/tokens/", ""),
        ("n_candidate = 100", "n_candidate = 20\nbatch_size = 100"),
        ("n_bound = 3000", "n_bound = 200"),
        ("count = 41", "count = 3"),
    )
    (tmp_path / "small.toml").write_text(text, "utf-8")
    assert "certified accuracy" in certified(tmp_path / "small.toml", tmp_path / "file")
    result = load(tmp_path / "file" / "result.nc")
    share = (result["certified"] / result["total"]).sel(target="accuracy", bound="envelope").isel(item=0)
    assert float(share[0]) > 0.5
    assert 0 <= float(share.sel(budget=0.5)) < float(share[0])
    # The file and Python prove the same of the same network, tokens and seed.
    task = module.TokenTask(
        module.EmbeddedTagger(network, classes=len(module.TAGS)), list(tokens), [np.array(tags)], [words]
    )
    settings = ls.Settings(alpha=0.01, budgets=np.linspace(0, 1, 3))
    same = ls.certify(task, ls.Smoothing(layout, ls.SamplingPlan(20, 200)), settings)
    np.testing.assert_array_equal(result["votes"].values, same["votes"].values)
    np.testing.assert_array_equal(result["certified"].values, same["certified"].values)
