"""The example's model: an ONNX file from elsewhere, on a picture from elsewhere."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import numpy as np
import pytest
import torch

from localsmooth.models import OnnxModel, OutputKind, Preprocessing, check_model

pytest.importorskip("skimage", reason="needs localsmooth[examples]")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs localsmooth[onnx]")
SPEC = importlib.util.find_spec("rapidocr_onnxruntime")
pytestmark = pytest.mark.skipif(SPEC is None, reason="rapidocr-onnxruntime is not installed")


@pytest.fixture
def example():
    path = Path(__file__).parents[2] / "examples" / "gallery" / "text_detection.py"
    spec = importlib.util.spec_from_file_location("text_detection", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def detector(example):
    preprocessing = Preprocessing(mean=0.5, std=0.5, pad_multiple=32)
    return OnnxModel(example.detector(), bounds=(0, 1), preprocessing=preprocessing, threshold=0.3)


def photograph(example):
    return np.repeat(np.float32(example.page()[None] / 255), 3, axis=0)


def test_the_detector_finds_the_lines_of_the_page_offline(example, monkeypatch):
    def refuse(*_):
        raise AssertionError("the gallery must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    page, model = photograph(example), detector(example)
    assert (page.min() >= 0, page.max() <= 1, page.shape) == (True, True, (3, 192, 384))
    label = model(torch.from_numpy(page)[None])[0].numpy()
    assert 0.1 < label.mean() < 0.3
    # Text is dark: the map has found it if what it marks is darker than its surroundings, line by line.
    rows = label[:, 20:200].mean(axis=1) > 0.5
    assert (np.diff(rows.astype(int)) == 1).sum() >= 6
    assert page[0][label == 1].mean() < page[0][label == 0].mean()

    check = check_model(model, page)
    assert (check.classes, check.output_shape, check.output) == (2, (192, 384), OutputKind.LABELS)


def test_preprocessing_equals_the_package(example):
    page = photograph(example)
    session = onnxruntime.InferenceSession(str(example.detector()), providers=["CPUExecutionProvider"])
    probability = session.run(None, {session.get_inputs()[0].name: ((page - 0.5) / 0.5)[None].astype(np.float32)})[0]
    label = detector(example)(torch.from_numpy(page)[None])[0].numpy()
    clear = np.abs(probability[0, 0] - 0.3) > 1e-4
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(label[clear], (probability[0, 0] > 0.3)[clear])
