"""Sampler and certificate read one level matrix, the same way round."""

import numpy as np
import pytest
import torch
from scipy import stats

from localsmooth.layout import Layout, Partition
from localsmooth.noise import Bernoulli, Gaussian, Noise, Randomness, SparseFlips, Uniform
from localsmooth.testing.chance import assert_binomial, likely

OUTPUTS = Partition(np.array([0, 1, 1]))
INPUTS = Partition(np.array([[0, 0, 1], [2, 2, 1]]))
LEVELS = np.array([[0.1, 0.2, 0.4], [0.3, np.inf, 0.05]])  # not square, not symmetric
PAIRS = np.stack([LEVELS, 0.9 - LEVELS], axis=-1)
PAIRS[1, 1] = np.inf
SAMPLES = 8000


def samples(noise: Noise, levels: np.ndarray, group: int, value: float) -> np.ndarray:
    """Draw around a constant item of two channels, and gather by input group: [group][values]."""
    item = torch.full((2, 2, 3), value)
    out = torch.empty((SAMPLES, *item.shape))
    noise.prepare(item, Layout(OUTPUTS, INPUTS, levels).level_map(group), None, 0.5).draw(out, Randomness(0, (group,)))
    return np.array([out.numpy()[:, :, INPUTS.mask(g)].reshape(-1)[: SAMPLES * 4] for g in range(3)])


def same_variance(normal: np.ndarray) -> float:
    """P-value of the sum of squares of standard normal numbers."""
    square = float((normal.astype(np.float64) ** 2).sum())
    return 2 * min(stats.chi2.cdf(square, normal.size), stats.chi2.sf(square, normal.size))


def same_edge(uniform: np.ndarray) -> float:
    """P-value of the largest of numbers that are uniform on [−1, 1], but for rounding."""
    return np.minimum(np.abs(uniform.astype(np.float64)).max(), 1) ** uniform.size


@pytest.mark.parametrize("group", [0, 1])
def test_additive_noise_has_the_spread_that_its_weights_assume(group: int) -> None:
    visible = np.isfinite(LEVELS[group])
    for noise, p_value in ((Gaussian(), same_variance), (Uniform(), same_edge)):
        weights = noise.weights(LEVELS)[group]
        scaled = (samples(noise, LEVELS, group, 0.5) - 0.5) * weights[:, None] ** (1 / noise.norm)
        assert likely([p_value(one) for one in scaled[visible]])
        assert not likely(p_value(0.95 * scaled[visible][0]))  # five percent less would show
        np.testing.assert_array_equal(weights[~visible], 0)
        assert (samples(noise, LEVELS, group, 0.1)[~visible] == 0.5).all()


@pytest.mark.parametrize("group", [0, 1])
def test_flips_have_the_laws_that_their_weights_assume(group: int) -> None:
    visible = np.isfinite(LEVELS[group])
    around_zero = samples(Bernoulli(), LEVELS, group, 0.0).sum(axis=1)
    around_one = samples(Bernoulli(), LEVELS, group, 1.0).sum(axis=1)
    laws = Bernoulli().bit_laws(LEVELS)
    assert_binomial(around_zero[visible], SAMPLES * 4, laws.clean[group, visible])
    assert_binomial(around_one[visible], SAMPLES * 4, laws.perturbed[group, visible])
    around_zero = samples(SparseFlips(), PAIRS, group, 0.0).sum(axis=1)
    around_one = samples(SparseFlips(), PAIRS, group, 1.0).sum(axis=1)
    laws = SparseFlips().bit_laws(PAIRS)
    clean, perturbed = laws.clean[group].reshape(2, 3), laws.perturbed[group].reshape(2, 3)
    for kind, (before, after) in enumerate([(around_zero, around_one), (around_one, around_zero)]):
        assert_binomial(before[visible], SAMPLES * 4, clean[kind, visible])
        assert_binomial(after[visible], SAMPLES * 4, perturbed[kind, visible])
        np.testing.assert_array_equal(clean[kind, ~visible], perturbed[kind, ~visible])
