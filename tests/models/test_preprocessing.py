from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import pointwise, pointwise_onnx

from localsmooth.errors import InvalidInputError
from localsmooth.models import CallableModel, OnnxModel, Preprocessing, TorchModel
from localsmooth.models.outputs import marked
from localsmooth.models.preprocessing import reflected_positions


@given(st.integers(1, 12), st.integers(0, 40))
def test_reflection_equals_numpy(size, extra):
    axis = np.arange(size)
    expected = np.pad(axis, (0, extra), mode="reflect")
    np.testing.assert_array_equal(reflected_positions(size, size + extra), expected)


def test_constants_are_sent_to_the_device_once_and_not_to_other_processes(monkeypatch: pytest.MonkeyPatch):
    preprocessing = Preprocessing((0.5, 0.25), (0.5, 2.0), pad_multiple=8)
    batch = torch.rand(3, 2, 5, 6, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        first = preprocessing(batch)

    def fail(*_: object, **__: object):
        raise AssertionError("a constant is made anew for a second batch")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "tensor", fail)
        patch.setattr(torch, "from_numpy", fail)
        assert torch.equal(preprocessing(batch), first)
    padded = np.pad(batch.numpy(), ((0, 0), (0, 0), (0, 3), (0, 2)), mode="reflect")
    mean, deviation = np.float32([0.5, 0.25]).reshape(2, 1, 1), np.float32([0.5, 2.0]).reshape(2, 1, 1)
    np.testing.assert_array_equal(first.numpy(), (padded - mean) / deviation)
    assert not copy.deepcopy(preprocessing)._moved
    tracked = batch.clone().requires_grad_()
    preprocessing(tracked).sum().backward()
    assert tracked.grad is not None


def test_constants_of_many_sizes_do_not_pile_up():
    preprocessing = Preprocessing(pad_multiple=128)
    for size in range(1, 100):
        assert preprocessing(torch.zeros(1, 1, size)).shape == (1, 1, 128)
    assert len(preprocessing._moved) <= 64


def test_nan_is_marked_as_no_class_where_nobody_looks():
    scores = torch.tensor([0.0, 1.0, torch.nan, 0.5, torch.inf, -torch.inf])
    assert marked(scores, 0.5).tolist() == [0, 1, -1, 0, 1, 0]


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("std", {"mean": (0.5, 0.5), "std": (0.5, 0.0)}),
        ("std", {"mean": (0.5, 0.5), "std": (0.5, float("nan"))}),
        ("mean", {"mean": float("inf")}),
        ("mean", {"mean": ()}),
        ("axis", {"mean": 0.5, "axis": 0}),
        ("pad_multiple", {"pad_multiple": 0}),
        ("pad_value", {"pad_value": 0.5}),
        ("pad_value", {"pad_value": float("nan"), "pad_multiple": 2}),
    ],
)
def test_bad_arguments_name_themselves(field, arguments):
    with pytest.raises(InvalidInputError) as caught:
        Preprocessing(**arguments)
    assert caught.value.field == field


def test_one_of_mean_and_deviation_is_enough():
    batch = torch.rand(2, 3, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(Preprocessing(mean=0.5)(batch), batch - 0.5)
    torch.testing.assert_close(Preprocessing(std=2.0)(batch), batch / 2)
    assert Preprocessing(mean=0.5) == Preprocessing([0.5], (1,))
    assert copy.deepcopy(Preprocessing(0.5, pad_multiple=2)) == Preprocessing(0.5, pad_multiple=2)


@pytest.mark.parametrize("axis", [1, 2, -1, -2])
def test_the_axis_of_the_channels(axis):
    batch = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(0))
    mean, std = np.float32([0.1, 0.2, 0.3]), np.float32([1, 2, 4])
    shape = [1, 1, 1]
    shape[axis] = 3
    made = Preprocessing(mean.tolist(), std.tolist(), axis=axis)(batch)
    np.testing.assert_allclose(made.numpy(), (batch.numpy() - mean.reshape(shape)) / std.reshape(shape), rtol=1e-6)
    with pytest.raises(InvalidInputError, match="3 numbers along axis"):
        Preprocessing(mean.tolist(), axis=axis)(torch.zeros(2, 4, 4))
    with pytest.raises(InvalidInputError, match="3 numbers along axis 7"):
        Preprocessing(mean.tolist(), axis=7)(torch.zeros(2, 3, 3))


def scores(batch):
    return np.stack([batch[:, 0]] * 3, axis=1)


def made(kind, tmp_path, **arguments):
    if kind == "torch":
        return TorchModel(pointwise(), bounds=(0, 1), classes=3, **arguments)
    if kind == "onnx":
        path = tmp_path / "model.onnx"
        if not path.exists():
            pointwise_onnx(path, np.ones((3, 2, 1, 1)), np.zeros(3), shape=(None, 2, None, None))
        return OnnxModel(path, bounds=(0, 1), classes=3, **arguments)
    return CallableModel(scores, name="same", bounds=(0, 1), classes=3, **arguments)


def test_fingerprints_are_those_of_stored_runs():
    """What they are made of is as it was before there was an object, to the letter."""
    model = made("torch", None, preprocessing=Preprocessing((0.5, 0.25), (0.5, 2), pad_multiple=8, pad_value=0.5))
    assert repr(sorted(model._configuration().items())) == (
        "[('bounds', (0.0, 1.0)), ('classes', 3), ('deviation', (0.5, 2.0)), ('mean', (0.5, 0.25)), "
        "('output', 'LOGITS'), ('pad_multiple', 8), ('pad_value', 0.5), ('threshold', None), ('upsample', None)]"
    )
    plain = repr(sorted(made("torch", None)._configuration().items()))
    assert "('deviation', ()), ('mean', ()), ('output', 'LOGITS'), ('pad_multiple', None), ('pad_value', None)" in plain
    assert (
        made("torch", None, preprocessing=Preprocessing(0.5, axis=2)).fingerprint()
        != made("torch", None, preprocessing=Preprocessing(0.5)).fingerprint()
    )
