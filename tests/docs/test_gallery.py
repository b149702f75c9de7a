"""The gallery: its page names what there is, its files are valid, and three of its pages run in small."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth.cli.app import app
from localsmooth.config import load_configuration
from localsmooth.results import load
from tests.docs.pages import ROOT, page
from tests.seeding import seeded
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
    if data.kind == "tokens":  # read from another file, which is compared when it is planned
        assert data.tokens != calibration.images
    else:
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


class Characters:
    """Stands for the data set of attacut, which numbers characters."""

    def setup_featurizer(self, path: str) -> dict[str, int]:
        assert Path(path).is_dir()
        return {"num_tokens": 91}

    def make_feature(self, text: str) -> tuple[list[str], tuple[torch.Tensor, None]]:
        return list(text), (torch.tensor([[1 + ord(character) % 90 for character in text]]), None)


class Segmenter(nn.Module):
    """Stands for its network, which sees a neighbour on either side."""

    def __init__(self, data_config: dict[str, int], model_config: str) -> None:
        super().__init__()
        assert model_config == "small"
        self.embeddings = nn.Embedding(data_config["num_tokens"], 8, padding_idx=0)
        self.near = nn.Conv1d(8, 1, 3, padding=1)

    def forward(self, inputs: tuple[torch.Tensor, None]) -> torch.Tensor:
        return self.near(self.embeddings(inputs[0]).transpose(1, 2)).view(-1)


@pytest.fixture
def word_boundaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, Segmenter]:
    """The example, with a small network in the place of the package's."""
    with seeded(0):
        network = Segmenter(Characters().setup_featurizer(str(tmp_path)), "small").eval()
    torch.save(network.state_dict(), tmp_path / "model.pth")
    parts: dict[str, dict[str, object]] = {
        "": {},
        ".artifacts": {"get_path": lambda name: {"attacut-c": str(tmp_path)}[name]},
        ".dataloaders": {"CharacterSeqDataset": Characters},
        ".models": {"get_model": {"seq": Segmenter}.__getitem__},
        ".utils": {"load_training_params": lambda path: SimpleNamespace(name="seq", params="small")},
    }
    for name, members in parts.items():
        module = ModuleType(f"attacut{name}")
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, f"attacut{name}", module)
    monkeypatch.syspath_prepend(str(EXAMPLES / "gallery"))
    monkeypatch.delitem(sys.modules, "word_boundaries", raising=False)
    module = importlib.import_module("word_boundaries")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setitem(sys.modules, "word_boundaries", module)  # forgotten afterwards
    return module, network


@torch.no_grad()
def test_characters_are_scored_as_by_the_package(word_boundaries: tuple[ModuleType, Segmenter]) -> None:
    module, network = word_boundaries
    with seeded(0):  # networks draw weights before theirs are read
        tagger, denoised = module.tagger(), module.denoised()
    text = "ตากลม นั่ง"
    scores = tagger(tagger.embed(text)[None])[0]
    torch.testing.assert_close(scores[:, 1] - scores[:, 0], network(Characters().make_feature(text)[1]))
    assert module.beginnings("ตา|กลม| |นั่ง") == [module.FIRST, 0, 1, 0, 0, 1, 1, 0, 0, 0]
    assert [module.shown(character) for character in "ก \u0e31"] == ["ก", "␣", "◌\u0e31"]
    # The denoiser is the posterior mean over the characters, the empty one left out.
    noisy = torch.linspace(-2, 2, 24).view(3, 8)
    table = network.embeddings.weight[1:].double()
    likely = torch.distributions.Normal(table, module.SIGMA).log_prob(noisy[:, None].double()).sum(-1).softmax(-1)
    torch.testing.assert_close(denoised(noisy[None]), tagger((likely @ table).float()[None]))


def test_word_boundaries_are_certified_in_small(word_boundaries: tuple[ModuleType, Segmenter], tmp_path: Path) -> None:
    module, _ = word_boundaries
    with seeded(0):
        module.main()
    small = changed(
        (EXAMPLES / "gallery" / "word_boundaries.toml").read_text("utf-8"),
        ("../../runs/gallery/word_boundaries/", ""),
        ("items = [2, 3, 4, 5]", "items = [2]"),
        ("cells = [16]", "cells = [2]"),
        ("passes = 12000", "passes = 200\nbatch_size = 100"),
        ("split = 0.03", "split = 0.1"),
        ("count = 41", "count = 3"),
        (', "accuracy", "balanced", "class:beginning", "class:inside"]', ', "accuracy"]'),
    )
    (tmp_path / "small.toml").write_text(small, "utf-8")
    with seeded(0):
        assert "certified accuracy" in certified(tmp_path / "small.toml", tmp_path / "run")
    result = load(tmp_path / "run" / "result.nc")
    assert "".join(result["output_name"].values[0]).replace("◌", "").replace("␣", " ") == module.TEXTS[2].replace(
        "|", ""
    )
    counted = result["certified"].sel(bound="envelope", target="ratio").isel(item=0)
    assert int(counted[0]) > 10 * int(counted[-1])
    assert int(result["total"].sel(target="ratio").isel(item=0)) == 97
    assert np.sum(result["label"].values == 1) == 30
