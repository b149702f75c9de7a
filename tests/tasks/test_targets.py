"""What each target counts, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from localsmooth.certificates import ABSTAIN
from localsmooth.errors import InvalidInputError
from localsmooth.tasks.targets import (
    Accuracy,
    Agreement,
    Balanced,
    Foreground,
    OfClass,
    Predicted,
    Ratio,
    Target,
    Weighted,
    stakes_of,
)

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


@pytest.mark.parametrize("weights", [[1.0, -1.0], [np.nan], [np.inf], [0.0, 0.0], []])
def test_weights_that_weigh_nothing_are_refused(weights: list[float]):
    with pytest.raises(InvalidInputError) as error:
        Weighted(np.array(weights))
    assert error.value.field == "weights"


def test_names_are_checked_against_the_item():
    with pytest.raises(InvalidInputError, match="sky, cat, dog"):
        OfClass("bird").stakes(LABELLED)
    with pytest.raises(InvalidInputError, match="3 for 6"):
        Weighted(np.ones(3)).stakes(LABELLED)
