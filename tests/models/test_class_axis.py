"""Where the classes of an output lie is said or seen, and never guessed: every axis order of the same scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import localsmooth as ls
from localsmooth.errors import InvalidInputError
from localsmooth.models import CallableModel, OutputKind, TorchModel

CLASSES = 3


class Scores(nn.Module):
    """Scores (batch, 3, *space) that depend on every input, reordered by a function."""

    def __init__(self, reorder: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.reorder = reorder

    def forward(self, batch: torch.Tensor) -> Any:
        first = batch[:, :1]
        return self.reorder(torch.cat([first, 1 - first, (first - 0.5).abs()], dim=1))


def labels(reorder: Callable[[torch.Tensor], Any], shape: tuple[int, ...], **options: Any) -> torch.Tensor:
    batch = torch.rand((2, 1, *shape), generator=torch.Generator().manual_seed(0))
    model = TorchModel(Scores(reorder).eval(), bounds=(0, 1), **({"classes": CLASSES} | options))
    made = model(batch)
    return made.argmax(dim=1) if made.ndim > 1 + len(shape) else made


@pytest.mark.parametrize("shape", [(5, 4), (3, 3), (3, 4), (4, 3), (7,), (3,), (2, 3, 3)])
@pytest.mark.parametrize("axis", [-1, "last"])
def test_classes_that_are_said_to_lie_last_are_found_there(shape: tuple[int, ...], axis: int | str) -> None:
    wanted = labels(lambda made: made, shape, class_axis=1)
    place = len(shape) + 1 if axis == "last" else axis
    assert (labels(lambda made: made.movedim(1, -1), shape, class_axis=place) == wanted).all()


@pytest.mark.parametrize("shape", [(5, 4), (3, 4), (4, 3), (7,)])
def test_the_shape_tells_where_it_can(shape: tuple[int, ...]) -> None:
    assert labels(lambda made: made, shape).shape == (2, *shape)
    with pytest.raises(InvalidInputError, match="class_axis=-1"):
        labels(lambda made: made.movedim(1, -1), shape)


def test_an_axis_that_is_not_that_of_the_classes_is_named() -> None:
    with pytest.raises(InvalidInputError, match="class_axis: the axis that it names has 4 entries where 3 classes"):
        labels(lambda made: made, (5, 4), class_axis=-1)


@pytest.mark.parametrize("shape", [(3, 3), (3,), (3, 3, 3)])
def test_where_it_does_not_it_must_be_said(shape: tuple[int, ...]) -> None:
    for reorder in (lambda made: made, lambda made: made.movedim(1, -1)):
        with pytest.raises(InvalidInputError, match="cannot be told"):
            labels(reorder, shape)


def test_coarse_scores_of_square_grids_must_be_said_too() -> None:
    coarse = nn.AvgPool2d(2)
    with pytest.raises(InvalidInputError, match="class_axis"):
        labels(lambda made: coarse(made), (6, 6))
    assert labels(lambda made: coarse(made), (6, 6), class_axis=1).shape == (2, 3, 3)
    assert labels(lambda made: coarse(made), (6, 8)).shape == (2, 3, 4)


class Tagged:
    """What taggers of a well-known library return."""

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits


@pytest.mark.parametrize("tokens", [3, 5])
def test_logits_of_tokens_are_not_resized_and_their_classes_are_said(tokens: int) -> None:
    wanted = labels(lambda made: made, (tokens,), class_axis=1)
    with pytest.raises(InvalidInputError, match="class_axis"):
        labels(lambda made: Tagged(made.movedim(1, -1)), (tokens,))
    assert (labels(lambda made: Tagged(made.movedim(1, -1)), (tokens,), class_axis=2) == wanted).all()
    assert (labels(lambda made: Tagged(made), (tokens,), class_axis=1) == wanted).all()


def test_labels_with_an_axis_of_one_and_thresholds_without_a_channel() -> None:
    options = {"output": OutputKind.LABELS}
    wanted = labels(lambda made: made.argmax(1), (5, 4), **options)
    assert (labels(lambda made: made.argmax(1, keepdim=True), (5, 4), class_axis=1, **options) == wanted).all()
    with pytest.raises(InvalidInputError, match="several entries"):
        labels(lambda made: made.argmax(1), (5, 4), class_axis=1, **options)
    one: dict[str, Any] = {"classes": None, "threshold": 0.5}
    wanted = labels(lambda made: made[:, :1], (5, 4), **one)
    with pytest.raises(InvalidInputError, match='class_axis="none"'):
        labels(lambda made: made[:, 0], (5, 4), **one)
    assert (labels(lambda made: made[:, 0], (5, 4), class_axis="none", **one) == wanted).all()
    assert (labels(lambda made: made[:, :1].movedim(1, -1), (5, 4), class_axis=-1, **one) == wanted).all()


@pytest.mark.parametrize("axis", [0, True, "none"])
def test_axes_that_are_none(axis: Any) -> None:
    with pytest.raises(InvalidInputError, match="class_axis"):
        labels(lambda made: made, (5, 4), class_axis=axis)


@pytest.mark.parametrize("axis", [9, -9])
def test_axes_that_are_not_there(axis: int) -> None:
    with pytest.raises(InvalidInputError, match="there is no axis"):
        labels(lambda made: made, (5, 4), class_axis=axis)


def test_runs_know_the_axis() -> None:
    def marks(**options: Any) -> str:
        return CallableModel(np.asarray, name="m", bounds=None, classes=3, **options).fingerprint()

    assert marks() == marks(class_axis=None)
    assert len({marks(), marks(class_axis=1), marks(class_axis=-1)}) == 3


def test_channels_last_files(tmp_path: Path) -> None:
    onnx = pytest.importorskip("localsmooth.models").OnnxModel
    pytest.importorskip("onnxruntime")
    network = Scores(lambda made: made.movedim(1, -1)).eval()
    batch = torch.rand((2, 1, 5, 4), generator=torch.Generator().manual_seed(0))
    path = tmp_path / "last.onnx"
    torch.onnx.export(network, (batch,), str(path), dynamo=False)
    model = onnx(path, bounds=(0, 1), class_axis=-1)
    assert model.classes == CLASSES  # read off the file, at the axis that was said
    wanted = TorchModel(network, bounds=(0, 1), classes=CLASSES, class_axis=3)(batch)
    assert (model(batch).argmax(1) == wanted.argmax(1)).all()
    with pytest.raises(InvalidInputError, match="class_axis"):
        onnx(path, bounds=(0, 1))(batch)
    for wrong, classes in ((1, 5), (2, 4)):
        with pytest.raises(InvalidInputError, match=rf"class_axis: .* {classes} classes on axis {wrong} .*axis 3 they"):
            onnx(path, bounds=(0, 1), class_axis=wrong)(batch)
        assert onnx(path, bounds=(0, 1), class_axis=wrong, classes=classes)(batch).shape[1] == classes
    padded = tmp_path / "padded.onnx"
    torch.onnx.export(network, (torch.zeros(2, 1, 8, 8),), str(padded), dynamo=False)
    with pytest.raises(InvalidInputError, match=r"class_axis: .* 8 classes on axis 1 .*axis 3 they"):
        onnx(padded, bounds=(0, 1), class_axis=1, preprocessing=ls.Preprocessing(pad_multiple=8))(batch)


def test_whole_runs_know_what_is_said_and_what_was_told_once() -> None:
    def certified(shape: tuple[int, ...], layout: ls.GridLayout, **options: Any) -> int:
        model = TorchModel(Scores(lambda made: made).eval(), bounds=(0, 1), classes=CLASSES, **options)
        task = ls.ArrayTask(model, np.random.default_rng(0).random((1, 1, *shape)).astype(np.float32))
        smoothing = ls.Smoothing(layout, ls.SamplingPlan(8, 16))
        run = ls.Run(options=ls.SamplingOptions(batch_size=4))
        return ls.certify(task, smoothing, ls.Settings(0.5, [0.0]), run=run)["total"].values.ravel()[0]

    assert certified((3, 3), ls.GridLayout((1, 1), 0.1, 0.1), class_axis=1) == 9
    with pytest.raises(InvalidInputError, match="cannot be told"):
        certified((3, 3), ls.GridLayout((1, 1), 0.1, 0.1))
    # Windows of 3 × 3 do not tell, and the whole image did.
    assert certified((3, 6), ls.GridLayout((1, 2), 0.1, 0.1, window_margin=0)) == 18
