"""Labels that would fit if classes had other numbers are named, and others are not."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import localsmooth as ls
from localsmooth.cli.summary import print_summary
from localsmooth.execution import NoProgress
from localsmooth.metrics import numbering_words
from localsmooth.report import render_report

IMAGE = np.linspace(0, 1, 60, dtype=np.float32).reshape(1, 6, 10)
TRUE = (IMAGE[0] * 3).astype(np.int64).clip(0, 2)


def thirds(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 0] * 3).astype(np.int64).clip(0, 2)


def result(labels: np.ndarray | None, classes: int = 3):
    model = ls.CallableModel(thirds, name="thirds", bounds=None, classes=classes, output=ls.OutputKind.LABELS)
    task = ls.ArrayTask(model, [IMAGE], None if labels is None else [labels], class_names=list("abcd")[:classes])
    smoothing = ls.Smoothing(ls.GridLayout((1, 1), 0.05, 0.05), ls.SamplingPlan(20, 200))
    return ls.certify(task, smoothing, ls.Settings(0.05, [0.0, 0.05]), run=ls.Run(progress=NoProgress()))


def test_labels_that_count_from_elsewhere_are_named_by_console_and_page() -> None:
    made = result((TRUE + 1) % 3)
    said = numbering_words(made)
    assert said.startswith("Without noise the model agrees with 0 % of the labels, and would with 100 % if its classes")
    assert any(f'labels say "{label}" where it says "{said_by}"' in said for label, said_by in ("ba", "cb", "ac"))
    text = io.StringIO()
    print_summary({"thirds": made}, Console(file=text, width=400))
    assert said in text.getvalue()
    assert "are labels and classes numbered alike?" in render_report({"thirds": made})


@pytest.mark.parametrize(
    "labels",
    [
        TRUE,
        None,
        np.zeros_like(TRUE),  # of one class alone nothing can be told
        np.random.default_rng(0).integers(0, 3, TRUE.shape),  # wrong, and so under other numbers
        np.where(IMAGE[0] < 0.4, (TRUE + 1) % 3, TRUE),  # mostly right
    ],
)
def test_other_labels_are_not(labels: np.ndarray | None) -> None:
    assert numbering_words(result(labels)) == ""


def test_few_outputs_of_many_classes_tell_nothing() -> None:
    """Nearly every pair of a wrong label and a prediction comes once, so that some other numbers fit nearly all."""
    labels = np.random.default_rng(0).permutation(TRUE.size).reshape(TRUE.shape)

    def ranks(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] * (TRUE.size - 1)).round().astype(np.int64).clip(0, TRUE.size - 1)

    model = ls.CallableModel(ranks, name="ranks", bounds=None, classes=TRUE.size, output=ls.OutputKind.LABELS)
    smoothing = ls.Smoothing(ls.GridLayout((1, 1), 0.001, 0.001), ls.SamplingPlan(20, 200))
    quiet = ls.Run(progress=NoProgress())
    made = ls.certify(ls.ArrayTask(model, [IMAGE], [labels]), smoothing, ls.Settings(0.05, [0.0]), run=quiet)
    assert numbering_words(made) == ""
