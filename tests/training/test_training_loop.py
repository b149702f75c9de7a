"""The loop: it learns, resumes to the last bit, keeps the best weights, and refuses other runs' directories."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.utils.data import TensorDataset

from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout
from localsmooth.noise import Gaussian
from localsmooth.training import (
    AllGroups,
    CrossEntropy,
    Dice,
    GroupNoise,
    Loss,
    OneGroup,
    TrainingOptions,
    TrainingStoreError,
    constant,
    one_cycle,
    train,
)
from tests.seeding import seeded

OPTIONS = TrainingOptions(epochs=3, batch_size=8, learning_rate=0.05, validate_every=2, checkpoint_every=1)


def data(count: int, seed: int) -> TensorDataset:
    """Bright pixels are class 1: noise of σ = .1 leaves them easy to tell."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (count, 4, 4), generator=generator)
    return TensorDataset(labels[:, None].float(), labels)


def network(seed: int = 0) -> nn.Module:
    with seeded(seed):
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Conv2d(4, 2, 1)
        )


@seeded(0)
def pointwise() -> nn.Conv2d:
    return nn.Conv2d(1, 2, 1)


def one_group(low: float = 0.1) -> OneGroup:
    return OneGroup(GroupNoise(GridLayout((2, 2), low, 0.3), Gaussian()))


class KilledError(Exception):
    pass


def weights_of(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("loss", [CrossEntropy(), Dice()])
@pytest.mark.parametrize("kind", [OneGroup, AllGroups])
def test_it_learns(kind: type[OneGroup] | type[AllGroups], loss: Loss) -> None:
    options = TrainingOptions(epochs=12, batch_size=8, learning_rate=0.03, schedule=one_cycle)
    module = pointwise()
    augmentation = kind(GroupNoise(GridLayout((2, 2), 0.1, 0.3), Gaussian()))
    report = train(module, data(64, 0), data(16, 1), augmentation, options, loss=loss)
    assert report.best_miou > 0.98
    assert report.losses[-1] < report.losses[0]
    assert not module.training
    assert [epoch for epoch, _ in report.validations] == list(range(13))


@pytest.mark.parametrize("after", [1, 8, 9, 16, 23])
def test_a_killed_run_ends_with_the_same_weights(tmp_path: Path, after: int) -> None:
    def kill(step: int, steps: int, loss: float, miou: float | None) -> None:
        if step == after:
            raise KilledError

    whole = network()
    expected = train(whole, data(64, 0), data(16, 1), one_group(), OPTIONS, directory=tmp_path / "whole")
    with pytest.raises(KilledError):
        train(network(), data(64, 0), data(16, 1), one_group(), OPTIONS, directory=tmp_path / "cut", progress=kill)
    resumed = network()
    steps: list[int] = []
    with seeded(999):  # nothing may depend on the global stream
        found = train(
            resumed,
            data(64, 0),
            data(16, 1),
            one_group(),
            OPTIONS,
            directory=tmp_path / "cut",
            progress=lambda step, steps_, loss, miou: steps.append(step),
        )
    assert found == expected
    assert steps == list(range(after + 1, 25))
    for name, value in weights_of(whole).items():
        assert torch.equal(value, weights_of(resumed)[name]), name
    for name, value in load_file(tmp_path / "cut" / "best.safetensors").items():
        assert torch.equal(value, weights_of(whole)[name])


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first = network()
    expected = train(first, data(64, 0), data(16, 1), one_group(), OPTIONS, directory=tmp_path)
    again = network()

    def fail(step: int, steps: int, loss: float, miou: float | None) -> None:
        raise AssertionError("a step was taken")

    assert train(again, data(64, 0), data(16, 1), one_group(), OPTIONS, directory=tmp_path, progress=fail) == expected
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


def test_it_never_ends_worse_than_it_began() -> None:
    module = pointwise()
    with torch.no_grad():
        assert module.bias is not None
        module.weight[:, 0, 0, 0] = torch.tensor([-10.0, 10.0])
        module.bias[:] = torch.tensor([5.0, -5.0])
    before = weights_of(module)
    options = TrainingOptions(epochs=1, batch_size=8, learning_rate=1.0)
    images, labels = data(64, 0).tensors
    report = train(module, TensorDataset(images, 1 - labels), data(64, 1), one_group(), options)
    assert report.best_epoch == 0
    assert report.validations[1][1] < report.validations[0][1]
    assert all(torch.equal(value, before[name]) for name, value in weights_of(module).items())


def test_other_settings_are_refused(tmp_path: Path) -> None:
    train(network(), data(64, 0), data(16, 1), one_group(), OPTIONS, directory=tmp_path)
    with pytest.raises(TrainingStoreError, match="layout"):
        train(network(), data(64, 0), data(16, 1), one_group(0.2), OPTIONS, directory=tmp_path)
    with pytest.raises(TrainingStoreError, match="initial weights"):
        train(network(5), data(64, 0), data(16, 1), one_group(), OPTIONS, directory=tmp_path)
    (tmp_path / "training.pt").write_bytes(b"nonsense")
    with pytest.raises(TrainingStoreError, match="training"):
        train(network(), data(64, 0), data(16, 1), one_group(), OPTIONS, directory=tmp_path)


def test_seeds_matter() -> None:
    first, second = network(), network()
    train(first, data(64, 0), data(16, 1), one_group(), OPTIONS)
    train(second, data(64, 0), data(16, 1), one_group(), TrainingOptions(**{**OPTIONS.__dict__, "seed": 1}))
    assert not torch.equal(next(first.parameters()), next(second.parameters()))


def test_what_cannot_be_used_is_refused() -> None:
    for wrong in ({"epochs": 0}, {"learning_rate": 0.0}, {"seed": -1}, {"weight_decay": -1.0}, {"batch_size": 0}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            TrainingOptions(**{"epochs": 1, **wrong})  # pyright: ignore[reportArgumentType]
    empty = TensorDataset(torch.zeros(0, 1, 4, 4), torch.zeros(0, 4, 4, dtype=torch.long))
    with pytest.raises(InvalidInputError, match="training"):
        train(network(), empty, data(4, 0), one_group(), OPTIONS)
    broken = pointwise()
    with torch.no_grad():
        broken.weight.fill_(float("nan"))
    with pytest.raises(InvalidInputError, match="loss"):
        train(broken, data(8, 0), data(4, 0), one_group(), OPTIONS)


def test_schedules() -> None:
    assert constant(0.3) == 1
    values = [one_cycle(share) for share in (0.0, 0.05, 0.1, 0.5, 0.99)]
    assert values[0] == pytest.approx(0.1)
    assert values[2] == pytest.approx(1.0)
    assert values[0] < values[1] < values[2] > values[3] > values[4] > 0
