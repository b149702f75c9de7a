"""Windows, masks, strides and label maps: the engine against the same thing done by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, Partition, View, masked, windowed
from localsmooth.models import OutputKind
from localsmooth.noise import Gaussian, Randomness
from localsmooth.runs import Stage
from localsmooth.sampling import Predictions
from localsmooth.sampling.region import Region
from tests.sampling.exact import PLAN, SHAPE, ExactModel, make_item, make_layout, run


def by_hand(layout: Layout, model: ExactModel) -> tuple[np.ndarray, np.ndarray]:
    """Candidates and votes with full-size one-hots, one group after the other, all samples at once."""
    candidates = np.full(layout.outputs.labels.size, -1)
    votes = np.full(layout.outputs.labels.size, -1)
    for group in range(layout.outputs.count):
        view = layout.view(group)
        inputs = view.inputs if view.inputs is not None else tuple(slice(0, n) for n in SHAPE)
        outputs = view.outputs if view.outputs is not None else tuple(slice(0, n) for n in layout.outputs.shape)
        sigma = layout.levels[group][layout.inputs.labels]
        if view.hidden is not None:
            sigma = np.where(view.hidden, np.inf, sigma)
        hidden = np.isinf(sigma)[inputs]
        item = np.where(hidden, 0.0, make_item().numpy()[0][inputs]).astype(np.float32)
        scale = np.where(hidden, 0.0, sigma[inputs]).astype(np.float32)
        labels: dict[Stage, np.ndarray] = {}
        for stage in Stage:
            drawn = []
            for chunk in PLAN.chunks(0, group, stage):
                noise = torch.empty(chunk.size, 1, *item.shape)
                Randomness(PLAN.seed, chunk.key).normal_(noise)
                drawn.append(model.scores(torch.addcmul(torch.as_tensor(item), noise, torch.as_tensor(scale))))
            full = np.full((PLAN.samples(stage), *layout.outputs.shape), -1)
            full[(slice(None), *outputs)] = np.concatenate([d.numpy().argmax(axis=1) for d in drawn])
            labels[stage] = full.reshape(len(full), -1)[:, layout.outputs.members(group)]
        counts = np.stack([(labels[Stage.CANDIDATE] == c).sum(axis=0) for c in range(model.classes)])
        best = counts.argmax(axis=0)
        candidates[layout.outputs.members(group)] = best
        votes[layout.outputs.members(group)] = (labels[Stage.BOUND] == best).sum(axis=0)
    return candidates, votes


def scattered() -> Layout:
    """Groups that are no boxes, with as many input groups of other shapes."""
    random = np.random.default_rng(1)
    outputs = random.integers(0, 3, SHAPE)
    inputs = random.integers(0, 5, SHAPE)
    return Layout(Partition(outputs), Partition(inputs), random.uniform(0.2, 1, (3, 5)))


def two_hidden() -> Layout:
    levels = make_layout().levels.copy()
    levels[0, 3] = levels[2, 1] = np.inf
    return Layout(make_layout().outputs, make_layout().inputs, levels)


CASES = {
    "whole": (make_layout(), 1),
    "window": (windowed(make_layout(), 2), 1),
    "aligned window": (windowed(make_layout(cells=(2, 3)), 1, align=4), 1),
    "mask": (masked(make_layout(), 1), 1),
    "window and mask": (windowed(masked(make_layout(cells=(2, 3)), 0), 1), 1),
    "stride": (make_layout(stride=4), 4),
    "stride and window": (windowed(make_layout(stride=2), 3), 2),
    "scattered": (scattered(), 1),
    "hidden": (two_hidden(), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_engine_agrees_with_the_same_by_hand(name: str) -> None:
    layout, stride = CASES[name]
    model = ExactModel(stride=stride)
    tally = run(model, layout=layout)
    candidate, votes = by_hand(layout, model)
    np.testing.assert_array_equal(tally.candidate, candidate)
    np.testing.assert_array_equal(tally.votes, votes)
    assert tally.shape == layout.outputs.shape


def test_the_model_is_only_run_on_the_window() -> None:
    shapes: set[tuple[int, ...]] = set()
    run(ExactModel(watch=lambda batch: shapes.add(tuple(batch.shape[1:]))), layout=windowed(make_layout(), 2))
    assert shapes == {(1, 6, 8)}


def test_hidden_inputs_are_constant_whatever_they_are() -> None:
    hidden: set[float] = set()
    layout = masked(make_layout())

    def watch(batch: torch.Tensor) -> None:
        if batch[0, 0, 0, 0] != 0:  # group 0 sees its own cell only
            hidden.update(batch[:, 0, 4:, 6:].unique().tolist())

    run(ExactModel(watch=watch), layout=layout)
    assert 0.0 in hidden


def test_a_view_that_loses_outputs_of_its_group_is_refused() -> None:
    layout = make_layout()
    views = tuple(View(outputs=(slice(0, 3), slice(0, 6))) for _ in range(4))
    with pytest.raises(InvalidInputError, match="views"):
        Region.of(Layout(layout.outputs, layout.inputs, layout.levels, views), 0)


def test_boxes_are_taken_without_a_copy() -> None:
    region = Region.of(make_layout(), 3)
    outputs = torch.zeros(2, 4, *SHAPE)
    assert region.select(outputs).data_ptr() == outputs[:, :, 4:, 6:].data_ptr()
    assert region.index is None


@settings(max_examples=60, deadline=None)
@given(
    classes=st.sampled_from([1, 2, 5, 255, 256, 300]),
    group=st.sampled_from([(), (3,), (2, 3)]),
    last=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_labels_are_the_smallest_class_with_the_largest_score(
    classes: int, group: tuple[int, ...], last: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    scores = torch.as_tensor(random.integers(-2, 2, (4, classes, *group)).astype(np.float32))  # ties abound
    scores[random.random(scores.shape) < 0.2] = -torch.inf
    scores[:, random.integers(classes)] = -1.0
    outputs = scores.movedim(1, -1).contiguous().movedim(-1, 1) if last else scores
    layout = Layout(Partition(np.zeros(group, np.int32)), Partition(np.zeros(1, np.int32)), np.ones((1, 1)))
    predictions = Predictions(outputs, Region.of(layout, 0), OutputKind.LOGITS, classes, 4)
    np.testing.assert_array_equal(predictions.labels.numpy(), scores.numpy().argmax(axis=1))
    assert not predictions.faulty


@pytest.mark.parametrize(
    ("kind", "classes"),
    [(torch.int8, 128), (torch.int8, 150), (torch.uint8, 256), (torch.uint8, 300), (torch.int16, 2**16)],
)
def test_labels_may_be_of_a_type_that_does_not_hold_the_number_of_classes(kind: torch.dtype, classes: int) -> None:
    layout = Layout(Partition(np.zeros(2, np.int32)), Partition(np.zeros(1, np.int32)), np.ones((1, 1)))

    def predicted(labels: list[int], declared: int) -> Predictions:
        outputs = torch.tensor([labels], dtype=kind)
        return Predictions(outputs, Region.of(layout, 0), OutputKind.LABELS, declared, 1)

    largest = min(torch.iinfo(kind).max, classes - 1)
    made = predicted([0, largest], classes)
    assert not bool(made.faulty)
    assert made.labels.tolist() == [[0, largest]]
    assert bool(predicted([0, largest], largest).faulty)
    assert kind is torch.uint8 or bool(predicted([-1, largest], classes).faulty)


def test_gaussian_tallies_of_one_dimensional_items() -> None:
    class Line(ExactModel):
        def scores(self, batch: torch.Tensor) -> torch.Tensor:
            return torch.stack([batch[:, 0], -batch[:, 0]], dim=1)

    from localsmooth.execution import sample
    from localsmooth.layout import grid_layout
    from localsmooth.sampling import SamplingOptions

    layout = grid_layout((3,), (10,), minimum=0.1, maximum=0.2)
    item = torch.ones(1, 10)
    tally = sample(Line(classes=2), [item], [layout], Gaussian(), PLAN, options=SamplingOptions(batch_size=3))[0]
    assert (tally.votes == PLAN.n_bound).all()
    assert tally.shape == (10,)
