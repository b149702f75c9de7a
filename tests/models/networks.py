"""Small networks for the tests of the adapters."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tests.seeding import seeded
from torch import nn


def pointwise(classes: int = 3, channels: int = 2, seed: int = 0) -> nn.Conv2d:
    """A 1×1 convolution: exact under cropping, padding and any order of the pixels."""
    with seeded(seed):
        return nn.Conv2d(channels, classes, 1).eval()


def local(classes: int = 3, channels: int = 2, seed: int = 0) -> nn.Module:
    """A fully convolutional network with a receptive field of 5×5."""
    with seeded(seed):
        return nn.Sequential(
            nn.Conv2d(channels, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, classes, 3, padding=1)
        ).eval()


def pointwise_onnx(path, weight, bias, *, shape, sigmoid=False, dtype=np.float32):
    """The file of a 1×1 convolution with this input shape (None: free axis), and a sigmoid if wanted."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    classes = weight.shape[0]
    nodes = [helper.make_node("Conv", ["image", "w", "b"], ["scores"])]
    if sigmoid:
        nodes.append(helper.make_node("Sigmoid", ["scores"], ["map"]))
    last = "map" if sigmoid else "scores"
    graph = helper.make_graph(
        nodes,
        "pointwise",
        [helper.make_tensor_value_info("image", kind, shape)],
        [helper.make_tensor_value_info(last, kind, (shape[0], classes, *shape[2:]))],
        [numpy_helper.from_array(weight.astype(dtype), "w"), numpy_helper.from_array(bias.astype(dtype), "b")],
    )
    return save(graph, path)


def save(graph, path):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def identity_graph(inputs, outputs):
    """Copies the first input to every output."""
    return helper.make_graph(
        [helper.make_node("Identity", [inputs[0]], [name]) for name in outputs],
        "copies",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (None, 2, None, None)) for name in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (None, 2, None, None)) for name in outputs],
    )
