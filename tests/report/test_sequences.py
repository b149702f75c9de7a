"""Sequences, and inputs that are very tall or very wide."""

import dataclasses
import math

import numpy as np
import pytest

from localsmooth.report import choose_places, item_figure, render_report
from localsmooth.report.cards import Picture, cards
from localsmooth.report.panel import Panel
from localsmooth.report.plane import choose_plane
from localsmooth.report.waveform import LANE, envelope, waveform
from localsmooth.results import build_dataset

from ..results.synthetic import cells, make_item, run_info

SAMPLES = 43_844


@pytest.fixture(scope="module", params=[(SAMPLES, 1), (1, SAMPLES), (SAMPLES,)], ids=str)
def sound(request: pytest.FixtureRequest):
    shape = request.param
    outputs = tuple(86 if side > 1 else 1 for side in shape)
    label = (np.arange(86).reshape(outputs) // 9) % 3
    grid = tuple(min(4, side) for side in shape)
    signal = np.sin(np.arange(SAMPLES) / 20).astype(np.float32).reshape(1, *shape)
    item = make_item("sound", size=outputs, grid=grid, label=label)
    item = dataclasses.replace(item, image=signal, input_group=cells(shape, grid))
    return build_dataset([item], run_info())


def test_a_sequence_is_as_wide_as_the_page_and_low(sound):
    card = cards({"localized": sound}, 1, Panel())[0]
    assert card.strip
    pictures = [card.image, card.label, card.methods[0].prediction, card.methods[0].radius]
    assert all(isinstance(one, Picture) for one in pictures)
    assert [one.kind for one in pictures] == ["wave", "line", "line", "line"]
    assert all(one.width > 800 and one.height <= LANE for one in pictures)
    data = card.data["m0i0"]
    assert (data["input"]["rows"], data["outputs"]["rows"]) == (1, 1)
    assert data["outputs"]["columns"] == 86
    assert {group for group, *_ in data["input"]["rectangles"]} == {0, 1, 2, 3}
    page = render_report({"localized": sound})
    assert len(page) < 200_000
    figure = item_figure(sound)
    heights = [axes.get_position().height for axes in figure.axes]
    assert max(heights) < 0.3  # below each other


def test_what_is_drawn_of_bits_is_no_waveform(sound):
    bits = sound.assign_attrs(norm="l0")
    assert cards({"localized": bits}, 1, Panel())[0].image.kind == "line"
    many = sound["image"].values.repeat(5, axis=1)
    many = sound.drop_vars("image").assign(image=(sound["image"].dims, many))
    assert cards({"localized": many}, 1, Panel())[0].image.kind == "line"


@pytest.mark.parametrize(
    "shape", [(SAMPLES, 1), (1, 7), (2000, 40), (30, 3000), (3, 4), (9, 2), (100, 100_000), (1, 1), (5, 900, 30)]
)
def test_no_picture_is_longer_than_the_page(shape: tuple[int, ...]):
    plane = choose_plane(shape)
    assert plane is not None
    shown = plane(np.zeros(shape))
    height, width = (side * scale for side, scale in zip(shown.shape, plane.scale, strict=True))
    assert height <= 480
    assert width <= 1200
    if not plane.line and max(shape[-2:]) > 8 * min(shape[-2:]):
        assert max(height, width) <= 8 * min(height, width)
    assert shown.shape == plane.magnify(np.zeros(shown.shape))[:: plane.scale[0], :: plane.scale[1]].shape


def test_thin_pictures_keep_their_short_side():
    plane = choose_plane((2000, 40))
    assert plane is not None
    array = np.arange(80_000).reshape(2000, 40)
    np.testing.assert_array_equal(plane(array), array[::5])
    assert plane.note == "one row in 5"


@pytest.mark.parametrize(("length", "columns"), [(1000, 10), (1003, 10), (7, 20), (1, 5)])
def test_an_envelope_misses_no_value(length: int, columns: int):
    signal = np.random.default_rng(0).normal(size=length)
    low, high = envelope(signal, columns)
    assert low.shape == high.shape == (columns,)
    assert low.min() == signal.min()
    assert high.max() == signal.max()
    assert (low <= high).all()
    assert (np.maximum(low[1:], low[:-1]) <= np.minimum(high[1:], high[:-1])).all()  # neighbours touch
    if length > columns:
        place = length // columns // 2
        spike = np.zeros(length)
        spike[place] = 5.0
        assert envelope(spike, columns)[1][0] == 5.0


def test_a_waveform_goes_up_where_the_signal_does():
    picture = waveform(np.linspace(0, 1, 100)[None])
    dark = np.argwhere((picture != 255).any(axis=-1))
    assert picture.shape[0] == LANE
    assert dark[dark[:, 1] == 0][:, 0].min() > LANE - 3
    assert dark[dark[:, 1] == picture.shape[1] - 1][:, 0].max() < 3
    assert waveform(np.zeros((2, 50))).shape[0] == 2 * LANE
    assert waveform(np.zeros((2, 50)), faint=True).shape[0] == LANE


@pytest.mark.parametrize(
    ("shape", "place", "name"),
    [
        ((30, 60), (0, 59), "the upper right"),
        ((30, 60), (15, 30), "the centre"),
        ((4, 30, 60), (2, 29, 30), "the lower middle"),
        ((100, 1), (99, 0), "the part from 90 to 100 % of the length"),
        ((20,), (0,), "the part from 0 to 10 % of the length"),
    ],
)
def test_places_have_names(shape: tuple[int, ...], place: tuple[int, ...], name: str):
    places = choose_places(shape)
    assert places is not None
    assert places.parts.shape == shape
    assert places.names[places.parts[place]] == name
    counts = np.bincount(places.parts.ravel())
    assert len(counts) == len(places.names)
    assert counts.min() * len(counts) == math.prod(shape)


@pytest.mark.parametrize("shape", [(19,), (2, 9), (1, 1), (1, 1, 1)])
def test_few_outputs_have_no_places(shape: tuple[int, ...]):
    assert choose_places(shape) is None
