"""What makes no sense is refused by name, without the checks of the tests too, and before anything is drawn."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import localsmooth as ls
from localsmooth import baselines, certificates, graphs
from localsmooth.execution import NoProgress
from localsmooth.layout import Partition, isotropic_layout
from localsmooth.results import run_info
from localsmooth.runs import OtherRunError
from localsmooth.tasks.arrays import Flips, Kind, PerPosition
from localsmooth.tasks.targets import Weighted
from localsmooth.tasks.tokens import TokenTask
from tests.seeding import seeded

SCRIPT = """
import numpy as np, localsmooth as ls
from localsmooth import baselines, certificates, graphs
from localsmooth.tasks.arrays import PerPosition
from localsmooth.tasks.points import PointTask
from localsmooth.tasks.targets import Foreground, OfClass, Weighted
from localsmooth.tasks.tokens import TokenTask

model = ls.CallableModel(lambda batch: (batch.sum(1) > 0).astype(np.int64), name="m", classes=2,
                         output=ls.OutputKind.LABELS, bounds=None)
image = np.zeros((2, 4, 6), np.float32)
cases = {
    "certificates": [lambda: ls.Settings(0.1, [0], certificates=certificates.GaussianVotes()),
                     lambda: ls.Settings(0.1, [0], certificates=["gaussian-votes"]),
                     lambda: ls.Settings(0.1, [0], certificates=[certificates.GaussianVotes]),
                     lambda: graphs.GraphSettings(0.1, certificates=certificates.RenyiVotes())],
    "simultaneous": [lambda: ls.Settings(0.1, [0], simultaneous="bonferroni"),
                     lambda: ls.Settings(0.1, [0], simultaneous=ls.Bonferroni),
                     lambda: graphs.GraphSettings(0.1, simultaneous="bonferroni")],
    "budgets": [lambda: ls.Settings(0.1, range(10**9)), lambda: ls.Settings(0.1, np.broadcast_to(0.5, 10**9)),
                lambda: ls.Settings(0.1, [])],
    "score_bound": [lambda: ls.Settings(0.1, [0], score_bound="betting"),
                    lambda: graphs.GraphSettings(0.1, score_bound="betting")],
    "bounds": [lambda: ls.Settings(0.1, [0], bounds=[]), lambda: graphs.GraphSettings(0.1, bounds=[]),
               lambda: graphs.GraphSettings(0.1, bounds=["best"])],
    "threat": [lambda: ls.Settings(0.1, [0], threat=PerPosition), lambda: ls.Settings(0.1, [0], threat="ball")],
    "method": [lambda: ls.Settings(0.1, [0], method=baselines.Cohen)],
    "baseline": [lambda: graphs.GraphSettings(0.1, baseline=baselines.Cohen())],
    "limits": [lambda: graphs.GraphSettings(0.1, limits={})],
    "alpha": [lambda: ls.Settings(1.0, [0]), lambda: graphs.GraphSettings("0.1"), lambda: graphs.GraphSettings(None),
              lambda: graphs.GraphSettings(float("nan"))],
    "layout": [lambda: ls.Smoothing(ls.GridLayout, ls.SamplingPlan(1, 1)), lambda: ls.Smoothing([3], None)],
    "stop": [lambda: ls.SamplingPlan(1, 1, stop=ls.StopWhenDecided)],
    "images": [lambda: ls.ArrayTask(model, None), lambda: ls.ArrayTask(model, (x for x in [image]))],
    "labels": [lambda: ls.ArrayTask(model, [image], labels=3)],
    "ignore_label": [lambda: ls.ArrayTask(model, [image], ignore_label="x")],
    "class_names": [lambda: ls.ArrayTask(model, [image], class_names=3),
                    lambda: ls.ArrayTask(model, [image], class_names=["1", 1]),
                    lambda: PointTask(model, [image[0]], class_names=["a", "a"])],
    "clouds": [lambda: PointTask(model, None)],
    "names": [lambda: PointTask(model, [image[0]], names=3), lambda: PointTask(model, [image[0]], names="a")],
    "sequences": [lambda: TokenTask(model, 3)],
    "words": [lambda: TokenTask(model, [image[0]], words=3), lambda: TokenTask(model, [image[0]], words=["abcd"])],
    "out": [lambda: ls.Run(out=3)],
    "name": [lambda: ls.Run(name=3), lambda: Weighted([1.0], name=3)],
    "store": [lambda: ls.Run(store=3)],
    "part": [lambda: ls.Run(part="1/2")],
    "progress": [lambda: ls.Run(progress=3)],
    "options": [lambda: ls.Run(options={})],
    "scores": [lambda: ls.Run(scores="histogram")],
    "configuration": [lambda: ls.Run(configuration=3)],
    "k": [lambda given=given: ls.bounds.KFamilywise(given) for given in (2.5, float("nan"), "3", True)],
    "spare": [lambda given=given: ls.bounds.JointCount(spare=given) for given in (2.5, float("nan"), "3", True)],
    "of": [lambda given=given: OfClass(given) for given in (None, 1.0, True, [1])],
    "background": [lambda given=given: Foreground(given) for given in ("sky", 0, (None,), (1.0,))],
    "weights": [lambda given=given: Weighted(given) for given in (None, "a", [["a"]], [[1], [1, 2]], [1j])],
    "mean": [lambda: ls.Preprocessing(mean="a")],
    "pad_multiple": [lambda: ls.Preprocessing(pad_multiple=2.5)],
    "task": [lambda: ls.certify(model, [image], None)],
    "run": [lambda: ls.recertify(None), lambda: ls.settings_of(3)],
}
for field, calls in cases.items():
    for place, call in enumerate(calls):
        try:
            call()
        except ls.InvalidInputError as error:
            assert error.field == field, (field, place, error)
        else:
            raise AssertionError((field, place))
"""


def test_arguments_of_another_kind_are_named_without_the_checks_of_tests():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=120)


@pytest.mark.parametrize("also", [[], [certificates.GaussianVotes()]])
@pytest.mark.parametrize(
    "rule", [ls.bounds.JointCount(), ls.bounds.JointAndBonferroni(), ls.bounds.FixedThresholdHolm(0.8)]
)
def test_scores_are_not_drawn_for_rules_that_cannot_bound_them(rule, also):
    """Settings are made before anything is drawn."""
    with pytest.raises(ls.InvalidInputError, match=r"simultaneous: .* gives no output a level of its own"):
        ls.Settings(0.05, [0.0], simultaneous=rule, certificates=[certificates.GaussianScores(), *also])
    for fit in (ls.bounds.CandidateWeights(), ls.bounds.KFamilywise(2)):
        ls.Settings(0.05, [0.0], simultaneous=fit, certificates=[certificates.GaussianScores(), *also])


def drawn_of(batch: np.ndarray) -> np.ndarray:
    return (batch.sum(1) > 0).astype(np.int64)


MODEL = ls.CallableModel(drawn_of, name="m", classes=2, output=ls.OutputKind.LABELS, bounds=None)


def test_a_model_whose_classes_share_a_name_needs_items_that_name_them():
    """`class:x` would be the first of them alone."""
    named = copy.copy(MODEL)
    named.class_names = ("x", "x")
    smoothing = ls.Smoothing(ls.GridLayout((1,), 0.1, 0.1), ls.SamplingPlan(20, 100))

    def classes(**names):
        task = ls.ArrayTask(named, np.ones((1, 1, 3), np.float32), **names)
        return run_info(ls.certify(task, smoothing, ls.Settings(0.1, [0.0], targets=["class:1"]))).class_names

    with pytest.raises(ls.InvalidInputError, match=r'class_names: two classes are called "x"'):
        classes()
    assert classes(class_names=["x", "y"]) == ("x", "y")


@pytest.mark.parametrize(
    ("noise", "changes", "field"),
    [
        (ls.Gaussian(), {"certificates": [certificates.UniformVotes()]}, "certificate"),
        (ls.Uniform(), {"certificates": [certificates.GaussianVotes()]}, "certificate"),
        (ls.Uniform(), {"certificates": [certificates.GaussianScores()]}, "certificate"),
        (ls.Gaussian(), {"threat": Flips()}, "threat"),
        (ls.Bernoulli(), {"threat": Flips(Kind.ADDITIONS)}, "threat"),
        (ls.Bernoulli(), {"threat": PerPosition()}, "threat"),
        (ls.Gaussian(), {"targets": [Weighted(np.ones((3, 2)))]}, "weights"),
    ],
)
@pytest.mark.parametrize("stop", [None, ls.StopWhenDecided()])
def test_what_does_not_fit_the_noise_is_refused_before_anything_is_drawn(noise, changes, field, stop, tmp_path: Path):
    bits = np.ones((1, 2, 3), np.float32)
    task, smoothing = (
        ls.ArrayTask(MODEL, [bits]),
        ls.Smoothing(ls.GridLayout((1, 2), 0.1, 0.2), ls.SamplingPlan(20, 2000, stop=stop), noise),
    )
    settings = ls.Settings(0.05, [0.0, 1.0], **changes)
    if stop is not None and settings.needs_scores:
        field = "stop|certificate"
    with pytest.raises(ls.InvalidInputError, match=f"^({field})"):
        ls.certify(task, smoothing, settings, run=ls.Run(out=tmp_path / "run", progress=NoProgress()))
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_a_baseline_with_nothing_to_count_is_refused_before_anything_is_drawn(tmp_path: Path):
    task = ls.ArrayTask(MODEL, [np.ones((1, 2, 3), np.float32)], [np.array([[0, 0, 0], [0, 1, 1]])])
    smoothing = ls.Smoothing(ls.GridLayout((1, 1), 0.1, 0.1), ls.SamplingPlan(20, 2000))
    settings = ls.Settings(0.05, [0.0, 1.0], method=baselines.Cohen(), targets=["balanced"])
    with pytest.raises(ls.InvalidInputError, match="targets: balanced"):
        ls.certify(task, smoothing, settings, run=ls.Run(out=tmp_path / "run", progress=NoProgress()))
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_what_does_not_fit_a_graph_is_refused_before_anything_is_drawn(tmp_path: Path):
    graph = graphs.digit_graph(per_digit=4)
    halves = Partition((np.arange(graph.nodes) % 2).astype(np.int32))
    layout = ls.Layout(halves, halves, np.array([[[0.02, 0.4], [0.02, 0.6]], [[0.02, 0.6], [0.02, 0.4]]]))
    with seeded(0):
        network = graphs.GCN(graph.width, graph.classes).eval()
    classifier = graphs.EdgeIndexClassifier(network, graph.classes)
    task, settings = graphs.GraphTask(classifier, graph, np.arange(3)), graphs.GraphSettings(0.1)
    for wrong, field in (
        (replace(settings, certificates=(certificates.GaussianVotes(),)), "certificate"),
        (replace(settings, strictly_local=True), "strictly_local"),
        (replace(settings, baseline=baselines.SparseSmooth()), "layout"),
        (replace(settings, targets=(Weighted(np.ones(4)),)), "weights"),
    ):
        with pytest.raises(ls.InvalidInputError, match=f"^{field}"):
            ls.certify(task, ls.Smoothing(layout, ls.SamplingPlan(9, 200)), wrong, run=ls.Run(out=tmp_path / "run"))
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_a_directory_keeps_the_kind_of_input_that_it_was_finished_with(tmp_path: Path):
    """The same arrays are the same tallies, whatever they are called; the words of a record would be lost."""
    tokens = np.ones((5, 3), np.float32)
    smoothing = ls.Smoothing(isotropic_layout(0.3, (5,), (5,)), ls.SamplingPlan(9, 200))
    settings, run = ls.Settings(0.05, [0.0]), ls.Run(out=tmp_path, progress=NoProgress())
    ls.certify(TokenTask(MODEL, [tokens], words=[list("abcde")]), smoothing, settings, run=run)
    with pytest.raises(OtherRunError, match="finished run on tokens"):
        ls.certify(ls.ArrayTask(MODEL, [tokens.T]), smoothing, settings, run=run)
    assert run_info(ls.recertify(tmp_path)).task == "tokens"
