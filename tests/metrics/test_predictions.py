import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from localsmooth.errors import InvalidInputError
from localsmooth.metrics import (
    ABSTAIN,
    abstention_rate,
    accuracy,
    class_iou,
    confusion_matrix,
    mean_iou,
)

seeds = st.integers(0, 2**32 - 1)


def draw(seed: int, classes: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, (7, 9))
    prediction = rng.integers(ABSTAIN, classes, (7, 9))
    counted = rng.random((7, 9)) < 0.8
    counted[0, 0] = True
    return prediction, label, counted


@given(seeds)
def test_confusion_matrix_agrees_with_scikit_learn(seed: int):
    prediction, label, counted = draw(seed)
    expected = sklearn.metrics.confusion_matrix(label[counted], prediction[counted], labels=[*range(5), ABSTAIN])
    matrix = confusion_matrix(prediction, label, counted, 5)
    np.testing.assert_array_equal(matrix, expected[:5])
    assert matrix.sum() == counted.sum()


@given(seeds)
def test_iou_agrees_with_scikit_learn(seed: int):
    prediction, label, counted = draw(seed)
    label[label == 3] = 2
    prediction[prediction == 3] = 2  # class 3 is absent from both sides
    iou = class_iou(confusion_matrix(prediction, label, counted, 5))
    kept = [c for c in range(5) if c in label[counted] or c in prediction[counted]]
    expected = sklearn.metrics.jaccard_score(
        label[counted], prediction[counted], labels=kept, average=None, zero_division=0
    )
    np.testing.assert_allclose(iou[kept], expected)
    assert np.isnan(np.delete(iou, kept)).all()
    assert mean_iou(confusion_matrix(prediction, label, counted, 5)) == pytest.approx(np.mean(expected))


@given(seeds)
def test_accuracy_agrees_with_scikit_learn(seed: int):
    prediction, label, counted = draw(seed)
    assert accuracy(prediction, label, counted) == pytest.approx(
        sklearn.metrics.accuracy_score(label[counted], prediction[counted])
    )
    assert abstention_rate(prediction, counted) == pytest.approx(np.mean(prediction[counted] == ABSTAIN))


def test_abstention_is_never_class_0():
    label = np.zeros((2, 2), dtype=np.int64)
    abstained = np.full((2, 2), ABSTAIN)
    everywhere = np.ones((2, 2), dtype=bool)
    assert accuracy(abstained, label, everywhere) == 0
    assert accuracy(label, label, everywhere) == 1
    matrix = confusion_matrix(abstained, label, everywhere, 3)
    np.testing.assert_array_equal(matrix, [[0, 0, 0, 4], [0, 0, 0, 0], [0, 0, 0, 0]])
    assert class_iou(matrix)[0] == 0
    assert mean_iou(matrix) == 0


def test_abstention_is_wrong_even_where_the_label_has_the_same_number():
    label = np.full(4, ABSTAIN)
    assert accuracy(np.full(4, ABSTAIN), label, np.ones(4, dtype=bool)) == 0


def test_abstention_is_no_false_alarm_of_another_class():
    label = np.array([0, 0, 1, 1])
    counted = np.ones(4, dtype=bool)
    abstaining = class_iou(confusion_matrix(np.array([0, ABSTAIN, 1, 1]), label, counted, 2))
    mistaken = class_iou(confusion_matrix(np.array([0, 1, 1, 1]), label, counted, 2))
    np.testing.assert_allclose(abstaining, [1 / 2, 1])
    np.testing.assert_allclose(mistaken, [1 / 2, 2 / 3])


def test_matrices_of_items_add_up_to_that_of_the_data_set():
    parts = [draw(seed) for seed in range(4)]
    together = [np.stack(arrays) for arrays in zip(*parts, strict=True)]
    total = sum(confusion_matrix(*part, 5) for part in parts)
    np.testing.assert_array_equal(confusion_matrix(*together, 5), total)


@pytest.mark.parametrize("value", [-1, 5])
def test_labels_out_of_range_are_refused(value: int):
    with pytest.raises(InvalidInputError, match="label"):
        confusion_matrix(np.array([0]), np.array([value]), np.array([True]), 5)


@pytest.mark.parametrize("value", [-2, 5])
def test_predictions_out_of_range_are_refused(value: int):
    with pytest.raises(InvalidInputError, match="prediction"):
        confusion_matrix(np.array([value]), np.array([0]), np.array([True]), 5)


def test_nothing_to_count_is_refused():
    nothing = np.zeros(3, dtype=bool)
    zeros = np.zeros(3, dtype=np.int64)
    with pytest.raises(InvalidInputError, match="counted"):
        accuracy(zeros, zeros, nothing)
    with pytest.raises(InvalidInputError, match="counted"):
        abstention_rate(zeros, nothing)
    with pytest.raises(InvalidInputError, match="confusion"):
        mean_iou(confusion_matrix(zeros, zeros, nothing, 2))
