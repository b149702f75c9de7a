from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import onnx
import pytest
import torch
from networks import identity_graph, pointwise_onnx, save
from onnx import TensorProto, helper

from localsmooth.errors import InvalidInputError
from localsmooth.models import OnnxModel, OutputKind, Preprocessing

random = np.random.default_rng(0)
WEIGHT = random.standard_normal((3, 2, 1, 1)).astype(np.float32)
BIAS = random.standard_normal(3).astype(np.float32)


def by_hand(x, weight=WEIGHT, bias=BIAS):
    return np.einsum("bchw,kc->bkhw", x, weight[:, :, 0, 0]) + bias[:, None, None]


def batch(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).random(shape, dtype=np.float32))


@pytest.mark.parametrize("samples", [1, 3, 4, 9])
@pytest.mark.parametrize("fixed_batch", [None, 1, 4])
@pytest.mark.parametrize("size", [(None, None), (5, 6)])
def test_fixed_and_free_axes(tmp_path, samples, fixed_batch, size):
    path = pointwise_onnx(tmp_path / "m.onnx", WEIGHT, BIAS, shape=(fixed_batch, 2, *size))
    model = OnnxModel(path, bounds=(0, 1))
    assert (model.classes, model.output) == (3, OutputKind.LOGITS)
    x = batch(samples, 2, 5, 6)
    before = x.clone()
    made = model(x)
    assert made.shape == (samples, 3, 5, 6)
    np.testing.assert_allclose(made.numpy(), by_hand(x.numpy()), rtol=1e-5, atol=1e-6)
    assert torch.equal(x, before)


def test_normalisation_padding_and_crop(tmp_path):
    path = pointwise_onnx(tmp_path / "m.onnx", WEIGHT, BIAS, shape=(None, 2, 8, 16))
    mean, deviation = (0.4, 0.5), (0.2, 0.3)
    model = OnnxModel(path, bounds=(0, 1), preprocessing=Preprocessing(mean, deviation, pad_multiple=8))
    x = batch(2, 2, 7, 11)
    normalised = (x.numpy() - np.reshape(mean, (2, 1, 1))) / np.reshape(deviation, (2, 1, 1))
    np.testing.assert_allclose(model(x).numpy(), by_hand(normalised), rtol=1e-4, atol=1e-5)


def test_probability_map_with_a_threshold(tmp_path):
    path = pointwise_onnx(tmp_path / "m.onnx", WEIGHT[:1], BIAS[:1], shape=(None, 2, None, None), sigmoid=True)
    x = batch(3, 2, 9, 9)
    probability = 1 / (1 + np.exp(-by_hand(x.numpy(), WEIGHT[:1], BIAS[:1])[:, 0]))
    limit = float(np.median(probability))
    model = OnnxModel(path, bounds=(0, 1), threshold=limit)
    assert (model.classes, model.output) == (2, OutputKind.LABELS)
    clear = np.abs(probability - limit) > 1e-5
    assert np.array_equal(model(x).numpy()[clear], (probability > limit)[clear])
    assert clear.mean() > 0.9


def test_half_precision_file(tmp_path):
    path = pointwise_onnx(tmp_path / "m.onnx", WEIGHT, BIAS, shape=(None, 2, None, None), dtype=np.float16)
    x = batch(2, 2, 4, 4)
    model = OnnxModel(path, bounds=(0, 1))
    made = model(x)
    assert made.dtype == torch.float16
    assert model.evaluated_in == "float16"
    np.testing.assert_allclose(made.float().numpy(), by_hand(x.numpy()), atol=0.02)


def test_upsampling(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
        "pool",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (None, 2, None, None))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (None, 2, None, None))],
    )
    path = save(graph, tmp_path / "m.onnx")
    x = batch(2, 2, 6, 8)
    assert OnnxModel(path, bounds=(0, 1))(x).shape == (2, 2, 3, 4)
    expected = torch.nn.functional.interpolate(torch.nn.functional.avg_pool2d(x, 2), size=(6, 8), mode="bilinear")
    torch.testing.assert_close(OnnxModel(path, bounds=(0, 1), upsample=True)(x), expected)


def test_several_outputs_need_a_name(tmp_path):
    path = save(identity_graph(["x"], ["a", "b"]), tmp_path / "m.onnx")
    with pytest.raises(InvalidInputError, match=r"output_name: not given.*'a', 'b'"):
        OnnxModel(path, bounds=(0, 1))
    with pytest.raises(InvalidInputError, match="no output 'c'"):
        OnnxModel(path, bounds=(0, 1), output_name="c")
    x = batch(2, 2, 3, 3)
    assert torch.equal(OnnxModel(path, bounds=(0, 1), output_name="b")(x), x)


def test_several_inputs_are_refused(tmp_path):
    path = save(identity_graph(["x", "y"], ["a"]), tmp_path / "m.onnx")
    with pytest.raises(InvalidInputError, match=r"inputs \['x', 'y'\]"):
        OnnxModel(path, bounds=(0, 1))


def test_integer_input_is_refused(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "bytes",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, (None, 2))],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, (None, 2))],
    )
    with pytest.raises(InvalidInputError, match="floating-point"):
        OnnxModel(save(graph, tmp_path / "m.onnx"), bounds=(0, 255), classes=2)


def test_items_that_do_not_fit_are_refused_by_shape(tmp_path):
    path = pointwise_onnx(tmp_path / "m.onnx", WEIGHT, BIAS, shape=(None, 2, 5, 6))
    model = OnnxModel(path, bounds=(0, 1))
    for shape in [(1, 3, 5, 6), (1, 2, 5, 7), (1, 2, 5)]:
        with pytest.raises(InvalidInputError, match=r"takes \(2, 5, 6\)"):
            model(batch(*shape))


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(InvalidInputError, match="no file"):
        OnnxModel(tmp_path / "none.onnx", bounds=(0, 1))
    (tmp_path / "broken.onnx").write_bytes(b"not a network")
    with pytest.raises(InvalidInputError, match="cannot load"):
        OnnxModel(tmp_path / "broken.onnx", bounds=(0, 1))


def test_threads(tmp_path):
    path = pointwise_onnx(tmp_path / "m.onnx", WEIGHT, BIAS, shape=(None, 2, None, None))
    x = batch(2, 2, 4, 4)
    torch.testing.assert_close(OnnxModel(path, bounds=(0, 1), threads=1)(x), OnnxModel(path, bounds=(0, 1))(x))
    with pytest.raises(InvalidInputError, match="threads"):
        OnnxModel(path, bounds=(0, 1), threads=0)


def test_without_onnx_runtime_the_extra_is_named(tmp_path, monkeypatch):
    path = pointwise_onnx(tmp_path / "m.onnx", WEIGHT, BIAS, shape=(None, 2, None, None))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"localsmooth\[onnx\]"):
        OnnxModel(path, bounds=(0, 1))


def test_travels_to_another_process(tmp_path):
    model = OnnxModel(
        pointwise_onnx(tmp_path / "m.onnx", WEIGHT, BIAS, shape=(None, 2, None, None)), bounds=(0, 1), threads=1
    )
    x = batch(2, 2, 4, 4)
    moved = pickle.loads(pickle.dumps(model))  # noqa: S301 (our own bytes)
    assert torch.equal(moved(x), model(x))


def test_fingerprint_follows_the_file_and_the_options(tmp_path):
    free = (None, 2, None, None)
    path = pointwise_onnx(tmp_path / "a.onnx", WEIGHT, BIAS, shape=free)
    copy = pointwise_onnx(tmp_path / "b.onnx", WEIGHT, BIAS, shape=free)
    other = pointwise_onnx(tmp_path / "c.onnx", WEIGHT, BIAS + 1e-6, shape=free)
    first = OnnxModel(path, bounds=(0, 1)).fingerprint()
    assert (
        first == OnnxModel(copy, bounds=(0, 1)).fingerprint() == OnnxModel(path, bounds=(0, 1), threads=1).fingerprint()
    )
    changed = [
        OnnxModel(other, bounds=(0, 1)),
        OnnxModel(path, bounds=(0, 2)),
        OnnxModel(path, bounds=(0, 1), preprocessing=Preprocessing(0.5, 0.5)),
        OnnxModel(path, bounds=(0, 1), preprocessing=Preprocessing(pad_multiple=4)),
        OnnxModel(path, bounds=(0, 1), upsample=True),
    ]
    assert len({first, *(m.fingerprint() for m in changed)}) == 6


def test_fingerprint_covers_weights_kept_beside_the_file(tmp_path):
    path = pointwise_onnx(tmp_path / "m.onnx", WEIGHT, BIAS, shape=(None, 2, None, None))
    network = onnx.load(path)
    onnx.save(network, path, save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    x = batch(1, 2, 3, 4)
    before = OnnxModel(path, bounds=(0, 1))
    prediction, fingerprint = before(x), before.fingerprint()
    (np.fromfile(tmp_path / "m.onnx.data", np.float32) + 1).tofile(tmp_path / "m.onnx.data")
    after = OnnxModel(path, bounds=(0, 1))
    assert not torch.equal(after(x), prediction)
    assert after.fingerprint() != fingerprint


def with_further_inputs(path):
    """Two classes: ±(gain · x + state) · rate, with a state for each sample of the batch."""
    floats, whole = TensorProto.FLOAT, TensorProto.INT64
    inputs = [
        helper.make_tensor_value_info("x", floats, ["batch", 1, 8]),
        helper.make_tensor_value_info("gain", floats, []),
        helper.make_tensor_value_info("rate", whole, [1]),
        helper.make_tensor_value_info("state", floats, ["batch", 1, 8]),
    ]
    nodes = [
        helper.make_node("Mul", ["x", "gain"], ["louder"]),
        helper.make_node("Add", ["louder", "state"], ["moved"]),
        helper.make_node("Cast", ["rate"], ["factor"], to=floats),
        helper.make_node("Mul", ["moved", "factor"], ["one"]),
        helper.make_node("Neg", ["one"], ["other"]),
        helper.make_node("Concat", ["one", "other"], ["scores"], axis=1),
    ]
    outputs = [helper.make_tensor_value_info("scores", floats, ["batch", 2, 8])]
    graph = helper.make_graph(nodes, "further", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


CONSTANTS = {"gain": 2, "rate": [3], "state": np.linspace(-1, 0.5, 8).reshape(1, 1, 8)}


@pytest.mark.parametrize("samples", [1, 5])
def test_further_inputs_are_constants(tmp_path, samples):
    model = OnnxModel(with_further_inputs(tmp_path / "m.onnx"), bounds=(0, 1), inputs=CONSTANTS)
    x = batch(samples, 1, 8)
    one = 3 * (2 * x.numpy() + CONSTANTS["state"])
    for again in (model, copy.deepcopy(model)):
        np.testing.assert_allclose(again(x).numpy(), np.concatenate([one, -one], axis=1), rtol=1e-5, atol=1e-6)


def test_runs_know_the_values_of_further_inputs(tmp_path):
    path = with_further_inputs(tmp_path / "m.onnx")
    marks = {
        OnnxModel(path, bounds=None, inputs={**CONSTANTS, **more}).fingerprint()
        for more in ({}, {"gain": 2.5}, {"rate": [4]}, {"state": np.zeros((1, 1, 8))})
    }
    assert len(marks) == 4


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "one must be left for the item"),
        ({**CONSTANTS, "x": np.zeros((1, 1, 8))}, "one must be left for the item"),
        ({**CONSTANTS, "more": 1}, "no input 'more'"),
        ({**CONSTANTS, "rate": [2.5]}, "does not fit"),
        ({**CONSTANTS, "gain": float("nan")}, "does not fit"),
        ({**CONSTANTS, "rate": ["3"]}, "Pass numbers"),
    ],
)
def test_further_inputs_that_do_not_fit(tmp_path, inputs, message):
    with pytest.raises(InvalidInputError, match=message):
        OnnxModel(with_further_inputs(tmp_path / "m.onnx"), bounds=None, inputs=inputs)
