"""Radii of single predictions."""

import numpy as np
import pytest

from localsmooth.certificates import certified_radius
from localsmooth.errors import InvalidInputError

WEIGHTS = np.array([[4.0, 1.0], [0.0, 0.0]])
GROUP = np.array([0, 0, 1, 1])
ETA = np.array([9.0, 0.0, 3.0, 0.0])


@pytest.mark.parametrize(("norm", "expected"), [(2, 1.5), (1, 2.25), (0, 2.25)])
def test_the_worst_input_group_decides(norm: int, expected: float) -> None:
    radius = certified_radius(WEIGHTS, ETA, GROUP, norm)
    assert expected * (1 - 1e-14) < radius[0] < expected
    np.testing.assert_array_equal(radius[1:], [0.0, np.inf, 0.0])


def test_the_farthest_of_several_certificates_counts() -> None:
    weights = np.stack([WEIGHTS, np.array([[1.0, 1.0], [5.0, 5.0]])])
    eta = np.stack([ETA, np.array([1.0, 2.0, 1.0, 5.0])])
    np.testing.assert_allclose(certified_radius(weights, eta, GROUP, 1), [2.25, 2.0, np.inf, 1.0], rtol=1e-14)


def test_unknown_norm_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="norm"):
        certified_radius(WEIGHTS, ETA, GROUP, 3)


def test_rounded_down() -> None:
    rng = np.random.default_rng(0)
    weights, eta = rng.uniform(0.1, 10, (50, 1)), rng.uniform(0.1, 10, 50)
    radius = certified_radius(weights, eta, np.arange(50), 2)
    from fractions import Fraction

    for r, w, e in zip(radius, weights[:, 0], eta, strict=True):
        assert Fraction(r) ** 2 * Fraction(w) < Fraction(e)
