"""Well-known data sets and networks, named in a configuration."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tests.seeding import seeded
from torch import nn

import localsmooth as ls
from localsmooth.config import parse_configuration
from localsmooth.config.faults import ConfigurationError
from localsmooth.errors import InvalidInputError
from localsmooth.models.segmentation import segmentation_network

REST = """
[layout]
cells = [3, 5]

[noise]
distribution = "gaussian"
sigma_min = 0.15
sigma_max = 1.0

[sampling]
n_candidate = 20
n_bound = 300

[certificate]
alpha = 0.01
budgets = [0.0, 0.1]
"""

CONFIG = """
[model]
kind = "segmentation-models"
architecture = "{architecture}"
classes = 21
checkpoint = "weights.safetensors"

[data]
kind = "pascal-voc"
root = "VOC2012"
items = [0]
"""


class FakeNetwork(nn.Conv2d):
    """Takes what the package's networks take."""

    def __init__(self, encoder: str, *, encoder_weights: None, in_channels: int, classes: int) -> None:
        if encoder != "resnet18":
            raise KeyError(f"Wrong encoder name `{encoder}`")
        super().__init__(in_channels, classes, 1)


@pytest.fixture
def fake_package(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("segmentation_models_pytorch")
    module.Unet = module.DeepLabV3 = FakeNetwork
    monkeypatch.setitem(sys.modules, "segmentation_models_pytorch", module)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "VOC2012"
    for name in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (root / name).mkdir(parents=True)
    Image.fromarray(np.full((70, 90, 3), 128, np.uint8)).save(root / "JPEGImages" / "2007_a.jpg")
    Image.fromarray(np.full((70, 90), 5, np.uint8)).save(root / "SegmentationClass" / "2007_a.png")
    (root / "ImageSets" / "Segmentation" / "val.txt").write_text("2007_a\n")
    return tmp_path


def configure(folder: Path, architecture: str = "unet"):
    return parse_configuration(tomllib.loads(CONFIG.format(architecture=architecture) + REST), folder)


def save_weights(network: nn.Module, folder: Path) -> None:
    save_file(
        {name: value.contiguous() for name, value in network.state_dict().items()}, folder / "weights.safetensors"
    )


@pytest.mark.parametrize("architecture", ["unet", "deeplabv3"])
def test_a_network_and_its_pictures(architecture: str, folder: Path, fake_package: None) -> None:
    with seeded(0):
        save_weights(FakeNetwork("resnet18", encoder_weights=None, in_channels=3, classes=21), folder)
    configuration = configure(folder, architecture)
    items = configuration.data.build()
    assert items.ignore_label == 255
    assert items.items[0].image.shape == (3, 35, 45)
    model = configuration.model.build(configuration.sampling)
    assert model(torch.from_numpy(items.items[0].image)[None]).shape == (1, 21, 35, 45)


BINARY = CONFIG.replace("classes = 21", "classes = 1\nthreshold = {threshold}")


def test_one_channel_of_logits_is_two_classes(folder: Path, fake_package: None) -> None:
    """As networks for one class are: scores of shape batch × 1 × height × width, above 0 where the class is."""
    with seeded(0):
        network = FakeNetwork("resnet18", encoder_weights=None, in_channels=3, classes=1)
    with torch.no_grad():
        network.weight.fill_(1.0)
        torch.nn.init.constant_(network.bias, -1.5)  # pyright: ignore[reportArgumentType]
    save_weights(network, folder)
    with seeded(1):
        batch = torch.rand(2, 3, 35, 45)
    for threshold in (0.0, 0.25):
        text = BINARY.format(architecture="unet", threshold=threshold)
        configuration = parse_configuration(tomllib.loads(text + REST), folder)
        model = configuration.model.build(configuration.sampling)
        assert model.classes == 2
        with torch.inference_mode():
            expected = network(batch)[:, 0] > threshold
        assert 0 < int(expected.sum()) < expected.numel()
        assert torch.equal(model(batch) == 1, expected)
    # A pixel of class 1 is one of the model's predictions, and certified as such.
    grey = np.stack([np.full((3, 4, 5), value, np.float32) for value in (0.5, 0.7)])  # logits 0 and 0.6 against 0.25
    smoothing = ls.Smoothing(ls.GridLayout((1, 1), 0.01, 0.01), ls.SamplingPlan(8, 64))
    made = ls.certify(ls.ArrayTask(model, grey, class_names=["rest", "vessel"]), smoothing, ls.Settings(0.1, [0.0]))
    assert (made["prediction"].values == np.array([0, 1]).reshape(2, 1, 1)).all()


@pytest.mark.parametrize(("classes", "threshold"), [(1, ""), (3, "threshold = 0.0")])
def test_one_channel_and_a_threshold_go_together(classes: int, threshold: str, folder: Path) -> None:
    (folder / "weights.safetensors").write_bytes(b"")
    text = CONFIG.format(architecture="unet").replace("classes = 21", f"classes = {classes}\n{threshold}")
    with pytest.raises(ConfigurationError, match=r"^model: threshold: "):
        parse_configuration(tomllib.loads(text + REST), folder)


def test_wrong_weights_and_encoders_are_named(folder: Path, fake_package: None) -> None:
    with seeded(0):
        save_weights(nn.Linear(2, 2), folder)
    configuration = configure(folder)
    with pytest.raises(ConfigurationError, match="checkpoint"):
        configuration.model.build(configuration.sampling)
    with pytest.raises(InvalidInputError, match="encoder"):
        segmentation_network("unet", encoder="resnet1", classes=2)


def test_the_package_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "segmentation_models_pytorch", None)
    with pytest.raises(InvalidInputError, match=r"localsmooth\[segmentation\]"):
        segmentation_network("unet", classes=2)


def test_the_augmented_split_needs_its_folder(folder: Path) -> None:
    (folder / "weights.safetensors").write_bytes(b"")
    text = CONFIG.format(architecture="unet").replace("items = [0]", 'items = [0]\nsplit = "trainaug"')
    with pytest.raises(ConfigurationError, match="boundaries"):
        parse_configuration(tomllib.loads(text + REST), folder)


@pytest.mark.parametrize("architecture", ["unet", "deeplabv3"])
def test_the_real_networks(architecture: Any, folder: Path) -> None:
    pytest.importorskip("segmentation_models_pytorch", reason="needs localsmooth[segmentation]", exc_type=ImportError)
    with seeded(0):
        save_weights(segmentation_network(architecture, classes=21), folder)
    configuration = configure(folder, architecture)
    image = torch.from_numpy(configuration.data.build().items[0].image)[None]
    scores = configuration.model.build(configuration.sampling)(image)
    assert scores.shape == (1, 21, 35, 45)
    assert torch.isfinite(scores).all()
