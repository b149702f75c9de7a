"""A result that certifies nothing says why, and only such a result does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rich.console import Console

import localsmooth as ls
from localsmooth.cli.summary import print_summary
from localsmooth.execution import NoProgress
from localsmooth.report import reach_of_result, render_report, why_nothing

SHAPE = (4, 6)
SIGMA = 0.3


def result(thresholds: float | np.ndarray, budgets: Any, n: int = 300, **asked: Any) -> Any:
    """Of a model that says class 1 where an input exceeds its threshold: the input is 0 everywhere."""

    def predict(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] > thresholds * np.ones(SHAPE)).astype(np.int64)

    model = ls.CallableModel(predict, name="threshold", bounds=None, classes=2, output=ls.OutputKind.LABELS)
    task = ls.ArrayTask(model, [np.zeros((1, *SHAPE), np.float32)], asked.pop("labels", None))
    smoothing = ls.Smoothing(ls.GridLayout((1, 1), SIGMA, SIGMA), ls.SamplingPlan(100, n, seed=2))
    return ls.certify(task, smoothing, ls.Settings(0.01, budgets, **asked), run=ls.Run(progress=NoProgress()))


def test_a_result_that_certifies_something_has_nothing_to_explain() -> None:
    some = result(1.0, [0.0, 0.2])
    assert why_nothing(some) == []
    assert reach_of_result(some).startswith("With these numbers of samples, noise and α, certificates can reach ε = ")
    assert why_nothing(result(0.0, [0.0])) == []


def test_votes_that_are_not_unanimous() -> None:
    """Pr = Φ(.2): their own radius is .06, which N₂ → ∞ would come close to."""
    said = why_nothing(result(0.2 * SIGMA, [0.0, 0.2], n=2000))
    assert said[0] == "Nothing is certified beyond ε = 0."
    assert said[1].startswith("The votes are not unanimous enough: the median output has 5")
    assert said[2].startswith("More samples would help up to ε ≈ 0.0")


def test_votes_of_which_most_are_unanimous() -> None:
    """The largest budget that unanimous votes of all outputs reach, where a third of the outputs has no such votes."""
    thresholds = np.full(SHAPE, 10 * SIGMA)
    thresholds.ravel()[::3] = 0.1 * SIGMA
    farthest = float(result(thresholds, "auto")["budget"].values[-1])
    said = why_nothing(result(thresholds, [0.0, farthest]))
    assert said[1] == "Too few outputs have unanimous votes for what N₂ = 300 can reach; the median output has."


def test_votes_that_no_samples_make_unanimous() -> None:
    """A third for the last class, less for the others, and the first without noise: no class is the majority."""

    def predict(batch: np.ndarray) -> np.ndarray:
        return (np.abs(batch[:, 0] + 0 * np.ones(SHAPE)) * 5 / SIGMA).astype(np.int64).clip(0, 5)

    model = ls.CallableModel(predict, name="bins", bounds=None, classes=6, output=ls.OutputKind.LABELS)
    task = ls.ArrayTask(model, [np.zeros((1, *SHAPE), np.float32)])
    smoothing = ls.Smoothing(ls.GridLayout((1, 1), SIGMA, SIGMA), ls.SamplingPlan(100, 2000, seed=2))
    none = ls.certify(task, smoothing, ls.Settings(0.01, [0.0, 0.2]), run=ls.Run(progress=NoProgress()))
    said = why_nothing(none)
    assert "More samples would not help: there is too much noise, or the model is too unsure here." in said
    assert said[-1].startswith("Only ")


def test_too_few_samples() -> None:
    said = why_nothing(result(9.0, [0.0, 2.0]))
    assert said[1].startswith(
        "There are too few samples for so many outputs: with N₂ = 300 and α = 0.01, unanimous votes"
    )
    assert said[1].endswith("and the smallest budget is 2. Draw more samples, or name smaller budgets.")


def test_one_target_alone() -> None:
    """All outputs are certified, and none of them is right."""
    wrong = result(1.0, [0.0, 0.2], labels=[np.ones(SHAPE, np.int64)])
    said = why_nothing(wrong)
    assert said == [
        "Certified accuracy: nothing is certified beyond ε = 0. Of what it counts, 0.0 % is predicted so at all."
    ]


def test_page_and_terminal_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    none = result(9.0, [0.0, 2.0])
    page = render_report(none)
    print_summary({"localized": none}, Console(width=400))
    shown = capsys.readouterr().out
    for sentence in (*why_nothing(none), reach_of_result(none)):
        assert sentence in page
        assert sentence in shown
