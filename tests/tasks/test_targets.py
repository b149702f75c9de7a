"""What each target counts, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from localsmooth.certificates import ABSTAIN
from localsmooth.errors import InvalidInputError
from localsmooth.tasks.asked_targets import require_stakes, stakes_of
from localsmooth.tasks.stakes import Predicted, Stakes
from localsmooth.tasks.targets import Accuracy, Agreement, Balanced, Foreground, OfClass, Ratio, Target, Weighted

LABELLED = Predicted(
    prediction=np.array([0, 0, 1, ABSTAIN, 2, 0]),
    label=np.array([0, 0, 1, 1, 1, 255]),
    clean=np.array([0, 1, 1, 1, 2, 0]),
    ignored=np.array([False, False, False, False, False, True]),
    class_names=["sky", "cat", "dog"],
)
UNLABELLED = Predicted(LABELLED.prediction, None, LABELLED.clean, None, LABELLED.class_names)


@pytest.mark.parametrize(
    ("target", "values", "total"),
    [
        (Ratio(), [1, 1, 1, 0, 1, 0], 5),
        (Accuracy(), [1, 1, 1, 0, 0, 0], 5),
        (Agreement(), [1, 0, 1, 0, 1, 0], 5),
        # Two of sky, three of cat, none of dog.
        (Balanced(), [1 / 4, 1 / 4, 1 / 6, 0, 0, 0], 1),
        (Foreground(), [0, 0, 1, 0, 0, 0], 3),
        (Foreground(("cat",)), [1, 1, 0, 0, 0, 0], 2),
        (OfClass("cat"), [0, 0, 1, 0, 0, 0], 3),
        (OfClass(2), [0] * 6, 0),
        (Weighted(np.array([0, 2, 0.5, 1, 3, 9])), [0, 2, 0.5, 0, 3, 0], 6.5),
        (Weighted(np.array([0, 2, 0.5, 1, 3, 9]), correct=True), [0, 2, 0.5, 0, 0, 0], 6.5),
    ],
)
def test_values_with_labels(target: Target, values: list[float], total: float):
    made = target.stakes(LABELLED)
    assert made is not None
    np.testing.assert_allclose(made.values, values, rtol=1e-15)
    assert made.total == pytest.approx(total, rel=1e-15)


@pytest.mark.parametrize(
    ("target", "values"),
    [
        (Ratio(), [1, 1, 1, 0, 1, 1]),
        (Agreement(), [1, 0, 1, 0, 1, 1]),
        (Balanced(), [1 / 6, 0, 1 / 9, 0, 1 / 3, 1 / 6]),  # the clean model's classes take the labels' place
        (Foreground(), [0, 0, 1, 0, 1, 0]),
    ],
)
def test_values_without_labels(target: Target, values: list[float]):
    made = target.stakes(UNLABELLED)
    assert made is not None
    np.testing.assert_allclose(made.values, values, rtol=1e-15)


def test_targets_without_their_reference_are_left_out():
    assert set(stakes_of([Ratio(), Accuracy(), Agreement(), Balanced()], UNLABELLED)) == {
        "ratio",
        "agreement",
        "balanced",
    }
    blind = Predicted(LABELLED.prediction, None, None, None, LABELLED.class_names)
    assert set(stakes_of([Ratio(), Accuracy(), Agreement(), Balanced()], blind)) == {"ratio"}


def test_values_never_depend_on_what_is_bounded_but_for_abstention():
    """An output that abstains adds nothing, and changes no other value and no total."""
    every = [Ratio(), Accuracy(), Agreement(), Balanced(), Foreground(), OfClass(1), Weighted(np.arange(6.0))]
    silent = Predicted(np.full(6, ABSTAIN), LABELLED.label, LABELLED.clean, LABELLED.ignored, LABELLED.class_names)
    spoken, quiet = stakes_of(every, LABELLED), stakes_of(every, silent)
    for name, stakes in quiet.items():
        assert not stakes.values.any()
        assert stakes.total == spoken[name].total


def test_counts_are_told_from_sums():
    for target, counts in ((Ratio(), True), (OfClass(1), True), (Balanced(), False)):
        stakes = target.stakes(LABELLED)
        assert stakes is not None
        assert stakes.counts is counts


@pytest.mark.parametrize(
    "weights", [[1.0, -1.0], [np.nan], [np.inf], [0.0, 0.0], [], ["a"], [1j], [1e308, 1e308]], ids=str
)
def test_weights_that_weigh_nothing_are_refused(weights: list[Any]):
    with pytest.raises(InvalidInputError) as error:
        Weighted(np.array(weights))
    assert error.value.field == "weights"


@pytest.mark.parametrize("name", ["ratio", "accuracy", "balanced", "class:1", ""])
def test_no_weights_go_by_the_name_of_another_target(name: str):
    with pytest.raises(InvalidInputError) as error:
        Weighted(np.ones(2), name=name)
    assert error.value.field == "name"


def test_weights_have_the_shape_of_the_outputs():
    """A mask that is transposed would mark other outputs."""
    outputs = replace(LABELLED, shape=(2, 3))
    for fine in (np.ones((2, 3)), np.ones(6)):
        assert Weighted(fine).stakes(outputs) is not None
    with pytest.raises(InvalidInputError, match="3 × 2 for 2 × 3"):
        Weighted(np.ones((3, 2))).stakes(outputs)


@pytest.mark.parametrize("discount", range(12))
def test_a_discount_takes_at_least_what_so_many_outputs_are_worth(discount: int):
    values = np.array([0.5, 0.25, 0.0, 0.125, 0.125])
    for worth in (values, np.ceil(values)):
        stakes = Stakes(worth, 4.0, bool((worth == np.ceil(worth)).all()))
        left = stakes.less(np.array([worth.sum()]), discount).item()
        assert left <= np.sort(worth)[: max(5 - discount, 0)].sum()


def test_baselines_count_and_refuse_what_only_weighs():
    require_stakes([Balanced(), Ratio()], [LABELLED], counting=True)
    require_stakes([Balanced()], [LABELLED], counting=False)
    with pytest.raises(InvalidInputError, match="balanced weigh"):
        require_stakes([Balanced()], [LABELLED], counting=True)


def test_nothing_is_balanced_where_everything_is_ignored():
    stakes = Balanced().stakes(replace(LABELLED, ignored=np.ones(6, np.bool_)))
    assert stakes is not None
    assert stakes.total == 0


def test_a_number_that_is_the_name_of_another_class_is_refused():
    numbered = replace(LABELLED, class_names=["1", "2", "3"])
    with pytest.raises(InvalidInputError, match='of: class number 1 is called "2", and another class "1"'):
        OfClass(1).stakes(numbered)
    named = OfClass("1").stakes(numbered)
    assert named is not None
    assert named.total == 2
    unshifted = OfClass(1).stakes(replace(LABELLED, class_names=["0", "1", "2"]))
    assert unshifted is not None
    assert unshifted.total == 3


def test_names_are_checked_against_the_item():
    with pytest.raises(InvalidInputError, match="sky, cat, dog"):
        OfClass("bird").stakes(LABELLED)
    with pytest.raises(InvalidInputError, match="3 for 6"):
        Weighted(np.ones(3)).stakes(LABELLED)


def test_targets_for_which_nothing_counts_are_told_before_sampling():
    nobody = replace(LABELLED, label=np.array([0, 0, 1, 1, 1, 255]))
    with pytest.warns(UserWarning, match="no output of the items counts for class:dog, which results leave out"):
        require_stakes([Ratio(), OfClass("dog"), OfClass("cat")], [nobody, nobody], counting=False)
    with pytest.raises(InvalidInputError, match="no output of the items counts for class:dog"):
        require_stakes([OfClass("dog")], [nobody], counting=False)
    # Without labels classes are those of predictions, which are not known yet; and one item is enough.
    require_stakes([OfClass("dog")], [UNLABELLED], counting=False)
    with_dog = replace(LABELLED, label=np.array([0, 0, 1, 1, 2, 255]))
    require_stakes([OfClass("dog")], [nobody, with_dog], counting=False)
