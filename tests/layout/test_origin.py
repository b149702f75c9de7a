"""Levels and groups remember what they were computed from, and do not certify it."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.flat import certify

from localsmooth.datasets import Item, ItemSet
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress, sample
from localsmooth.layout import (
    GridLayout,
    Layout,
    Partition,
    derived,
    isotropic_layout,
    item_digest,
    masked,
    origins_of,
    windowed,
)
from localsmooth.locality import largest_levels, measure_locality, read_levels, write_levels
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Gaussian
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions, prepare_items

SHAPE = (4, 4)


def model() -> CallableModel:
    return CallableModel(
        lambda batch: np.stack([1 - batch[:, 0], batch[:, 0]], axis=1).astype(np.float32),
        name="values",
        bounds=(0, 1),
        classes=2,
        output=OutputKind.LOGITS,
    )


def items() -> list[np.ndarray]:
    return [np.full((1, *SHAPE), value, np.float32) for value in (0.2, 0.9)]


def test_marks_survive_what_is_done_to_an_array() -> None:
    plain = np.arange(6).reshape(2, 3)
    assert derived(plain) is plain
    assert not origins_of(plain, None)
    marked = derived(derived(plain, "a"), "b")
    for array in (marked, marked.copy(), marked.astype(np.float32), marked[:1], marked.ravel(), marked.T, marked + 1):
        assert origins_of(plain, array) == {"a", "b"}
    np.testing.assert_array_equal(marked, plain)
    assert not origins_of(plain)
    assert type(marked.max()) is type(plain.max())
    assert type(marked.sum()) is type(plain.sum())


@pytest.mark.parametrize("part", ["outputs", "inputs", "levels", "origins"])
def test_layouts_collect_marks_and_hand_them_on(part: str) -> None:
    labels = np.repeat(np.arange(4), 4).reshape(SHAPE).astype(np.int32)
    arrays = {"outputs": labels, "inputs": labels, "levels": np.full((4, 4), 0.2)}
    if part != "origins":
        arrays[part] = derived(arrays[part], "a")
    outputs, inputs = Partition(arrays["outputs"]), Partition(arrays["inputs"])
    more = frozenset({"a"} if part == "origins" else ())
    layout = Layout(outputs, inputs, arrays["levels"], origins=more)
    plain = Layout(Partition(labels), Partition(labels), np.full((4, 4), 0.2))
    for made in (layout, masked(layout, 1), windowed(layout, 1)):
        assert made.origins == {"a"}
        # Whoever computes with labels and levels computes with plain arrays.
        assert {type(array) for array in (made.outputs.labels, made.inputs.labels, made.levels)} == {np.ndarray}
    assert layout.digest() == plain.digest()


def fitted(calibration: list[np.ndarray]) -> np.ndarray:
    """Levels that follow from what was measured on some items."""
    layouts = [GridLayout((2, 2), 0.1, 0.1).layout(item.shape, SHAPE) for item in calibration]
    measured = measure_locality(model(), calibration, layouts, Gaussian(), [0.05, 0.3], samples=2)
    levels = largest_levels(measured, 1.0)
    assert origins_of(levels) == {item_digest(item) for item in calibration}
    return levels


@pytest.mark.parametrize("through", ["recipe", "layout", "file"])
def test_items_that_levels_were_fitted_on_are_not_certified(through: str, tmp_path: Path) -> None:
    """Not from Python either, where nobody reads a configuration."""
    seen, unseen = items()
    levels = fitted([seen])
    if through == "file":
        write_levels(tmp_path / "levels.npz", np.array(levels), ItemSet([Item(0, "seen", seen, None)]))
        levels = read_levels(tmp_path / "levels.npz").levels
    layout = GridLayout((2, 2), 0.1, 0.1, levels=levels)
    if through == "layout":
        layout = layout.layout(seen.shape, SHAPE)

    def run(images: list[np.ndarray]):
        return certify(
            model(),
            images,
            layout=layout,
            plan=SamplingPlan(10, 300, seed=0),
            alpha=0.1,
            budgets=[0.0, 0.1],
            options=SamplingOptions(batch_size=50),
            progress=NoProgress(),
        )

    assert run([unseen])["certified"].values.max() > 0
    for images in ([seen], [unseen, seen], [seen.astype(np.float64)]):
        with pytest.raises(InvalidInputError, match=r"layout.*items\[\d\]"):
            run(images)


def test_samplers_refuse_too() -> None:
    seen, unseen = items()
    layout = isotropic_layout(0.2, SHAPE, SHAPE)
    layout = Layout(layout.outputs, layout.inputs, derived(layout.levels, item_digest(seen)))
    sample(model(), [unseen], [layout], Gaussian(), SamplingPlan(4, 4), options=SamplingOptions(batch_size=4))
    with pytest.raises(InvalidInputError, match="computed from"):
        sample(model(), [seen], [layout], Gaussian(), SamplingPlan(4, 4), options=SamplingOptions(batch_size=4))


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (2, 3, 4, 5), (3, 3)])
def test_marks_hold_for_items_with_channels_last(shape):
    """Tokens, points and pictures are marked as people have them, and certified with channels first."""
    first = np.random.default_rng(0).random(shape).astype(np.float32)
    given = isotropic_layout(0.2, shape[1:], shape[1:])
    for image in (first, np.moveaxis(first, 0, -1)):
        layout = Layout(given.outputs, given.inputs, derived(given.levels, item_digest(image)))
        with pytest.raises(InvalidInputError, match="computed from"):
            prepare_items(model(), [first], [layout], Gaussian(), torch.float32)


def test_marks_travel_with_a_pickle():
    marked = derived(np.arange(4), "digest")
    back = pickle.loads(pickle.dumps(marked))  # noqa: S301
    np.testing.assert_array_equal(back, marked)
    assert origins_of(back) == {"digest"}
