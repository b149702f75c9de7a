"""Gaussian noise: its law, its stream and its weights."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from drawing import draw
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from localsmooth.errors import InvalidInputError
from localsmooth.noise import Gaussian, Randomness
from localsmooth.testing.chance import likely

ITEM = torch.arange(12, dtype=torch.float32).reshape(3, 2, 2) / 10
LEVELS = np.array([[0.1, 0.5], [1.0, np.inf]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_element_is_normal_with_its_own_level(dtype: torch.dtype) -> None:
    item = ITEM.to(dtype)
    z = (draw(Gaussian(), item, LEVELS, 4000) - item).double().numpy()
    for position in np.ndindex(3, 2, 2):
        sigma = LEVELS[position[1:]]
        if np.isfinite(sigma):
            assert likely(stats.kstest(z[(slice(None), *position)] / sigma, "norm").pvalue)
    flat = z[:, :, :, 0].reshape(4000, -1).T
    assert likely([stats.pearsonr(one, other).pvalue for one, other in itertools.combinations(flat, 2)])


def test_hidden_inputs_are_the_constant() -> None:
    prepared = Gaussian().prepare(ITEM, LEVELS, None, 0.25)
    out = torch.empty((5, *ITEM.shape))
    prepared.draw(out, Randomness(0, (0,)))
    assert (out[:, :, 1, 1] == 0.25).all()
    assert (out[:, :, 0, 0] != ITEM[:, 0, 0]).all()


def test_clamp_keeps_samples_in_the_declared_bounds() -> None:
    z = draw(Gaussian(clamp=True), ITEM, np.full((2, 2), 2.0), 200, bounds=(0.0, 1.0))
    assert z.min() == 0.0
    assert z.max() == 1.0
    free = draw(Gaussian(), ITEM, np.full((2, 2), 2.0), 200, bounds=(0.0, 1.0))
    assert torch.equal(free.clamp(0, 1), z)


def test_clamp_without_bounds_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="clamp"):
        Gaussian(clamp=True).prepare(ITEM, LEVELS, None, 0.0)


@settings(deadline=None)
@given(st.floats(1e-6, 1e6))
def test_weights_are_rounded_up_for_both_precisions(sigma: float) -> None:
    weight = Fraction(Gaussian().weights(np.array([[sigma]]))[0, 0])
    for attained in (sigma, float(np.float32(sigma))):
        assert weight * Fraction(attained) ** 2 >= 1
    assert float(weight) * sigma**2 < 1 + 1e-6
