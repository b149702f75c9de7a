"""Denoisers in front of models: one base classifier with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.models.networks import local, pointwise_onnx
from tests.seeding import seeded
from torch import nn

from localsmooth.config import parse_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.models import CallableModel, Denoiser, Model, OnnxModel, Preprocessing, TorchModel, check_model
from localsmooth.testing import ModelContract

SHAPE = (8, 12)
BOUNDS = (0.0, 2.0)


def image() -> np.ndarray:
    return np.random.default_rng(0).random((1, *SHAPE)).astype(np.float32)


class Blur(nn.Module):
    """A mean of neighbours, weaker where it is told less noise."""

    def __init__(self) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.tensor(0.8))

    def forward(self, batch: torch.Tensor, levels: torch.Tensor | None = None) -> torch.Tensor:
        share = self.strength if levels is None else self.strength * levels.clamp(max=1.0)
        blurred = nn.functional.avg_pool2d(batch, 3, 1, 1, count_include_pad=False)
        return share * blurred + (1 - share) * batch


def told(**options: object) -> TorchModel:
    denoiser = Denoiser(Blur().eval(), told=True)
    return TorchModel(local(channels=1), bounds=BOUNDS, classes=3, denoiser=denoiser, **options)  # type: ignore[arg-type]


class TestTold(ModelContract):
    def make(self) -> Model:
        return told()

    def item(self) -> np.ndarray:
        return image()


class TestBothTold(ModelContract):
    def make(self) -> Model:
        options = {"bounds": BOUNDS, "classes": 3, "told": True, "preprocessing": Preprocessing(pad_multiple=5)}
        return TorchModel(local(channels=2), denoiser=Denoiser(Blur().eval(), told=True), **options)  # type: ignore[arg-type]

    def item(self) -> np.ndarray:
        return image()


class TestNotTold(ModelContract):
    def make(self) -> Model:
        return TorchModel(local(channels=1), bounds=BOUNDS, classes=3, denoiser=Blur().eval())

    def item(self) -> np.ndarray:
        return image()


def halved(batch: torch.Tensor) -> torch.Tensor:
    return batch / 2


@pytest.mark.parametrize("kind", ["torch", "onnx", "callable"])
def test_every_kind_of_model_sees_what_the_denoiser_makes(tmp_path: Path, kind: str) -> None:
    """Before the normalisation, in the units of the items."""
    preprocessing = Preprocessing(0.25, 0.5)

    def made(denoiser: Callable[[torch.Tensor], torch.Tensor] | None) -> Model:
        more = {"bounds": BOUNDS, "classes": 3, "preprocessing": preprocessing, "denoiser": denoiser}
        if kind == "torch":
            return TorchModel(local(channels=1), **more)  # type: ignore[arg-type]
        if kind == "onnx":
            rng = np.random.default_rng(0)
            pointwise_onnx(
                tmp_path / "m.onnx", rng.normal(size=(3, 1, 1, 1)), rng.normal(size=3), shape=(None, 1, *SHAPE)
            )
            return OnnxModel(tmp_path / "m.onnx", **more)  # type: ignore[arg-type]
        return CallableModel(lambda x: np.concatenate([x, -x, x**2], axis=1), name="f", **more)  # type: ignore[arg-type]

    batch = torch.from_numpy(image())[None]
    assert torch.equal(made(halved)(batch), made(None)(batch / 2))
    learned = Blur().eval()
    torch.testing.assert_close(made(learned)(batch), made(None)(learned(batch).detach()))
    assert not torch.equal(made(learned)(batch), made(None)(batch))
    assert len({made(each).fingerprint() for each in (None, halved, learned, torch.sigmoid)}) == 4


def test_levels_are_those_of_every_element() -> None:
    seen: list[torch.Tensor] = []

    def noting(batch: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
        seen.append(levels)
        return batch

    model = TorchModel(local(channels=1), bounds=BOUNDS, classes=3, denoiser=Denoiser(noting, told=True))
    levels = np.random.default_rng(1).random(SHAPE)
    levels[0, 0] = np.inf
    model.under(levels)(torch.from_numpy(image())[None])
    model.under(0.0)(torch.from_numpy(image())[None])
    np.testing.assert_array_equal(seen[0][0, 0].numpy(), levels.astype(np.float32))
    assert seen[1].shape == (1, 1, *SHAPE)
    assert not seen[1].any()


def test_what_changes_predictions_changes_the_fingerprint() -> None:
    models = [told() for _ in range(3)]
    plain = TorchModel(local(channels=1), bounds=BOUNDS, classes=3, denoiser=Blur().eval())
    assert models[0].fingerprint() == models[1].fingerprint() != plain.fingerprint()
    module = models[2]._denoiser.function  # type: ignore[union-attr]
    with torch.no_grad():
        module.strength += 0.1  # type: ignore[union-attr]
    assert models[2].fingerprint() != models[0].fingerprint()
    assert models[0].concurrent
    assert told(precision=torch.bfloat16).evaluated_in == "bfloat16"
    assert (
        TorchModel(local(channels=1), bounds=BOUNDS, classes=3, denoiser=Blur().half().eval()).evaluated_in == "float16"
    )


class Mixing(nn.Module):
    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return batch - batch.mean(dim=0, keepdim=True)


def test_denoisers_that_are_no_fixed_function_are_refused() -> None:
    def model(denoiser: object) -> TorchModel:
        return TorchModel(local(channels=1), bounds=BOUNDS, classes=3, denoiser=denoiser)  # type: ignore[arg-type]

    module = nn.Sequential(nn.Dropout()).eval()
    module[0].train()
    with pytest.raises(InvalidInputError, match=r"denoiser: its part 0 .* is in training mode"):
        model(module)
    later = Blur().eval()
    made = model(later)
    later.train()
    with pytest.raises(InvalidInputError, match="training mode"):
        made(torch.from_numpy(image())[None])
    with pytest.raises(InvalidInputError, match="the other samples in its batch"):
        check_model(model(Mixing().eval()), image())
    with seeded(0), pytest.raises(InvalidInputError, match="two calls on the same batch differ"):
        check_model(model(lambda batch: batch + torch.randn(batch.shape)), image())
    with pytest.raises(InvalidInputError, match=r"denoiser: it returned \(1, 1, 4, 6\)"):
        model(lambda batch: batch[..., ::2, ::2])(torch.from_numpy(image())[None])
    with pytest.raises(InvalidInputError, match="without any levels"):
        told()(torch.from_numpy(image())[None])


def blur() -> nn.Module:
    return Blur()


def network() -> nn.Module:
    return local(channels=1)


def test_files_name_a_denoiser() -> None:
    here = __name__
    values = {
        "model": {"kind": "torch", "factory": f"{here}:network", "classes": 3, "bounds": list(BOUNDS)},
        "data": {"kind": "digit-scenes"},
        "layout": {"cells": [2, 2]},
        "noise": {"distribution": "gaussian", "sigma_min": 0.1, "sigma_max": 0.3},
        "sampling": {"n_candidate": 4, "n_bound": 8},
        "certificate": {"alpha": 0.5, "budgets": [0.0]},
    }
    values["model"]["denoiser"] = {"factory": f"{here}:blur", "told": True}  # type: ignore[index]
    made = parse_configuration(values)
    model = made.model.build(made.sampling)
    assert model.fingerprint() == told().fingerprint()
    values["model"]["denoiser"] = {"factory": f"{here}:SHAPE"}  # type: ignore[index]
    made = parse_configuration(values)
    with pytest.raises(ValueError, match=r"model\.denoiser\.factory"):
        made.model.build(made.sampling)
