"""Models that are told the noise: what they get, and from whom."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.models.networks import local, pointwise, pointwise_onnx
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.execution import ProcessExecutor, SerialExecutor, ThreadExecutor, sample
from localsmooth.layout import GridLayout, Layout, derived, grid_layout, item_digest, masked, windowed
from localsmooth.locality import measure_locality
from localsmooth.models import CallableModel, Model, OnnxModel, OutputKind, Preprocessing, TorchModel, encoded_levels
from localsmooth.noise import Gaussian, SparseFlips
from localsmooth.runs import DirectoryStore, SamplingPlan, StoreError
from localsmooth.sampling import ArraySubject, SamplingOptions
from localsmooth.testing import ModelContract

SHAPE = (8, 12)
PLAN = SamplingPlan(n_candidate=10, n_bound=45, seed=3, chunk_size=20)
OPTIONS = SamplingOptions(batch_size=8, channels_last=False)
BOUNDS = (0.0, 2.0)


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((1, *SHAPE)).astype(np.float32)


def told_model(**options: object) -> TorchModel:
    return TorchModel(local(channels=2), bounds=BOUNDS, classes=3, told=True, **options)  # type: ignore[arg-type]


class Told:
    """An array function of the level alone: class 1 where it exceeds the range."""

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        return (batch[:, -1] > 0).astype(np.int64)


class TestTorch(ModelContract):
    def make(self) -> Model:
        return told_model()

    def item(self) -> np.ndarray:
        return image()


class TestTorchThatIsNotTold(ModelContract):
    def make(self) -> Model:
        return TorchModel(local(channels=1), bounds=BOUNDS, classes=3)

    def item(self) -> np.ndarray:
        return image()


class TestPadded(ModelContract):
    def make(self) -> Model:
        return told_model(preprocessing=Preprocessing(0.5, 0.25, pad_multiple=5, pad_value=0.3), channels_last=True)

    def item(self) -> np.ndarray:
        return image()


class TestCallable(ModelContract):
    def make(self) -> Model:
        return CallableModel(np.copy, name="copy", bounds=BOUNDS, classes=2, told=True)

    def item(self) -> np.ndarray:
        return image()


class TestOnnx(ModelContract):
    @pytest.fixture(autouse=True)
    def file(self, tmp_path: Path) -> None:
        generator = np.random.default_rng(0)
        weight, bias = generator.normal(size=(3, 2, 1, 1)), generator.normal(size=3)
        self.path = tmp_path / "told.onnx"
        pointwise_onnx(self.path, weight, bias, shape=(None, 2, None, None))

    def make(self) -> Model:
        return OnnxModel(self.path, bounds=BOUNDS, told=True)

    def item(self) -> np.ndarray:
        return image()


def test_encoding_is_defined_everywhere_and_grows() -> None:
    levels = np.array([0.0, 1e-9, 0.5, 2.0, 4.0, 1e9, np.inf])
    made = encoded_levels(levels, BOUNDS)
    np.testing.assert_allclose(made, [-5, -5, np.log(0.25), 0, np.log(2), 5, 5], rtol=1e-6)
    assert made.dtype == np.float32
    np.testing.assert_allclose(encoded_levels(2.0, None), np.log(2), rtol=1e-6)


def test_the_network_gets_the_channel_behind_the_normalised_and_padded_others() -> None:
    seen: list[np.ndarray] = []

    def watch(batch: np.ndarray) -> np.ndarray:
        seen.append(batch.copy())
        return np.zeros((len(batch), 2, *batch.shape[2:]), np.float32)

    model = CallableModel(
        watch,
        name="watch",
        bounds=BOUNDS,
        classes=2,
        told=True,
        preprocessing=Preprocessing(0.5, 0.25, pad_multiple=5, pad_value=0.5),
    )
    levels = np.random.default_rng(0).uniform(0.1, 1, SHAPE)
    model.under(levels)(torch.from_numpy(image())[None].repeat(2, 1, 1, 1))
    (batch,) = seen
    assert batch.shape == (2, 2, 10, 15)
    np.testing.assert_allclose(batch[:, 0, :8, :12], np.repeat((image() - 0.5) / 0.25, 2, axis=0), rtol=1e-6)
    np.testing.assert_array_equal(batch[:, 1, :8, :12], np.repeat(encoded_levels(levels, BOUNDS)[None], 2, axis=0))
    assert (batch[:, 1, 8:] == -5).all()
    assert (batch[:, 1, :, 12:] == -5).all()


class Watching(Model):
    """Notes under which levels it is asked what."""

    told = True

    def __init__(self, levels: np.ndarray | float | None = None, noted: list[object] | None = None) -> None:
        self.bounds, self.output, self.classes = BOUNDS, OutputKind.LOGITS, 2
        self.device = torch.device("cpu")
        self.levels = levels
        self.noted: list[object] = [] if noted is None else noted

    def under(self, levels: np.ndarray | float) -> Model:
        return Watching(np.array(levels), self.noted)

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        assert self.levels is not None, "asked without levels"
        self.noted.append((tuple(batch.shape[2:]), self.levels))
        return torch.stack([batch.sum(dim=1), -batch.sum(dim=1)], dim=1)

    def fingerprint(self) -> str:
        return "watching"


def layouts() -> list[Layout]:
    grid = grid_layout((2, 3), SHAPE, minimum=0.3, maximum=1.0)
    return [grid, windowed(grid, 1), masked(grid, 1), windowed(masked(grid, 3), 1)]


@pytest.mark.parametrize("number", range(4))
def test_a_group_is_told_its_own_levels_which_no_item_changes(number: int) -> None:
    """The very level map of the noise, cropped like the input; two items with one layout are told the same."""
    layout, told = layouts()[number], []
    for seed in (0, 1):
        model = Watching()
        subject = ArraySubject(model, [torch.from_numpy(image(seed))], [layout], Gaussian(), 0)
        for group in range(layout.outputs.count):
            prepared = subject.prepare(0, group)
            before = len(model.noted)
            prepared.predict(prepared.draw(3, subject.stream((0, group))))
            subject.trial_labels(0, group, (0, group, 9), 2)
            expected = layout.level_map(group, layout.view(group).inputs or ())
            assert len(model.noted) == before + 2
            for shape, levels in model.noted[before:]:  # type: ignore[misc]
                assert shape == levels.shape
                np.testing.assert_array_equal(levels, expected)
        told.append(model.noted)
    for one, other in zip(*told, strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_without_noise_it_is_told_that_there_is_none() -> None:
    for layout in layouts():
        model = Watching()
        ArraySubject(model, [torch.from_numpy(image())], [layout], Gaussian(), 0).clean_labels(0)
        assert model.noted
        assert all(not np.any(levels) for _, levels in model.noted)  # type: ignore[misc]


def test_a_layout_that_was_computed_from_the_item_is_refused() -> None:
    levels = derived(np.full((1, 1), 0.4), item_digest(image()))
    layout = GridLayout((1, 1), 1.0, 1.0, levels=levels).layout((1, *SHAPE), SHAPE)
    with pytest.raises(InvalidInputError, match="computed from"):
        sample(told_model(), [image()], [layout], Gaussian(), PLAN, options=OPTIONS)


def test_levels_of_several_parameters_are_refused() -> None:
    layout = grid_layout((2, 2), SHAPE, minimum=(0.1, 0.2), maximum=(0.2, 0.3))
    with pytest.raises(InvalidInputError, match="several parameters"):
        sample(told_model(), [image().round()], [layout], SparseFlips(), PLAN, options=OPTIONS)


@pytest.mark.parametrize(
    "executor", [SerialExecutor(), ThreadExecutor(2), ProcessExecutor(2)], ids=lambda e: type(e).__name__
)
def test_tallies_are_those_of_a_network_with_constants(executor, tmp_path: Path) -> None:
    """Each group against an untold network into which the group's channel is written by hand, in stored runs too."""
    layout = windowed(grid_layout((2, 2), SHAPE, minimum=0.3, maximum=1.0), 2)
    with DirectoryStore(tmp_path / "run") as store:
        made = sample(told_model(), [image()], [layout], Gaussian(), PLAN, store, options=OPTIONS, executor=executor)[0]
    for group in range(4):
        crop = layout.view(group).inputs
        channel = torch.from_numpy(encoded_levels(layout.level_map(group, crop or ()), BOUNDS))
        alone = TorchModel(_Constant(channel), bounds=BOUNDS, classes=3)
        expected = sample(alone, [image()], [layout], Gaussian(), PLAN, options=_UNTRIED)[0]
        own = layout.outputs.labels.ravel() == group
        np.testing.assert_array_equal(made.votes.ravel()[own], expected.votes.ravel()[own])
    with DirectoryStore(tmp_path / "run") as store:
        again = sample(told_model(), [image()], [layout], Gaussian(), PLAN, store, options=OPTIONS)[0]
    np.testing.assert_array_equal(again.votes, made.votes)
    untold = TorchModel(local(channels=1), bounds=BOUNDS, classes=3)
    with DirectoryStore(tmp_path / "run") as store, pytest.raises(StoreError, match="model"):
        sample(untold, [image()], [layout], Gaussian(), PLAN, store, options=OPTIONS)


_UNTRIED = SamplingOptions(batch_size=8, channels_last=False, check_model=False)


class _Constant(nn.Module):
    """The told network with one channel, whatever the group; other windows are cut to its size."""

    def __init__(self, channel: torch.Tensor) -> None:
        super().__init__()
        self.network = local(channels=2)
        self.register_buffer("channel", channel)
        self.eval()

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        channel = torch.zeros(batch.shape[2:])
        here = tuple(slice(0, min(a, b)) for a, b in zip(channel.shape, self.channel.shape, strict=True))
        channel[here] = self.channel[here]
        return self.network(torch.cat([batch, channel.expand(len(batch), 1, *channel.shape)], dim=1))


def test_whether_it_is_told_belongs_to_the_fingerprint() -> None:
    network = pointwise(channels=2)
    made = [TorchModel(network, bounds=BOUNDS, classes=3, told=told).fingerprint() for told in (False, True)]
    assert made[0] != made[1]


def test_calibration_leaves_nothing_told_behind() -> None:
    model = told_model()
    subject = ArraySubject(model, [torch.from_numpy(image())], [layouts()[0]], Gaussian(), 0)
    for options in (SamplingOptions(batch_size=4), SamplingOptions(calibration_seconds=0.05)):
        found = subject._calibrate(PLAN, options)
        with pytest.raises(InvalidInputError, match="without any levels"):
            found.model(torch.from_numpy(image())[None])


def test_locality_is_measured_of_what_the_model_is_told() -> None:
    layout = grid_layout((2, 2), SHAPE, minimum=0.3, maximum=1.0)
    made = measure_locality(told_model(), [image()], [layout], Gaussian(), levels=[0.1, 1.0], samples=4)
    assert made.agreement.shape == (2, 4, 4)


def test_inputs_without_places_are_refused() -> None:
    model = CallableModel(Told(), name="told", bounds=BOUNDS, classes=2, told=True)
    with pytest.raises(InvalidInputError, match="no place for a channel"):
        model.under(0.0)(torch.zeros(2, 3))
