import numpy as np
import pytest

from localsmooth.metrics import keeps_alone, weakest_part
from localsmooth.results import build_dataset, kind_curve

from ..results.synthetic import make_item, run_info

YES, NO = True, False


def test_the_part_with_the_smallest_share_is_the_weakest():
    parts = np.array([[0, 0, 1, 1], [1, 2, -1, 2]])
    keeps = np.array([[YES, NO, YES, NO], [NO, YES, NO, YES]])
    everywhere = np.ones_like(keeps)
    worst = weakest_part(parts, everywhere, keeps)
    assert worst is not None
    assert (worst.part, worst.kept, worst.size) == (1, 1, 3)
    assert worst.share == pytest.approx(1 / 3)
    ignoring = weakest_part(parts, parts != 1, keeps)
    assert ignoring is not None
    assert (ignoring.part, ignoring.kept, ignoring.size) == (0, 1, 2)


def test_of_equal_shares_the_larger_part_is_the_weakest():
    parts, keeps = np.array([0, 1, 1, 2]), np.array([NO, NO, NO, YES])
    worst = weakest_part(parts, np.ones_like(keeps), keeps)
    assert worst is not None
    assert worst.part == 1


def test_there_is_no_weakest_where_all_are_alike():
    parts = np.array([0, 0, 1, 1])
    counted = np.ones(4, bool)
    assert weakest_part(parts, counted, np.zeros(4, bool)) is None
    assert weakest_part(parts, counted, np.array([YES, NO, NO, YES])) is None
    assert weakest_part(np.zeros(4, int), counted, np.array([YES, NO, NO, YES])) is None
    assert weakest_part(parts, np.array([YES, YES, NO, NO]), np.array([YES, NO, NO, NO])) is None


def test_outputs_keep_on_their_own_below_their_radius():
    dataset = build_dataset([make_item()], run_info())
    radius = dataset["radius"].values
    budget = float(np.median(radius[radius > 0]))
    np.testing.assert_array_equal(keeps_alone(dataset, budget), radius > budget)
    assert 0 < keeps_alone(dataset, budget).mean() < 1
    # Every perturbation strictly below the radius is tolerated: not one of that size.
    assert not keeps_alone(dataset, budget)[radius == budget].any()


def test_what_is_told_for_each_budget_goes_before_radii():
    dataset = kind_curve(build_dataset([make_item(size=(3, 4), label=np.arange(12).reshape(3, 4) % 3)], run_info()))
    told = np.zeros((1, dataset.sizes["budget"], 3, 4), bool)
    told[0, 5, 1, 1] = told[0, 5, 0, 0] = True
    dataset = dataset.assign(alone=(("item", "budget", "output_y", "output_x"), told))
    dataset["prediction"].values[0] = 1
    dataset["prediction"].values[0, 0, 0] = -1
    budgets = dataset["budget"].values
    for budget in (budgets[5], (budgets[4] + budgets[5]) / 2):
        assert np.argwhere(keeps_alone(dataset, budget)).tolist() == [[0, 1, 1]]
    assert not keeps_alone(dataset, budgets[-1] + 1).any()
