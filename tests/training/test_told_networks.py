"""Networks that are told the noise: widened from others, and trained for many layouts at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout
from localsmooth.models import TorchModel, encoded_levels
from localsmooth.noise import Gaussian
from localsmooth.sampling import ArraySubject, Region
from localsmooth.scenes import load_unet
from localsmooth.training import (
    IGNORED,
    AllGroups,
    CrossEntropy,
    GroupNoise,
    OneGroup,
    RandomGrids,
    TrainingOptions,
    TrainingStoreError,
    VariedLayouts,
    train,
    widened,
)
from tests.seeding import seeded

SHAPE = (6, 8)
BOUNDS = (0.0, 1.0)


def small(channels: int = 1) -> nn.Module:
    with seeded(2):
        return nn.Sequential(nn.Conv2d(channels, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 1))


def batch(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(count, 1, *SHAPE, generator=generator), torch.randint(3, (count, *SHAPE), generator=generator)


def test_a_widened_network_starts_from_the_given_one() -> None:
    """Exactly as long as its new weights are zero: it is told nothing that changes a prediction."""
    network = load_unet()
    made = widened(network, 1)
    images = torch.rand(2, 1, 64, 96, generator=torch.Generator().manual_seed(0))
    told = torch.cat([images, torch.full_like(images, 3.0)], dim=1)
    with torch.inference_mode():
        torch.testing.assert_close(made(told), network(images), rtol=1e-5, atol=1e-5)
        with pytest.raises(InvalidInputError, match="images"):
            network(told)
    given, wider = dict(network.named_parameters()), dict(made.named_parameters())
    assert given.keys() == wider.keys()
    assert sum(p.numel() for p in wider.values()) - sum(p.numel() for p in given.values()) == 4 * 9 * 16


@pytest.mark.parametrize(
    ("network", "channels", "first", "message"),
    [
        (nn.Linear(2, 2), 1, None, "has none"),
        (small(), 1, "1", "'0', '2'"),
        (small(3), 2, None, "inputs have 2"),
        (small(3), 0, None, "inputs have 0"),
        (nn.Conv2d(2, 2, 1, groups=2), 2, None, "2 groups"),
    ],
)
def test_what_cannot_be_widened_is_refused(network: nn.Module, channels: int, first: str | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        widened(network, channels, first=first)


def test_the_first_convolution_may_be_named() -> None:
    network = nn.Sequential(small(5), small())
    made = widened(network, 1, first="1.0")
    assert made[1][0].in_channels == 2
    assert made[0][0].in_channels == 5


@pytest.mark.parametrize("margin", [None, 1])
def test_training_and_sampling_tell_a_group_the_same(margin: int | None) -> None:
    """The inputs of the network, noise and channel, are those of the certified model."""
    layout = GridLayout((2, 2), 0.2, 0.9, window_margin=margin)
    noise = GroupNoise(layout, Gaussian(), bounds=BOUNDS, told=True)
    images, labels = batch(1)
    made = layout.layout((1, *SHAPE), SHAPE)
    for group, region in enumerate(noise.regions(images, labels)):
        subject_stream = noise.stream(7, 0, group, images.device)
        inputs = noise.draw(images, region, noise.stream(7, 0, group, images.device))
        seen: list[torch.Tensor] = []
        watcher = nn.Sequential(small(2))
        watcher.register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given[0].clone()))
        model = TorchModel(watcher.eval(), bounds=BOUNDS, classes=3, told=True)
        prepared = ArraySubject(model, [images[0]], [made], Gaussian(), 0).prepare(0, group)
        prepared.predict(prepared.draw(1, subject_stream))
        torch.testing.assert_close(seen[0], inputs, rtol=0, atol=0)
        expected = encoded_levels(Region.of(made, group).level_map, BOUNDS)
        np.testing.assert_array_equal(inputs[0, 1].numpy(), expected)


def test_one_group_and_all_groups_hand_the_channel_over() -> None:
    noise = GroupNoise(GridLayout((2, 2), 0.2, 0.9), Gaussian(), bounds=BOUNDS, told=True)
    images, labels = batch(5)
    made = OneGroup(noise)(images, labels, 0)
    assert made.inputs.shape == (5, 2, *SHAPE)
    for sample, group in enumerate(made.groups):
        expected = encoded_levels(noise.regions(images, labels)[group].level_map, BOUNDS)
        np.testing.assert_array_equal(made.inputs[sample, 1].numpy(), expected)
    for augmentation in (OneGroup(noise), AllGroups(noise)):
        assert torch.isfinite(augmentation.loss(small(2), images, labels, CrossEntropy(), 0))


def test_random_grids_stay_in_their_range_and_differ() -> None:
    draw, generator = RandomGrids((2, 3), 0.1, 1.0, isotropic=0.3, windows=0.5, align=2), np.random.default_rng(0)
    made = [draw(generator) for _ in range(200)]
    assert {one.cells for one in made} == {(a, b) for a in (1, 2) for b in (1, 2, 3)}
    assert any(one.window_margin is None for one in made)
    assert any(one.window_margin is not None for one in made)
    for one in made:
        layout = one.layout((1, *SHAPE), SHAPE)
        assert layout.outputs.count == np.prod(one.cells)
        seen = layout.levels[np.isfinite(layout.levels)]
        assert seen.min() >= 0.1 - 1e-12
        assert seen.max() <= 1.0 + 1e-12


@pytest.mark.parametrize("wrong", [{"smallest": 0.0}, {"isotropic": 1.5}, {"cells": ()}, {"align": 0}])
def test_random_grids_refuse_what_is_out_of_range(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        RandomGrids(**{"cells": (2, 2), "smallest": 0.1, "largest": 1.0, **wrong})  # type: ignore[arg-type]


def test_varied_layouts_give_each_part_a_layout_and_repeat_their_draws() -> None:
    """The loss is that of its parts, each under the layout that it drew; the next step has others."""
    drawn: list[GridLayout] = []
    grids = RandomGrids((2, 2), 0.1, 1.0, windows=0.5)

    def draw(generator: np.random.Generator) -> GridLayout:
        drawn.append(grids(generator))
        return drawn[-1]

    noise = GroupNoise(GridLayout((1, 1), 0.3, 0.3), Gaussian(), bounds=BOUNDS, told=True)
    augmentation, (images, labels) = VariedLayouts(noise, draw, parts=3), batch(7)
    network = small(2)
    made = augmentation.loss(network, images, labels, CrossEntropy(), 5)
    expected = 0.0
    for part, layout in enumerate(drawn):
        own = OneGroup(GroupNoise(layout, Gaussian(), bounds=BOUNDS, told=True))
        one = own(images[part::3], labels[part::3], 15 + part)
        loss = functional.cross_entropy(network(one.inputs), one.labels, ignore_index=IGNORED)
        expected += float(loss.detach()) * len(images[part::3]) / 7
    assert float(made.detach()) == pytest.approx(expected, rel=1e-5)
    assert len(drawn) == 3
    again = augmentation.loss(network, images, labels, CrossEntropy(), 5)
    assert torch.equal(again, made)
    assert not torch.equal(augmentation.loss(network, images, labels, CrossEntropy(), 6), made)


def test_the_loop_trains_a_told_network_and_tells_runs_apart(tmp_path: Path) -> None:
    images, labels = batch(12)
    data = TensorDataset(images, labels)
    noise = GroupNoise(GridLayout((2, 2), 0.2, 0.9), Gaussian(), bounds=BOUNDS, told=True)
    network = widened(small(), 1)
    before = network[0].weight.detach().clone()
    options = TrainingOptions(epochs=2, batch_size=6, learning_rate=1e-2)
    draw = RandomGrids((2, 2), 0.1, 1.0)
    report = train(network, data, data, VariedLayouts(noise, draw), options, directory=tmp_path)
    assert len(report.validations) == 3
    if report.best_epoch:
        assert not torch.equal(network[0].weight[:, 1], before[:, 1])
    other = VariedLayouts(noise, RandomGrids((2, 2), 0.1, 0.9))
    with pytest.raises(TrainingStoreError, match="augmentation"):
        train(widened(small(), 1), data, data, other, options, directory=tmp_path)
