"""Uniform noise: its law, its stream and its weights."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from drawing import draw
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from localsmooth.errors import InvalidInputError
from localsmooth.noise import Randomness, Uniform
from localsmooth.testing.chance import likely

ITEM = torch.arange(12, dtype=torch.float32).reshape(3, 2, 2) / 10
LEVELS = np.array([[0.1, 0.5], [1.0, np.inf]])


def test_each_element_is_uniform_with_its_own_half_width() -> None:
    z = (draw(Uniform(), ITEM.double(), LEVELS, 4000) - ITEM.double()).numpy()
    for position in np.ndindex(3, 2, 2):
        half_width = LEVELS[position[1:]]
        if np.isfinite(half_width):
            sample = z[(slice(None), *position)] / half_width
            assert likely(stats.kstest(sample, stats.uniform(-1, 2).cdf).pvalue)
            assert np.abs(sample).max() <= 1 + 1e-12


def test_hidden_inputs_are_the_constant() -> None:
    out = torch.empty((5, *ITEM.shape))
    Uniform().prepare(ITEM, LEVELS, None, 0.25).draw(out, Randomness(0, (0,)))
    assert (out[:, :, 1, 1] == 0.25).all()


def test_clamp_keeps_samples_in_the_declared_bounds() -> None:
    z = draw(Uniform(clamp=True), ITEM, np.full((2, 2), 2.0), 200, bounds=(0.0, 1.0))
    assert z.min() == 0.0
    assert z.max() == 1.0
    with pytest.raises(InvalidInputError, match="clamp"):
        Uniform(clamp=True).prepare(ITEM, LEVELS, None, 0.0)


@settings(deadline=None)
@given(st.floats(1e-6, 1e6))
def test_weights_are_rounded_up_for_both_precisions(half_width: float) -> None:
    weight = Fraction(Uniform().weights(np.array([[half_width]]))[0, 0])
    for attained in (half_width, float(np.float32(half_width))):
        assert weight * Fraction(attained) >= 1
    assert float(weight) * half_width < 1 + 1e-6


def test_half_precision_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="item"):
        Uniform().prepare(ITEM.half(), LEVELS, None, 0.0)
