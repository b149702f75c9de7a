"""Figures for publications, drawn by matplotlib without any global state."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from localsmooth.disk import write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.report.drawing import ItemDrawing, draw_curves
from localsmooth.report.graph_drawing import draw_graph, flip_kinds
from localsmooth.report.overlap_drawing import draw_overlaps
from localsmooth.results import RATIO

__all__ = [
    "LANE",
    "compose_graph",
    "compose_item",
    "curves_figure",
    "graph_figure",
    "item_figure",
    "item_maps",
    "overlap_figure",
    "save_figure",
]

LANE = 0.75
"""Height in inches of each of a sequence's maps, which lie below each other."""


def curves_figure(
    results: Mapping[str, xr.Dataset], target: str = RATIO, size: tuple[float, float] = (3.4, 2.5)
) -> Figure:
    """Curves of every bound of every method against the budget; of several kinds, against the last (see `kind_curve`).

    Parameters
    ----------
    results
        Results by the name of their method.
    target
        Name of a target that all of them have.
    size
        Width and height in inches.

    Raises
    ------
    InvalidInputError
        If there is no result, or one lacks the target.
    """
    figure = _figure(size)
    draw_curves(figure.add_subplot(), results, target)
    return figure


def overlap_figure(
    overlaps: Mapping[str, xr.Dataset], classes: Sequence[str] = (), size: tuple[float, float] = (3.4, 2.5)
) -> Figure:
    """Curves of the certified IoU against the budget.

    Parameters
    ----------
    overlaps
        From `certified_overlap`, by the name of their method.
    classes
        Names of the classes; the mean over classes where there are none.
    size
        Width and height in inches.

    Raises
    ------
    InvalidInputError
        If there is nothing to draw, or no such class.
    """
    figure = _figure(size)
    draw_overlaps(figure.add_subplot(), overlaps, classes)
    return figure


def graph_figure(dataset: xr.Dataset, size: tuple[float, float] = (7.0, 3.6)) -> Figure:
    """Draw the nodes of a graph in the colours of what each tolerates, once for each kind of flips.

    Parameters
    ----------
    dataset
        A result on a graph.
    size
        Width and height in inches.

    Raises
    ------
    InvalidInputError
        If it is none, or has no budget above 0.
    """
    figure = _figure(size)
    compose_graph(figure, dataset)
    return figure


def compose_graph(figure: Figure | SubFigure, dataset: xr.Dataset) -> None:
    """Draw a graph into a figure, or a part of one; arguments as for `graph_figure`."""
    kinds = flip_kinds(dataset) or [None]
    for axes, kind in zip(figure.subplots(1, len(kinds), squeeze=False).ravel().tolist(), kinds, strict=True):
        bar = figure.colorbar(draw_graph(axes, dataset, kind), ax=axes, shrink=0.9, orientation="horizontal", pad=0.04)
        bar.ax.tick_params(labelsize=6)
        bar.locator = MaxNLocator(integer=True)
        bar.update_ticks()


def item_figure(
    dataset: xr.Dataset,
    item: int = 0,
    budget: float | None = None,
    target: str = RATIO,
    bound: str | None = None,
    size: tuple[float, float] = (7.0, 2.1),
) -> Figure:
    """Panel of one item: input, labels, prediction, certified radii and the adversary's best plan.

    Parameters
    ----------
    dataset
        A result.
    item
        Its place in the data set.
    budget
        Budget of the plan; the next larger one of the data set is used. Its middle one by default.
    target, bound
        Which plan is shown; the last bound by default.
    size
        Width and height in inches.

    Raises
    ------
    InvalidInputError
        If there is no such item, budget, target or bound, or the outputs have more than three axes.
    """
    drawing = ItemDrawing.of(dataset, item)
    rows = len(item_maps(drawing, budget, target, bound))
    figure = _figure((size[0], max(size[1], LANE * rows)) if drawing.line else size)
    compose_item(figure, drawing, budget, target, bound)
    return figure


def item_maps(
    drawing: ItemDrawing, budget: float | None, target: str, bound: str | None
) -> list[Callable[[Axes], ScalarMappable | None]]:
    """What is drawn of an item, in its order; arguments as for `item_figure`."""
    draws: list[Callable[[Axes], ScalarMappable | None]] = [drawing.draw_prediction, drawing.draw_radius]
    if drawing.view.label is not None:
        draws.insert(0, drawing.draw_labels)
    if drawing.view.image is not None:
        draws.insert(0, drawing.draw_input)
    return [*draws, lambda axes: drawing.draw_plan(axes, budget, target, bound)]


def compose_item(
    figure: Figure | SubFigure, drawing: ItemDrawing, budget: float | None, target: str, bound: str | None
) -> None:
    """Draw the panel of one item into a figure, or a part of one; arguments as for `item_figure`."""
    draws = item_maps(drawing, budget, target, bound)
    count = len(draws)
    places = figure.subplots(*((count, 1) if drawing.line else (1, count)), squeeze=False).ravel().tolist()
    for axes, draw in zip(places, draws, strict=True):
        if (mappable := draw(axes)) is not None:
            beside: dict[str, Any] = {"pad": 0.01, "aspect": 8}
            if not drawing.line:
                beside = {"orientation": "horizontal", "pad": 0.04}
            bar = figure.colorbar(mappable, ax=axes, shrink=0.9, **beside)
            bar.ax.tick_params(labelsize=6)
    patches = drawing.class_patches()
    figure.legend(handles=patches, loc="outside lower left", ncols=min(len(patches), 6), fontsize=6.5, frameon=False)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a PDF, PNG or SVG file, by the end of its name; fonts are embedded and no date is written.

    Raises
    ------
    InvalidInputError
        If the name ends otherwise.
    OutputError
        If the file cannot be written.
    """
    suffix = Path(path).suffix.lower()
    dates = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}
    if suffix not in dates:
        raise InvalidInputError("path", f"ends in {suffix!r}", "End it in .pdf, .png or .svg")
    content = io.BytesIO()
    figure.savefig(content, format=suffix[1:], dpi=300, metadata=dates[suffix])
    write_atomically(path, content.getvalue())


def _figure(size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure
