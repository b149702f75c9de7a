from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from localsmooth.models.outputs import marked
from localsmooth.models.preprocessing import Preprocessing, reflected_positions


@given(st.integers(1, 12), st.integers(0, 40))
def test_reflection_equals_numpy(size, extra):
    axis = np.arange(size)
    expected = np.pad(axis, (0, extra), mode="reflect")
    np.testing.assert_array_equal(reflected_positions(size, size + extra), expected)


def test_constants_are_sent_to_the_device_once_and_not_to_other_processes(monkeypatch: pytest.MonkeyPatch):
    preprocessing = Preprocessing(((0.5, 0.25), (0.5, 2.0)), pad_multiple=8)
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
