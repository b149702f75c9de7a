"""Bernoulli and sparsity-aware flips: their laws, streams, weights and caps."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from drawing import draw
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Partition
from localsmooth.noise import Bernoulli, Noise, Randomness, SparseFlips, drawable_probabilities, flip_caps
from localsmooth.testing.chance import assert_binomial

ITEM = torch.tensor([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
BERNOULLI_MAP = np.array([0.01, 0.5, np.inf])
SPARSE_MAP = np.array([[0.01, 0.9], [0.3, 0.7], [np.inf, np.inf]])
FAMILIES = [(Bernoulli(), BERNOULLI_MAP), (SparseFlips(), SPARSE_MAP)]

probabilities = st.floats(2.0**-20, 1 - 2.0**-20)


@pytest.mark.parametrize(("noise", "level_map"), FAMILIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_flip_frequencies(noise: Noise, level_map: np.ndarray, dtype: torch.dtype) -> None:
    item, samples = ITEM.to(dtype), 20_000
    z = draw(noise, item, level_map, samples)
    assert ((z == 0) | (z == 1)).all()
    flips = (z != item).double().sum(dim=0).numpy()
    for (row, column), count in np.ndenumerate(flips):
        level = level_map[column]
        theta = float(level if np.ndim(level) == 0 else level[int(item[row, column])])
        if np.isinf(theta):
            assert (z[:, row, column] == 0.0).all()
        else:
            assert_binomial(count, samples, drawable_probabilities(np.array(theta)))


def test_certain_flips_and_none() -> None:
    z = draw(Bernoulli(), ITEM, np.array([0.0, 1.0, 0.0]), 50)
    assert (z[:, :, 0] == ITEM[:, 0]).all()
    assert (z[:, :, 1] == 1 - ITEM[:, 1]).all()


def test_uniform_numbers_lie_on_the_grid_of_the_probabilities() -> None:
    out = torch.empty((4, 1000))
    Randomness(0, (0,)).uniform_(out)
    scaled = out.numpy().astype(np.float64) * 2**24
    np.testing.assert_array_equal(scaled, np.rint(scaled))


@settings(deadline=None)
@given(probabilities)
def test_drawable_probabilities_are_close_and_complementary(p: float) -> None:
    pair = drawable_probabilities(np.array([p, 1 - p]))
    assert pair[0] + pair[1] == 1
    assert abs(pair[0] - p) <= 2.0**-25
    assert float(np.float32(pair[0])) == pair[0]


@settings(deadline=None)
@given(probabilities, probabilities)
def test_second_order_weights_against_exact_arithmetic(plus: float, minus: float) -> None:
    weights = SparseFlips().weights(np.array([[[plus, minus]]]))[0]
    a, d = (Fraction(float(v)) for v in drawable_probabilities(np.array([plus, minus])))
    gamma = (d**2 / (1 - a) + (1 - d) ** 2 / a, (1 - a) ** 2 / d + a**2 / (1 - d))
    with mpmath.workdps(50):
        for weight, g in zip(weights, gamma, strict=True):
            exact = mpmath.log(mpmath.mpf(g.numerator) / g.denominator)
            assert mpmath.mpf(float(weight)) >= exact
            assert float(weight) <= float(exact) * (1 + 1e-14)


@settings(deadline=None)
@given(probabilities, probabilities, st.floats(1.01, 200))
def test_renyi_weights_against_high_precision(plus: float, minus: float, order: float) -> None:
    weights = SparseFlips().renyi_weights(np.array([[[plus, minus]]]), order)[0]
    with mpmath.workdps(60):
        a, d = (mpmath.mpf(float(v)) for v in drawable_probabilities(np.array([plus, minus])))
        alpha = mpmath.mpf(order)
        for weight, (p, c) in zip(weights, [(1 - d, a), (a, 1 - d)], strict=True):
            total = p**alpha * c ** (1 - alpha) + (1 - p) ** alpha * (1 - c) ** (1 - alpha)
            exact = mpmath.log(total) / (alpha - 1)
            assert mpmath.mpf(float(weight)) >= exact
            assert float(weight) - float(exact) <= 1e-13 * (1 + float(exact)) * (1 + 100 / (order - 1))


def test_bernoulli_is_the_symmetric_case() -> None:
    theta = np.array([[0.01, 0.2], [0.5, 0.7]])
    weights = Bernoulli().weights(theta)
    t = drawable_probabilities(theta)
    np.testing.assert_allclose(weights, np.log((1 - t) ** 2 / t + t**2 / (1 - t)), rtol=1e-12, atol=1e-15)
    sparse = SparseFlips().weights(np.stack([theta, theta], axis=-1))
    np.testing.assert_allclose(sparse, np.tile(weights, 2), rtol=1e-14)
    np.testing.assert_allclose(Bernoulli().renyi_weights(theta, 2.0), weights, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("order", [1.5, 2.0, 11.0])
def test_levels_that_make_inputs_irrelevant_or_untouchable(order: float) -> None:
    bernoulli = np.array([[0.5, np.inf, 0.0, 1.0, 0.1]])
    expected = [0, 0, np.inf, np.inf]
    np.testing.assert_array_equal(Bernoulli().weights(bernoulli)[0, :4], expected)
    np.testing.assert_array_equal(Bernoulli().renyi_weights(bernoulli, order)[0, :4], expected)
    pairs = np.array([[[0.1, 0.9], [np.inf, np.inf], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.5], [0.5, 0.0]]])
    # θ⁺ = 0: an added bit shows as a one that a zero never gives, but a deleted one could have been lost by chance.
    additions = [0, 0, 0, 0, np.inf, np.inf, None]
    deletions = [0, 0, 0, 0, np.inf, None, np.inf]
    for weights in (SparseFlips().weights(pairs), SparseFlips().renyi_weights(pairs, order)):
        for found, wanted in zip(weights[0], additions + deletions, strict=True):
            assert found == wanted if wanted is not None else 0 < found < np.inf


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, 1e-9, 1 - 1e-9, -np.inf])
def test_bad_probabilities_are_refused(bad: float) -> None:
    with pytest.raises(InvalidInputError, match="levels"):
        Bernoulli().weights(np.array([[0.1, bad]]))
    with pytest.raises(InvalidInputError, match="levels"):
        SparseFlips().weights(np.array([[[0.1, bad]]]))


def test_malformed_levels_and_items_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="levels"):
        Bernoulli().validate(np.full((1, 1, 2), 0.1))
    for levels in (np.full((1, 1), 0.1), np.full((1, 1, 3), 0.1), np.array([[[0.1, np.inf]]])):
        with pytest.raises(InvalidInputError, match="levels"):
            SparseFlips().validate(levels)
    with pytest.raises(InvalidInputError, match="item"):
        Bernoulli().prepare(ITEM * 0.5, BERNOULLI_MAP, None, 0.0)
    with pytest.raises(InvalidInputError, match="item"):
        SparseFlips().prepare(ITEM + 1, SPARSE_MAP, None, 0.0)
    with pytest.raises(InvalidInputError, match="order"):
        Bernoulli().renyi_weights(np.array([[0.1]]), 1.0)


def test_caps_count_zeros_and_ones_over_the_channels() -> None:
    item = torch.tensor([[[0, 1, 1], [0, 0, 0]], [[1, 1, 1], [0, 0, 1]]], dtype=torch.float32)  # channels first
    caps = flip_caps(item, Partition(np.array([[0, 0, 1], [2, 2, 2]])))
    np.testing.assert_array_equal(caps.additions, [1, 0, 5])
    np.testing.assert_array_equal(caps.deletions, [3, 2, 1])
    np.testing.assert_array_equal(caps.changes, [4, 2, 6])
    np.testing.assert_array_equal(caps.columns(SparseFlips().kinds), [1, 0, 5, 3, 2, 1])
    np.testing.assert_array_equal(caps.columns(Bernoulli().kinds), [4, 2, 6])
    with pytest.raises(InvalidInputError, match="item"):
        flip_caps(item / 2, Partition(np.zeros((2, 3), dtype=int)))
