from __future__ import annotations

import numpy as np
import pytest
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.models import CallableModel, OutputKind, Preprocessing, check_model


def scores(x):
    return np.stack([x.sum(1), -x.sum(1), x[:, 0]], axis=1)


def batch(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def test_scores():
    x = batch(3, 2, 4, 5)
    model = CallableModel(scores, name="sums", bounds=(0, 1), classes=3)
    assert torch.equal(model(x), torch.from_numpy(scores(x.numpy())))
    assert model.device == torch.device("cpu")
    assert model.hidden_value == 0.5


def test_labels_and_lists():
    model = CallableModel(
        lambda x: scores(x).argmax(1).tolist(), name="labels", bounds=None, classes=3, output=OutputKind.LABELS
    )
    x = batch(3, 2, 4)
    assert torch.equal(model(x), torch.from_numpy(scores(x.numpy()).argmax(1)))
    assert model.hidden_value == 0.0


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint16, np.uint64, np.int32])
def test_types_of_labels(dtype):
    def labels(x):
        return (x[:, 0] > 0.5).astype(dtype)

    model = CallableModel(labels, name="bright", bounds=(0, 1), classes=2, output=OutputKind.LABELS)
    x = batch(3, 2, 4, 5)
    assert torch.equal(model(x).long(), (x[:, 0] > 0.5).long())
    assert check_model(model, x[0]).output_shape == (4, 5)


def test_read_only_and_reversed_outputs():
    def function(x):
        made = scores(x)[:, ::-1]
        made.flags.writeable = False
        return made

    x = batch(2, 2, 3)
    made = CallableModel(function, name="reversed", bounds=(0, 1), classes=3, class_axis=1)(x)
    assert torch.equal(made, torch.from_numpy(scores(x.numpy())[:, ::-1].copy()))


def test_the_function_cannot_change_the_batch():
    def function(x):
        x += 1
        return scores(x)

    with pytest.raises(ValueError, match="read-only"):
        CallableModel(function, name="greedy", bounds=(0, 1), classes=3)(batch(2, 2, 3))


def test_preprocessing():
    x = batch(2, 2, 5, 6)
    model = CallableModel(
        scores,
        name="sums",
        bounds=(0, 1),
        classes=3,
        preprocessing=Preprocessing((0.5, 0.4), (0.2, 0.1), pad_multiple=4),
    )
    normalised = (x.numpy() - np.reshape([0.5, 0.4], (2, 1, 1))) / np.reshape([0.2, 0.1], (2, 1, 1))
    np.testing.assert_allclose(model(x).numpy(), scores(normalised), atol=1e-5)


def test_threshold():
    x = batch(2, 2, 5, 6)
    model = CallableModel(lambda x: x[:, :1], name="first", bounds=(0, 1), threshold=0.5)
    assert torch.equal(model(x).bool(), x[:, 0] > 0.5)


def test_a_lost_sample_is_noticed():
    model = CallableModel(lambda x: scores(x)[:-1], name="lossy", bounds=(0, 1), classes=3)
    with pytest.raises(InvalidInputError, match="one prediction per sample"):
        model(batch(3, 2, 4))


def test_words_are_no_predictions():
    model = CallableModel(lambda x: np.full(len(x), "cat"), name="words", bounds=None, classes=3)
    with pytest.raises(InvalidInputError, match="Return numbers"):
        model(batch(3, 2))


def test_name_and_options_make_the_fingerprint():
    def made(**arguments):
        return CallableModel(scores, **{"name": "a", "bounds": (0, 1), "classes": 3, **arguments}).fingerprint()

    different = [
        made(),
        made(name="b"),
        made(bounds=None),
        made(classes=4),
        made(preprocessing=Preprocessing(0.0, 2.0)),
    ]
    assert len(set(different)) == 5
    assert made() == made()


def test_a_name_is_needed():
    with pytest.raises(InvalidInputError, match="name"):
        CallableModel(scores, name="", bounds=(0, 1), classes=3)
