"""Sampler and certificate read one level matrix, the same way round."""

import numpy as np
import pytest
import torch

from localsmooth.layout import Layout, Partition
from localsmooth.noise import Bernoulli, Gaussian, Noise, Randomness, SparseFlips, Uniform

OUTPUTS = Partition(np.array([0, 1, 1]))
INPUTS = Partition(np.array([[0, 0, 1], [2, 2, 1]]))
LEVELS = np.array([[0.1, 0.2, 0.4], [0.3, np.inf, 0.05]])  # not square, not symmetric
PAIRS = np.stack([LEVELS, 0.9 - LEVELS], axis=-1)
PAIRS[1, 1] = np.inf
SAMPLES = 4000


def samples(noise: Noise, levels: np.ndarray, group: int, value: float) -> np.ndarray:
    """Draw around a constant item of two channels, and gather by input group: [group][values]."""
    item = torch.full((2, 2, 3), value)
    out = torch.empty((SAMPLES, *item.shape))
    noise.prepare(item, Layout(OUTPUTS, INPUTS, levels).level_map(group), None, 0.5).draw(out, Randomness(0, (group,)))
    return np.array([out.numpy()[:, :, INPUTS.mask(g)].reshape(-1)[: SAMPLES * 4] for g in range(3)])


@pytest.mark.parametrize("group", [0, 1])
def test_additive_noise_has_the_spread_that_its_weights_assume(group: int) -> None:
    visible = np.isfinite(LEVELS[group])
    for noise, spread in ((Gaussian(), np.std), (Uniform(), lambda z, axis: np.abs(z - 0.5).max(axis=axis))):
        drawn = spread(samples(noise, LEVELS, group, 0.5), axis=1)
        weights = noise.weights(LEVELS)[group]
        np.testing.assert_allclose(drawn[visible] ** -float(noise.norm), weights[visible], rtol=0.06)
        np.testing.assert_array_equal(weights[~visible], 0)
        assert (samples(noise, LEVELS, group, 0.1)[~visible] == 0.5).all()


@pytest.mark.parametrize("group", [0, 1])
def test_flips_have_the_laws_that_their_weights_assume(group: int) -> None:
    visible = np.isfinite(LEVELS[group])
    around_zero = samples(Bernoulli(), LEVELS, group, 0.0).mean(axis=1)
    around_one = samples(Bernoulli(), LEVELS, group, 1.0).mean(axis=1)
    laws = Bernoulli().bit_laws(LEVELS)
    np.testing.assert_allclose(around_zero[visible], laws.clean[group, visible], atol=0.02)
    np.testing.assert_allclose(around_one[visible], laws.perturbed[group, visible], atol=0.02)
    around_zero = samples(SparseFlips(), PAIRS, group, 0.0).mean(axis=1)
    around_one = samples(SparseFlips(), PAIRS, group, 1.0).mean(axis=1)
    laws = SparseFlips().bit_laws(PAIRS)
    clean, perturbed = laws.clean[group].reshape(2, 3), laws.perturbed[group].reshape(2, 3)
    for kind, (before, after) in enumerate([(around_zero, around_one), (around_one, around_zero)]):
        np.testing.assert_allclose(before[visible], clean[kind, visible], atol=0.02)
        np.testing.assert_allclose(after[visible], perturbed[kind, visible], atol=0.02)
        np.testing.assert_array_equal(clean[kind, ~visible], perturbed[kind, ~visible])
