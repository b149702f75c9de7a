"""The network: folding, independence within a batch, a sound checkpoint that segments noisy test scenes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.metrics import jaccard_score
from tests.seeding import seeded
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.scenes import CHECKPOINT, CLASS_NAMES, DigitScenes, Split, UNet, load_unet

SIGMA_MIN = 0.35


@pytest.fixture(scope="module")
def network() -> nn.Module:
    return load_unet()


def test_checkpoint_is_small_and_ready_for_use(network: nn.Module) -> None:
    assert CHECKPOINT.stat().st_size < 600_000
    assert not any(module.training for module in network.modules())
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert sum(parameter.numel() for parameter in network.parameters()) <= 150_000
    assert network(torch.zeros(2, 1, 64, 96)).shape == (2, len(CLASS_NAMES), 64, 96)


def _mean_iou(predicted: torch.Tensor, labels: np.ndarray) -> float:
    return float(jaccard_score(labels.ravel(), predicted.numpy().ravel(), average="macro"))


def test_segments_held_out_scenes_with_and_without_noise(network: nn.Module) -> None:
    images, labels = DigitScenes(Split.TEST, seed=1).stack(range(24))
    clean = torch.from_numpy(images)
    generator = torch.Generator().manual_seed(0)
    votes = torch.zeros(len(clean), len(CLASS_NAMES), *clean.shape[2:])
    with torch.inference_mode():
        clean_iou = _mean_iou(network(clean).argmax(dim=1), labels)
        for _ in range(12):
            noisy = clean + SIGMA_MIN * torch.randn(clean.shape, generator=generator)
            votes.scatter_add_(1, network(noisy).argmax(dim=1, keepdim=True), torch.ones(1).expand(votes[:, :1].shape))
    smoothed_iou = _mean_iou(votes.argmax(dim=1), labels)
    assert smoothed_iou > 0.8
    assert clean_iou > smoothed_iou


def test_output_of_a_sample_does_not_depend_on_the_rest_of_its_batch(network: nn.Module) -> None:
    generator = torch.Generator().manual_seed(0)
    batch = torch.rand(8, 1, 64, 96, generator=generator)
    other = batch.clone()
    other[1:] = 50.0 * torch.randn(7, 1, 64, 96, generator=generator)
    with torch.inference_mode():
        torch.testing.assert_close(network(batch)[0], network(other)[0], rtol=0, atol=0)
        torch.testing.assert_close(network(batch)[0], network(batch[:1])[0], rtol=1e-4, atol=1e-4)


@seeded(0)
def test_folding_batch_norm_keeps_the_function() -> None:
    trained = UNet(width=4, batch_norm=True).train()
    for _ in range(3):  # move the running statistics away from their start
        trained(2.0 + 3.0 * torch.randn(4, 1, 16, 24))
    for parameter in trained.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    fused = trained.fused()
    assert trained.training
    assert not any(isinstance(module, nn.BatchNorm2d) for module in fused.modules())
    images = torch.randn(2, 1, 16, 24)
    with torch.inference_mode():
        expected = trained.eval()(images)
        torch.testing.assert_close(fused(images), expected, rtol=1e-4, atol=1e-4)
        assert expected.std() > 0.1  # two constant networks would agree too
    assert fused.state_dict().keys() == UNet(width=4).state_dict().keys()


@seeded(0)
def test_width_sets_the_number_of_parameters() -> None:
    small, large = (sum(parameter.numel() for parameter in UNet(width=width).parameters()) for width in (16, 72))
    assert 19 <= large / small <= 21
    with torch.inference_mode():
        assert UNet(width=8, classes=3)(torch.zeros(1, 1, 192, 256)).shape == (1, 3, 192, 256)


@pytest.mark.parametrize("shape", [(1, 3, 64, 96), (1, 1, 60, 96), (1, 1, 64, 90)])
def test_wrong_image_shapes_are_refused(network: nn.Module, shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"images.*multiples of 8"):
        network(torch.zeros(shape))


@pytest.mark.parametrize(("width", "classes"), [(0, 11), (16, 0)])
def test_empty_networks_are_refused(width: int, classes: int) -> None:
    with pytest.raises(InvalidInputError, match="not positive"):
        UNet(width=width, classes=classes)


class TestBadCheckpoint:
    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match=r"checkpoint.*cannot be read"):
            load_unet(tmp_path / "none.safetensors")

    def test_truncated(self, tmp_path: Path) -> None:
        path = tmp_path / "cut.safetensors"
        path.write_bytes(CHECKPOINT.read_bytes()[:-1000])
        with pytest.raises(InvalidInputError, match=r"checkpoint.*cannot be read"):
            load_unet(path)

    def test_not_safetensors(self, tmp_path: Path) -> None:
        path = tmp_path / "text.safetensors"
        path.write_text("these are not weights")
        with pytest.raises(InvalidInputError, match=r"checkpoint.*cannot be read"):
            load_unet(path)

    @pytest.mark.parametrize("fault", ["shape", "missing", "unknown"])
    def test_other_tensors(self, tmp_path: Path, fault: str) -> None:
        weights = load_file(CHECKPOINT)
        if fault == "shape":
            weights["head.bias"] = weights["head.bias"][:-4].clone()
        elif fault == "missing":
            del weights["head.bias"]
        else:
            weights["head.extra"] = torch.zeros(1)
        save_file(weights, tmp_path / "other.safetensors")
        with pytest.raises(InvalidInputError, match=r"does not fit the network: head\."):
            load_unet(tmp_path / "other.safetensors")

    def test_not_finite(self, tmp_path: Path) -> None:
        weights = load_file(CHECKPOINT)
        weights["head.bias"][0] = torch.nan
        save_file(weights, tmp_path / "nan.safetensors")
        with pytest.raises(InvalidInputError, match="not finite"):
            load_unet(tmp_path / "nan.safetensors")
