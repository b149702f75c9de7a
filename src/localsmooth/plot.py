"""Curves, maps and graphs for scripts and papers, on axes of matplotlib.

Every function draws on `ax`, or on the current axes of pyplot where none is given, and returns it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr
from matplotlib.axes import Axes

from localsmooth.report import ItemDrawing, draw_curves, draw_graph, draw_overlaps, headline_target
from localsmooth.results import by_method, validate

__all__ = ["attack", "curves", "graph", "input", "labels", "overlap", "prediction", "radius"]


def curves(
    results: xr.Dataset | Mapping[str, xr.Dataset], target: str | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the certified share against the budget, for every bound of every method.

    Parameters
    ----------
    results
        One result, or several by the name of their method.
    target
        What is counted, such as "ratio" or "accuracy"; by default what the report puts first.
    ax
        Where to draw.

    Raises
    ------
    InvalidInputError
        If there is no result, or one lacks the target.
    """
    named = {method: validate(one) for method, one in by_method(results).items()}
    chosen = headline_target(*named.values()) if target is None else target
    axes = _axes(ax)
    draw_curves(axes, named, chosen)
    return axes


def overlap(
    overlaps: xr.Dataset | Mapping[str, xr.Dataset], classes: Sequence[str] = (), *, ax: Axes | None = None
) -> Axes:
    """Draw the certified IoU against the budget, shaded up to what attacks leave; dotted, as measured without one.

    Parameters
    ----------
    overlaps
        What `certified_overlap` returned, or several by the name of their method.
    classes
        Names of the classes; the mean over classes where there are none.
    ax
        Where to draw.

    Raises
    ------
    InvalidInputError
        If there is nothing to draw, or no such class.
    """
    if isinstance(overlaps, xr.Dataset):
        overlaps = {str(overlaps.attrs.get("method", "")): overlaps}
    axes = _axes(ax)
    draw_overlaps(axes, overlaps, classes)
    return axes


def graph(result: xr.Dataset, kind: str | None = None, *, ax: Axes | None = None, colorbar: bool = True) -> Axes:
    """Draw the nodes of a graph where the report has them, in the colours of the flips that each tolerates on its own.

    Nodes that abstain are hollow; those that are not certified, such as training nodes, are small and grey.

    Parameters
    ----------
    result
        What `certify` returned for a `GraphTask`.
    kind
        "additions" or "deletions", the other being 0; by default deletions where there are any.
    ax
        Where to draw.
    colorbar
        Whether to draw a bar of colours beside it.

    Raises
    ------
    InvalidInputError
        If the result is not about a graph, or has no budgets of that kind.
    """
    axes = _axes(ax)
    mappable = draw_graph(axes, result, kind)
    if colorbar:
        axes.figure.colorbar(mappable, ax=axes)
    return axes


def input(result: xr.Dataset, item: int | str = 0, *, ax: Axes | None = None) -> Axes:
    """Draw an item's input: a picture, or the waveform of a sequence.

    Parameters
    ----------
    result
        What `certify` returned.
    item
        Place of the item, or its name.
    ax
        Where to draw.

    Raises
    ------
    InvalidInputError
        If there is no such item, its input was not kept, or it has no picture.
    """
    drawing = ItemDrawing.of(result, item)
    axes = _axes(ax)
    drawing.draw_input(axes)
    return axes


def labels(result: xr.Dataset, item: int | str = 0, *, ax: Axes | None = None) -> Axes:
    """Draw an item's label map.

    Parameters
    ----------
    result
        What `certify` returned.
    item
        Place of the item, or its name.
    ax
        Where to draw.

    Raises
    ------
    InvalidInputError
        If there is no such item, it has no labels, or no picture.
    """
    drawing = ItemDrawing.of(result, item)
    axes = _axes(ax)
    drawing.draw_labels(axes)
    return axes


def prediction(result: xr.Dataset, item: int | str = 0, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Draw an item's predicted classes, abstentions hatched.

    Parameters
    ----------
    result
        What `certify` returned.
    item
        Place of the item, or its name.
    ax
        Where to draw.
    legend
        Whether to name the classes.

    Raises
    ------
    InvalidInputError
        If there is no such item, or it has no picture.
    """
    drawing = ItemDrawing.of(result, item)
    axes = _axes(ax)
    drawing.draw_prediction(axes)
    if legend:
        axes.legend(handles=drawing.class_patches(), fontsize=6.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def radius(result: xr.Dataset, item: int | str = 0, *, ax: Axes | None = None, colorbar: bool = True) -> Axes:
    """Draw the certified radius of each output of an item on its own, abstentions hatched.

    Parameters
    ----------
    result
        What `certify` returned.
    item
        Place of the item, or its name.
    ax
        Where to draw.
    colorbar
        Whether to draw a bar of colours beside it, in the units of the budgets.

    Raises
    ------
    InvalidInputError
        If there is no such item, or it has no picture.
    """
    drawing = ItemDrawing.of(result, item)
    axes = _axes(ax)
    mappable = drawing.draw_radius(axes)
    if colorbar:
        axes.figure.colorbar(mappable, ax=axes)
    return axes


def attack(
    result: xr.Dataset,
    item: int | str = 0,
    budget: float | None = None,
    target: str | None = None,
    bound: str | None = None,
    *,
    ax: Axes | None = None,
    colorbar: bool = True,
) -> Axes:
    """Draw what the adversary's best plan spends in each group of inputs: Σ|δ|^p, or changes.

    Parameters
    ----------
    result
        What `certify` returned.
    item
        Place of the item, or its name.
    budget
        ε; the next larger one of the result is used. Its middle one by default.
    target, bound
        Which plan; by default for what the report puts first, and the last bound.
    ax
        Where to draw.
    colorbar
        Whether to draw a bar of colours beside it.

    Raises
    ------
    InvalidInputError
        If there is no such item, budget, target or bound, or it has no picture.
    """
    drawing = ItemDrawing.of(result, item)
    axes = _axes(ax)
    chosen = headline_target(result) if target is None else target
    mappable = drawing.draw_plan(axes, budget, chosen, bound)
    if colorbar:
        axes.figure.colorbar(mappable, ax=axes)
    return axes


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot  # only here: it chooses a backend for the whole process

    return pyplot.gca()
