"""What the page shows of each item: pictures, and the data that its slider moves through."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from localsmooth.certificates import ABSTAIN
from localsmooth.metrics import abstention_rate
from localsmooth.report.panel import Panel
from localsmooth.report.pictures import class_picture, input_picture, png, radius_picture
from localsmooth.report.plane import Picturing
from localsmooth.report.regions import fall_codes, group_rectangles
from localsmooth.report.tables import percent
from localsmooth.report.waveform import LANE, draws_waveform, waveform
from localsmooth.report.words import MethodWords, Word, class_words, radius_words
from localsmooth.results import ItemView, item_view, run_info

__all__ = ["Card", "MethodCard", "Picture", "cards", "largest_radius"]


@dataclass(frozen=True)
class Picture:
    """A picture's data address, its size in pixels, and how it is fitted into the page: a name in its style sheet."""

    address: str
    width: int
    height: int
    kind: str = ""


@dataclass(frozen=True)
class MethodCard:
    """One method's pictures of one item; None where the arrays have too many axes to be shown, or words are."""

    key: str
    method: str
    abstention: str
    prediction: Picture | None
    radius: Picture | None
    attack: bool
    outputs: bool
    words: MethodWords | None = None
    outputs_kind: str = ""
    attack_kind: str = ""


@dataclass(frozen=True)
class Card:
    """One item: its input, its labels and a row of pictures per method."""

    name: str
    shape: str
    note: str
    strip: bool
    image: Picture | None
    label: Picture | None
    methods: list[MethodCard]
    data: dict[str, Any] = field(repr=False)
    words: list[Word] = field(default_factory=list[Word])


def largest_radius(results: Mapping[str, xr.Dataset]) -> float:
    """Largest finite certified radius of all methods: the end of the colour scale."""
    radii = [dataset["radius"].values for dataset in results.values()]
    return max((float(radius[np.isfinite(radius)].max(initial=0.0)) for radius in radii), default=0.0)


def cards(results: Mapping[str, xr.Dataset], shown: int, panel: Panel) -> list[Card]:
    """Cards of the first items of the first data set; other methods join where they have an item of that name."""
    names = next(iter(results.values()))["item"].values.tolist()[:shown]
    largest = largest_radius(results)
    return [_card(name, place, results, largest, panel) for place, name in enumerate(names)]


def _card(name: str, place: int, results: Mapping[str, xr.Dataset], largest: float, panel: Panel) -> Card:
    methods: list[MethodCard] = []
    data: dict[str, Any] = {}
    first: tuple[ItemView, xr.Dataset] | None = None
    for number, (method, dataset) in enumerate(results.items()):
        names = dataset["item"].values.tolist()
        if name not in names:
            continue
        index = names.index(name)
        view = item_view(dataset, index)
        first = first or (view, dataset)
        key = f"m{number}i{place}"
        outputs, space = panel.outputs(view), panel.inputs(view)
        data[key] = _slider_data(view, dataset, index, outputs, space)
        made = _method_card(key, method, view, dataset, outputs, largest, space)
        names = panel.names(view)
        methods.append(made if names is None else _in_words(made, names, view, dataset, largest))
    assert first is not None, "the name comes from the first data set"
    view, dataset = first
    run = run_info(dataset)
    outputs, space = panel.outputs(view), panel.inputs(view)
    wave = draws_waveform(view, space, run.norm)
    image, label, names = None, None, panel.names(view)
    words: list[Word] = []
    if names is not None:
        if view.label is not None:
            words = class_words(names, view.label, view.ignored, run.class_names)
    elif view.image is not None and space is not None:
        if wave:
            image = _picture(waveform(view.image), "wave")
        else:
            image = _picture(input_picture(view.image, space, run.input_bounds), _kind(space))
    if view.label is not None and outputs is not None and names is None:
        drawn = class_picture(view.label, view.ignored, outputs, len(run.class_names))
        label = _picture(drawn, _kind(outputs))
    planes = (outputs,) if wave else (outputs, space)
    notes = {plane.note for plane in planes if plane is not None and plane.note}
    if outputs is None:
        notes.add(f"outputs with {view.prediction.ndim} axes have no map")
    strip = outputs is not None and outputs.line
    return Card(name, panel.size(view), "; ".join(sorted(notes)), strip, image, label, methods, data, words)


def _method_card(
    key: str,
    method: str,
    view: ItemView,
    dataset: xr.Dataset,
    outputs: Picturing | None,
    largest: float,
    space: Picturing | None,
) -> MethodCard:
    abstains, counted = view.prediction == ABSTAIN, view.counted
    share = percent(abstention_rate(view.prediction, counted) if counted.any() else None)
    run = run_info(dataset)
    attack_kind = "" if space is None or draws_waveform(view, space, run.norm) else _kind(space)
    if outputs is None:
        return MethodCard(key, method, share, None, None, space is not None, False, attack_kind=attack_kind)
    nowhere = np.zeros_like(view.ignored)
    prediction = class_picture(view.prediction, nowhere, outputs, len(run.class_names))
    radius = radius_picture(view.radius, abstains, view.ignored, outputs, largest)
    kind = _kind(outputs)
    return MethodCard(
        key,
        method,
        share,
        _picture(prediction, kind),
        _picture(radius, kind),
        space is not None,
        True,
        outputs_kind=kind,
        attack_kind=attack_kind,
    )


def _in_words(
    card: MethodCard, names: Sequence[str], view: ItemView, dataset: xr.Dataset, largest: float
) -> MethodCard:
    """The card with cells of text in place of pictures of the outputs."""
    nowhere = np.zeros_like(view.ignored)
    prediction = class_words(names, view.prediction, nowhere, run_info(dataset).class_names)
    radius = radius_words(names, view.radius, view.prediction == ABSTAIN, view.ignored, largest)
    return replace(card, prediction=None, radius=None, words=MethodWords(prediction, radius))


def _slider_data(
    view: ItemView, dataset: xr.Dataset, index: int, outputs: Picturing | None, space: Picturing | None
) -> dict[str, Any]:
    item, budgets = dataset.isel(item=index), dataset["budget"].values
    data: dict[str, Any] = {"budgets": budgets.tolist(), "total": {}, "certified": {}, "upper": {}, "attack": {}}
    for target in dataset["target"].values.tolist():
        chosen = item.sel(target=target)
        data["total"][target] = chosen["total"].item()
        for part in ("certified", "upper", "attack"):
            data[part][target] = {}
        for bound in dataset["bound"].values.tolist():
            one = chosen.sel(bound=bound)
            data["certified"][target][bound] = one["certified"].values.tolist()
            upper = one["upper"].values.tolist()
            data["upper"][target][bound] = [None if math.isnan(value) else value for value in upper]
            data["attack"][target][bound] = _shares(one["attack"].values)
    if space is not None:
        picture, run, (tall, wide) = None, run_info(dataset), space.scale
        if view.image is not None and draws_waveform(view, space, run.norm):
            picture, tall = png(waveform(view.image, faint=True)), LANE
        elif view.image is not None:
            picture = png(input_picture(view.image, space, run.input_bounds, gray=True))
        groups = space(view.input_group, -1)
        data["input"] = {
            "rows": groups.shape[0],
            "columns": groups.shape[1],
            "scale": [tall, wide],
            "picture": picture,
            "rectangles": group_rectangles(groups),
        }
    if outputs is not None:
        reference = view.clean if view.label is None else view.label
        wrong = np.zeros_like(view.ignored) if reference is None else (reference != view.prediction)
        abstains = view.prediction == ABSTAIN
        codes = fall_codes(
            outputs(view.radius), outputs(abstains), outputs(view.ignored, True), outputs(wrong), budgets
        )
        data["outputs"] = {**codes, "scale": list(outputs.scale)}
    return data


def _shares(attack: np.ndarray) -> list[list[float]]:
    """Share of the whole budget in each input group; zeros where nothing is spent."""
    spent = np.nan_to_num(attack)
    whole = spent.sum(axis=1, keepdims=True)
    shares = np.divide(spent, whole, out=np.zeros_like(spent), where=whole > 0)
    return [[round(share, 4) for share in row] for row in shares.tolist()]


def _picture(array: np.ndarray, kind: str = "") -> Picture:
    return Picture(png(array), array.shape[1], array.shape[0], kind)


def _kind(plane: Picturing) -> str:
    return "line" if plane.line else ""
