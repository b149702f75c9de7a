"""Scores that are counted sum to at most 1 over the classes, so that a mean above 1/2 is a majority."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.flat import certify, recertify

from localsmooth.certificates import BernoulliScores
from localsmooth.collective import Naive
from localsmooth.execution import NoProgress
from localsmooth.layout import isotropic_layout
from localsmooth.models import CallableModel, Model, OnnxModel, OutputKind, TorchModel
from localsmooth.noise import Bernoulli
from localsmooth.runs import Chunk, SamplingPlan, Stage
from localsmooth.sampling import BatchSize, ChunkWorker, CountingScope, Job, Predictions, SamplingOptions
from localsmooth.sampling.region import Region
from localsmooth.sampling.score_counters import LabelsAndScores, ScoreBins, ScorePowers
from localsmooth.tasks.graphs import (
    AttributeSubject,
    EdgeIndexClassifier,
    graph_from_arrays,
    isotropic_node_layout,
    node_counters,
)
from localsmooth.tasks.record import RunRecordError

GRIDS = [1, 3, 100, 128, 1000, 1024, 4096]
TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def counted(outputs: torch.Tensor, kind: OutputKind, scale: int) -> np.ndarray:
    """Grid steps of the scores of one sample, outputs × classes; both ways to keep a candidate's score agree."""
    classes, size = outputs.shape[1:]
    region = Region(None, np.zeros(0), (size,), (slice(0, size),), None)
    predictions = Predictions(outputs, region, kind, classes, 1)
    assert not bool(predictions.faulty)
    scope = CountingScope((size,), classes, torch.device("cpu"), 1, {})
    sums = LabelsAndScores(scale).start(scope)
    sums.update(predictions)
    steps = sums.arrays()["score_sums"].numpy()
    candidate = torch.arange(size) % classes
    own = steps[np.arange(size), candidate.numpy()]
    scope = CountingScope((size,), classes, torch.device("cpu"), 1, {"candidate": candidate})
    for counter, name, read in (
        (ScorePowers(scale), "powers", lambda array: array[:, 0]),
        (ScoreBins(scale), "bins", lambda array: array.argmax(axis=1)),
    ):
        running = counter.start(scope)
        running.update(predictions)
        np.testing.assert_array_equal(read(running.arrays()[name].numpy()), own)
    return steps


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("classes", [2, 3, 21, 150, 5000])
def test_rounded_scores_sum_to_at_most_one(type_: torch.dtype, classes: int) -> None:
    """Of logits and of probabilities in any precision, ties and nearly hard decisions among them."""
    size = 2_000_000 // (classes * 50)
    generator = torch.Generator().manual_seed(classes)
    logits = torch.randn((1, classes, size), generator=generator) * torch.logspace(-3, 1, size)
    logits[:, :, :20] = 0
    logits[:, 1:, 20:40] = -torch.inf
    above = (torch.rand((1, classes, size), generator=generator) / classes * 2).clamp_max(1)
    for scale in GRIDS:
        for outputs, kind in (
            (logits.to(type_), OutputKind.LOGITS),
            (logits.softmax(dim=1).to(type_), OutputKind.PROBABILITIES),
            ((logits.softmax(dim=1) * 1.015).to(type_), OutputKind.PROBABILITIES),
            (above.to(type_), OutputKind.PROBABILITIES),
        ):
            steps = counted(outputs, kind, scale)
            assert (steps >= 0).all()
            assert (steps.sum(axis=1) <= scale).all(), (kind, scale, int(steps.sum(axis=1).max()))
            # Nothing but the rounding down is lost.
            assert (steps.sum(axis=1) >= scale - classes).all()


def test_what_is_no_probability_counts_as_nothing() -> None:
    odd = torch.tensor([[0.0, -0.25, -torch.inf, 1e30], [0.0, 0.75, 1.0, 1e30]])[None]
    np.testing.assert_array_equal(
        counted(odd, OutputKind.PROBABILITIES, 1024), [[0, 0], [0, 1024], [0, 1024], [512, 512]]
    )


def _excessive(batch: torch.Tensor) -> torch.Tensor:
    """Probabilities that sum to 1.015."""
    share = batch[:, 0] * 0.4 + 0.3
    return torch.stack([share, 1.015 - share], dim=1)


class _Excessive(torch.nn.Module):
    def __init__(self, type_: torch.dtype) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones((), dtype=type_))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return _excessive(batch) * self.weight


def _onnx(folder: Path) -> Model:
    """Two channels in half precision, handed through as they are."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT16
    ends = [helper.make_tensor_value_info(name, kind, [None, 2, 40]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", ends[:1], ends[1:])
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return OnnxModel(path, bounds=(0, 1), classes=2, output=OutputKind.PROBABILITIES)


@pytest.mark.parametrize("adapter", ["torch-half", "torch-bfloat16", "onnx", "callable"])
def test_every_adapter(adapter: str, tmp_path: Path) -> None:
    settings = {"bounds": (0, 1), "classes": 2, "output": OutputKind.PROBABILITIES}
    batch = torch.linspace(0, 1, 40)[None, None]
    if adapter == "onnx":
        model, batch = _onnx(tmp_path), _excessive(batch)
    elif adapter == "callable":
        model = CallableModel(lambda z: _excessive(torch.tensor(z)).numpy().astype(np.float16), name="e", **settings)
    else:
        type_ = torch.float16 if adapter == "torch-half" else torch.bfloat16
        model = TorchModel(_Excessive(type_).eval(), **settings)
    outputs = model(batch)
    assert outputs.dtype in (torch.float16, torch.bfloat16)
    assert float(outputs.double().sum(dim=1).min()) > 1.01
    for scale in GRIDS:
        assert (counted(outputs, model.output, scale).sum(axis=1) <= scale).all()


class _CoarseScores(torch.nn.Module):
    """Logits in half precision, no two alike."""

    def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        del edges
        place = torch.arange(len(attributes)) % 50
        return torch.stack([place * 0.037, place * -0.011, place * 0.02], dim=1).to(torch.bfloat16)


def test_graphs() -> None:
    graph = graph_from_arrays(np.zeros((50, 50), int), np.ones((50, 2), int), np.zeros(50, int))
    layout = isotropic_node_layout(50, addition=0.1, deletion=0.1)
    counters = type(node_counters())((LabelsAndScores(1024),), node_counters().bound)
    subject = AttributeSubject(EdgeIndexClassifier(_CoarseScores().eval(), 3), graph, layout, 0, counters)
    record = ChunkWorker(subject, BatchSize(8))(Job(Chunk(0, 0, Stage.CANDIDATE.value, 0, 1)))
    sums = next(array for name, array in record.counts.items() if name.endswith("score_sums")).sum(axis=1)
    assert (sums <= 1024).all()
    assert (sums >= 1024 - 3).all()


def test_half_precision_probabilities_do_not_certify_what_falls(tmp_path: Path) -> None:
    """One bit, and scores that sum to 1.015: their mean stays above 1/2 where another class has the larger one."""
    clean = 0.8
    noisy = (0.505 - 0.3 * clean) / 0.7

    def predict(batch: np.ndarray) -> np.ndarray:
        score = np.where(batch[:, 0] < 0.5, clean, noisy)
        return np.stack([score, 1.015 - score], axis=1).astype(np.float16)

    def mean(flipped: bool) -> np.ndarray:
        """Exact mean of the normalised scores, with the bit as it is or flipped."""
        scores = predict(np.array([[[0.0]], [[1.0]]]))[..., 0].astype(np.float64)
        return np.array([0.3, 0.7] if flipped else [0.7, 0.3]) @ (scores / scores.sum(axis=1, keepdims=True))

    model = CallableModel(predict, name="excess", bounds=(0, 1), classes=2, output=OutputKind.PROBABILITIES)
    result = certify(
        model,
        [np.zeros((1, 1), np.float32)],
        layout=isotropic_layout(0.3, (1,), (1,)),
        noise=Bernoulli(),
        plan=SamplingPlan(200, 200_000, seed=1, chunk_size=20_000),
        alpha=0.01,
        budgets=[0.0, 1.0],
        certificates=(BernoulliScores(),),
        bounds={"naive": Naive()},
        options=SamplingOptions(batch_size=20_000),
        progress=NoProgress(),
        out=tmp_path / "run",
    )
    assert mean(False).argmax() == 0
    assert mean(True).argmax() == 1
    assert result["prediction"].values.ravel().tolist() == [0]
    assert result["certified"].sel(target="ratio").values.ravel().tolist() == [1, 0]
    again = recertify(tmp_path / "run", certificates=(BernoulliScores(),))
    assert again["certified"].values[0, 0, -1].tolist() == [1, 0]


def test_scores_that_an_earlier_version_counted_are_not_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localsmooth.sampling.score_counters.NORMALISED", {})
    model = CallableModel(
        lambda z: np.stack([1 - z[:, 0], z[:, 0]], axis=1), name="s", bounds=(0, 1), classes=2, output=OutputKind.LOGITS
    )
    certify(
        model,
        [np.zeros((1, 3), np.float32)],
        layout=isotropic_layout(0.1, (3,), (3,)),
        noise=Bernoulli(),
        plan=SamplingPlan(20, 200, seed=1),
        alpha=0.1,
        budgets=[0.0, 1.0],
        certificates=(BernoulliScores(),),
        progress=NoProgress(),
        out=tmp_path / "run",
    )
    monkeypatch.undo()
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())
    recertify(tmp_path / "run", certificates=())
    with pytest.raises(RunRecordError, match="without normalising"):
        recertify(tmp_path / "run", certificates=(BernoulliScores(),))
