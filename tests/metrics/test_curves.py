import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from localsmooth.errors import InvalidInputError
from localsmooth.metrics import average_certifiable_radius, certified_fractions, mean_curve


def test_curve_is_the_mean_of_each_items_share():
    certified = np.array([[4, 2, 0], [10, 10, 5]])
    total = np.array([4, 20])
    np.testing.assert_allclose(certified_fractions(certified, total), [[1, 0.5, 0], [0.5, 0.5, 0.25]])
    np.testing.assert_allclose(mean_curve(certified, total), [0.75, 0.5, 0.125])


def test_items_without_counted_outputs_are_left_out():
    certified = np.array([[0, 0], [3, 1]])
    total = np.array([0, 4])
    assert np.isnan(certified_fractions(certified, total)[0]).all()
    np.testing.assert_allclose(mean_curve(certified, total), [0.75, 0.25])
    with pytest.raises(InvalidInputError, match="total"):
        mean_curve(certified[:1], total[:1])


@pytest.mark.parametrize("certified", [[[5]], [[-1]]])
def test_counts_must_fit_their_total(certified: list[list[int]]):
    with pytest.raises(InvalidInputError, match="certified"):
        certified_fractions(np.array(certified), np.array([4]))


def test_negative_total_is_refused():
    with pytest.raises(InvalidInputError, match="total"):
        certified_fractions(np.array([[0]]), np.array([-1]))


def test_average_radius_by_hand():
    # 60 % at 0, 40 % at .5, none at 1: a fifth has a radius of at least 0, two fifths one of at least .5.
    assert average_certifiable_radius(np.array([0.0, 0.5, 1.0]), np.array([0.6, 0.4, 0.0])) == pytest.approx((0.2, 0.0))
    value, tail = average_certifiable_radius(np.array([0.0, 0.5, 1.0]), np.array([0.6, 0.4, 0.3]))
    assert (value, tail) == pytest.approx((0.05, 0.3))


@given(
    radii=arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 3)),
    budgets=st.lists(st.floats(0, 4), min_size=1, max_size=12, unique=True).map(sorted),
)
def test_average_radius_rounds_every_radius_down_to_a_budget(radii: np.ndarray, budgets: list[float]):
    grid = np.array(budgets)
    curve = np.array([(radii > budget).mean() for budget in grid])
    value, tail = average_certifiable_radius(grid, curve)
    rounded = [max([b for b in grid if b < radius], default=0.0) for radius in radii]
    assert value + tail == pytest.approx(np.mean(rounded), abs=1e-9)
    assert value + tail <= radii.mean() + 1e-9
    assert (tail > 0) == bool((radii > grid[-1]).any() and grid[-1] > 0)


def test_average_radius_of_a_curve_that_rises():
    grid = np.array([0.0, 1.0, 2.0])
    assert average_certifiable_radius(grid, np.array([0.2, 0.1, 0.3])) == pytest.approx((0.0, 0.6))


@pytest.mark.parametrize("budgets", [[0.0, 0.0], [1.0, 0.5], [-1.0, 0.0], [0.0, np.nan], [0.0, np.inf]])
def test_bad_budgets_are_refused(budgets: list[float]):
    with pytest.raises(InvalidInputError, match="budgets"):
        average_certifiable_radius(np.array(budgets), np.array([0.5, 0.5]))


@pytest.mark.parametrize("value", [np.nan, -0.1, 1.1])
def test_bad_curves_are_refused(value: float):
    with pytest.raises(InvalidInputError, match="curve"):
        average_certifiable_radius(np.array([0.0, 1.0]), np.array([0.5, value]))
