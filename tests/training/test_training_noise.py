"""The noise of training is the noise of the certificate, and only the drawn group's outputs enter the loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch.nn import functional

from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout, Layout, Partition, grid_layout, masked
from localsmooth.noise import Bernoulli, Gaussian, Noise, Randomness, SparseFlips, Uniform
from localsmooth.sampling.region import Region
from localsmooth.testing.chance import assert_binomial, likely
from localsmooth.training import IGNORED, AllGroups, CrossEntropy, Dice, GroupNoise, OneGroup
from tests.seeding import seeded

SHAPE = (6, 8)


def layout(**options: object) -> Layout:
    return grid_layout((2, 2), SHAPE, minimum=0.2, maximum=0.9, **options)  # pyright: ignore[reportArgumentType]


class Pointwise(nn.Module):
    """Scores of every pixel from that pixel alone."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        with seeded(1):
            self.convolution = nn.Conv2d(1, classes, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.convolution(images)


def batch(count: int, seed: int = 0, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 1, *SHAPE, generator=generator)
    return images, torch.randint(classes, (count, *SHAPE), generator=generator)


@pytest.mark.parametrize(
    ("noise", "low", "high"),
    [
        (Gaussian(), 0.2, 0.9),
        (Gaussian(clamp=True), 0.2, 0.9),
        (Uniform(), 0.2, 0.9),
        (Bernoulli(), 0.1, 0.4),
        (SparseFlips(), (0.05, 0.2), (0.3, 0.5)),
    ],
)
@pytest.mark.parametrize("margin", [None, 0])
def test_draws_are_the_samplers_own_draws(noise: Noise, low: float, high: float, margin: int | None) -> None:
    made = GridLayout((2, 2), low, high, window_margin=margin).layout((1, *SHAPE), SHAPE)
    image = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(3)).round()
    for group in range(4):
        region = Region.of(made, group)
        crop = region.of_item(image).contiguous()
        expected = torch.empty((1, *crop.shape))
        noise.prepare(crop, region.level_map, (0.0, 1.0), 0.5).draw(expected, Randomness(7, (1, group)))
        drawn = GroupNoise(made, noise, bounds=(0.0, 1.0)).draw(image[None], region, Randomness(7, (1, group)))
        assert torch.equal(drawn, expected)


def test_noise_of_a_drawn_group_has_the_levels_of_its_row() -> None:
    made = layout()
    augmentation = OneGroup(GroupNoise(made, Gaussian(), seed=1))
    images, labels = batch(4000)
    noisy = augmentation(images, labels, 0)
    for group in range(4):
        chosen = torch.as_tensor(noisy.groups == group)
        residual = (noisy.inputs - images)[chosen].numpy() / made.level_map(group)
        assert likely(stats.kstest(residual.ravel(), "norm").pvalue)
        # A wrong level would show in its own cell as well as in the pool.
        for cell in range(4):
            assert likely(stats.kstest(residual[:, 0, made.inputs.mask(cell)].ravel(), "norm").pvalue)


def test_training_and_certification_noise_cannot_be_told_apart() -> None:
    """Two samples of one pixel, drawn by training and by the sampler with other seeds (Kolmogorov and Smirnov)."""
    made = layout()
    images, labels = batch(3000)
    images[:] = images[0]
    noisy = OneGroup(GroupNoise(made, Gaussian(clamp=True), bounds=(0.0, 1.0)))(images, labels, 3)
    for group in range(4):
        trained = noisy.inputs[torch.as_tensor(noisy.groups == group)]
        region = Region.of(made, group)
        sampled = torch.empty((2000, 1, *SHAPE))
        Gaussian(clamp=True).prepare(images[0], region.level_map, (0.0, 1.0), 0.5).draw(sampled, Randomness(5, (9,)))
        for place in ((0, 0), (5, 7), (2, 5)):
            found = stats.ks_2samp(trained[:, 0, *place].numpy(), sampled[:, 0, *place].numpy())
            assert likely(found.pvalue)
        shifted = stats.ks_2samp(trained[:, 0, 0, 0].numpy(), sampled[:, 0, 0, 0].numpy() + 0.1)
        assert not likely(shifted.pvalue)  # the test can fail


def test_groups_are_drawn_equally_often_and_afresh() -> None:
    augmentation = OneGroup(GroupNoise(layout(), Gaussian()))
    images, labels = batch(64)
    draws = [augmentation(images, labels, step) for step in range(40)]
    counts = np.bincount(np.concatenate([one.groups for one in draws]), minlength=4)
    assert_binomial(counts, counts.sum(), 1 / 4)
    assert not torch.equal(draws[0].inputs, draws[1].inputs)
    again = augmentation(images, labels, 1)
    assert torch.equal(again.inputs, draws[1].inputs)
    assert torch.equal(again.labels, draws[1].labels)


def test_labels_outside_the_drawn_group_are_ignored() -> None:
    made = layout()
    images, labels = batch(32)
    noisy = OneGroup(GroupNoise(made, Gaussian()))(images, labels, 0)
    for sample, group in enumerate(noisy.groups):
        inside = torch.as_tensor(made.outputs.mask(int(group)))
        assert torch.equal(noisy.labels[sample][inside], labels[sample][inside])
        assert (noisy.labels[sample][~inside] == IGNORED).all()


@pytest.mark.parametrize("loss", [CrossEntropy(), Dice()])
def test_gradient_reaches_the_drawn_groups_outputs_only(loss: CrossEntropy | Dice) -> None:
    made = layout()
    images, labels = batch(8)
    noisy = OneGroup(GroupNoise(made, Gaussian()))(images, labels, 0)
    scores = torch.randn(8, 3, *SHAPE, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss(scores, noisy.labels).backward()
    assert scores.grad is not None
    for sample, group in enumerate(noisy.groups):
        inside = torch.as_tensor(made.outputs.mask(int(group)))
        assert (scores.grad[sample][:, ~inside] == 0).all()
        assert (scores.grad[sample][:, inside] != 0).any()


def test_windows_of_one_size_are_cropped_per_sample() -> None:
    augmentation = OneGroup(GroupNoise(GridLayout((2, 2), 0.3, 0.3, window_margin=0), Gaussian()))
    images, labels = batch(16)
    noisy = augmentation(images, labels, 0)
    assert noisy.inputs.shape == (16, 1, 3, 4)
    assert len(set(noisy.groups.tolist())) > 1
    for sample, group in enumerate(noisy.groups):
        row, column = divmod(int(group), 2)
        rows, columns = slice(3 * row, 3 * row + 3), slice(4 * column, 4 * column + 4)
        assert torch.equal(noisy.labels[sample], labels[sample, rows, columns])


def test_windows_of_several_sizes_share_one_group_per_batch() -> None:
    augmentation = OneGroup(GroupNoise(GridLayout((3, 2), 0.3, 0.3, window_margin=1), Gaussian()))
    images, labels = batch(6)
    seen = [augmentation(images, labels, step) for step in range(60)]
    assert all(len(set(one.groups.tolist())) == 1 for one in seen)
    assert {int(one.groups[0]) for one in seen} == set(range(6))
    assert all(one.labels.shape[1:] == one.inputs.shape[2:] for one in seen)


def test_hidden_inputs_are_replaced() -> None:
    images, labels = batch(16)
    augmentation = OneGroup(GroupNoise(masked(layout()), Gaussian(), bounds=(0.0, 1.0)))
    noisy = augmentation(images, labels, 0)
    for sample, group in enumerate(noisy.groups):
        outside = torch.as_tensor(~layout().inputs.mask(int(group)))
        assert (noisy.inputs[sample, 0][outside] == 0.5).all()


def test_outputs_may_have_another_shape_and_groups_need_not_be_boxes() -> None:
    rng = np.random.default_rng(0)
    outputs = Partition(np.concatenate([np.arange(3), rng.integers(3, size=9)]).astype(np.int32))
    made = Layout(outputs, Partition(np.arange(12, dtype=np.int32) % 3), np.full((3, 3), 0.5))

    class Stacked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([x[:, 0], -x[:, 0]], dim=1)

    images, labels = batch(5, classes=2)
    images, labels = images.flatten(2)[..., :12], labels.flatten(1)[:, :12]
    noise = GroupNoise(made, Gaussian())
    loss = AllGroups(noise).loss(Stacked(), images, labels, CrossEntropy(), 0)
    scores = noise.stitched(Stacked(), images, labels, 0)
    assert torch.equal(loss, functional.cross_entropy(scores, labels))
    assert OneGroup(noise)(images, labels, 0).labels.shape == (5, 12)


@pytest.mark.parametrize("loss", [CrossEntropy(), Dice()])
def test_accumulated_gradients_are_those_of_the_stitched_prediction(loss: CrossEntropy | Dice) -> None:
    images, labels = batch(4)
    gradients: list[torch.Tensor] = []
    for accumulate in (False, True):
        network = nn.Sequential(Pointwise(), nn.Dropout(0.5))
        augmentation = AllGroups(GroupNoise(layout(), Gaussian()), accumulate=accumulate)
        with seeded(0):
            augmentation.loss(network, images, labels, loss, 2).backward()
        gradient = next(network.parameters()).grad
        assert gradient is not None
        gradients.append(gradient)
    assert torch.allclose(*gradients, atol=1e-7)
    assert gradients[0].abs().max() > 1e-3


def test_stitched_outputs_come_from_their_own_groups_draw() -> None:
    made = layout()
    images, labels = batch(2)
    network = Pointwise()
    noise = GroupNoise(made, Gaussian(), seed=4)
    stitched = noise.stitched(network, images, labels, 5)
    for group in range(4):
        region = Region.of(made, group)
        expected = network(noise.draw(images, region, noise.stream(101, 5, group, images.device)))
        mask = torch.as_tensor(made.outputs.mask(group))
        assert torch.equal(stitched[..., mask], expected[..., mask])
    assert not torch.equal(stitched, noise.validation_scores(network, images, labels, 5))


def test_mean_loss_of_one_group_is_that_of_all_groups() -> None:
    """With groups of one size, one drawn group per sample estimates the loss over all groups without bias."""
    images, labels = batch(256)
    network = Pointwise()
    noise = GroupNoise(layout(), Gaussian())
    with torch.no_grad():
        one = [float(OneGroup(noise).loss(network, images, labels, CrossEntropy(), step)) for step in range(30)]
        every = [float(AllGroups(noise).loss(network, images, labels, CrossEntropy(), step)) for step in range(30)]
    assert likely(stats.ttest_ind(one, every, equal_var=False).pvalue)
    assert not likely(stats.ttest_ind(one, [value + 0.03 for value in every], equal_var=False).pvalue)


def test_dice_against_its_definition() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(2, 3, 4, 5)), rng.integers(2, size=(2, 4, 5))
    labels[0, 0, 0] = IGNORED
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    counted = labels != IGNORED
    shares = [
        2
        * probabilities[:, c][counted & (labels == c)].sum()
        / (probabilities[:, c][counted].sum() + (counted & (labels == c)).sum())
        for c in (0, 1)
    ]  # class 2 is not shown
    found = Dice()(torch.as_tensor(scores), torch.as_tensor(labels))
    assert float(found) == pytest.approx(1 - np.mean(shares), rel=1e-12)
    perfect = functional.one_hot(torch.as_tensor(labels).clamp(min=0), 3).movedim(-1, 1).double() * 200
    assert float(Dice()(perfect, torch.as_tensor(labels))) == pytest.approx(0, abs=1e-12)
    nothing = torch.full((2, 4, 5), IGNORED)
    assert float(Dice()(torch.as_tensor(scores), nothing)) == 0
    assert float(CrossEntropy()(torch.as_tensor(scores), nothing)) == 0


def test_what_does_not_fit_is_refused() -> None:
    images, labels = batch(2)
    with pytest.raises(InvalidInputError, match="layout"):
        OneGroup(GroupNoise(grid_layout((2, 2), (8, 8), minimum=0.2, maximum=0.4), Gaussian()))(images, labels, 0)
    with pytest.raises(InvalidInputError, match="step"):
        OneGroup(GroupNoise(layout(), Gaussian()))(images, labels, -1)
    with pytest.raises(InvalidInputError, match="seed"):
        GroupNoise(layout(), Gaussian(), seed=-1)
    with pytest.raises(InvalidInputError, match="levels"):
        OneGroup(GroupNoise(GridLayout((2, 2), 0.0, 0.4), Gaussian()))(images, labels, 0)
    with pytest.raises(InvalidInputError, match="network"):
        AllGroups(GroupNoise(layout(), Gaussian())).loss(nn.MaxPool2d(2), images, labels, CrossEntropy(), 0)
    with pytest.raises(InvalidInputError, match="clamp"):
        OneGroup(GroupNoise(layout(), Gaussian(clamp=True)))(images, labels, 0)
