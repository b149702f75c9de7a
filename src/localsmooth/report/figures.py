"""Figures for publications, drawn by matplotlib without any global state."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from localsmooth.certificates import ABSTAIN
from localsmooth.disk import write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.report.charts import budget_reach, dashes
from localsmooth.report.palette import class_colors, method_color
from localsmooth.report.panel import panel_of
from localsmooth.report.pictures import class_picture, input_picture, radius_picture
from localsmooth.report.summary import curve, curves_by_kind, has_target, inline_title, method_label
from localsmooth.report.tables import percent
from localsmooth.results import RATIO, counts_outputs, item_view, kind_curve, run_info, validate

__all__ = ["curves_figure", "item_figure", "save_figure"]


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
    if not results:
        raise InvalidInputError("results", "is empty", "Pass at least one result, by the name of its method")
    results = next(iter(curves_by_kind({method: validate(one) for method, one in results.items()}).values()))
    figure = _figure(size)
    axes = figure.add_subplot()
    for index, (method, dataset) in enumerate(results.items()):
        if not has_target(dataset, target):
            raise InvalidInputError("target", f"{target!r} is not in the results of {method}", "Pass one that is")
        for bound, dash in reversed(dashes(dataset).items()):
            pattern = tuple(float(length) / 2 for length in dash.split())
            # The value between two budgets is that of the larger one: what is proven there.
            axes.step(
                dataset["budget"].values,
                curve(dataset, target, bound),
                where="pre",
                color=method_color(index),
                linestyle=(0, pattern) if pattern else "-",
                linewidth=1.2,
                label=_plain(f"{method_label(method, dataset)}, {bound}"),
            )
    run = run_info(next(iter(results.values())))
    axes.set_xlabel(_plain(f"budget ε ({run.norm}, {run.units})"), fontsize=8)
    axes.set_ylabel(_plain(inline_title(target)), fontsize=8)
    axes.set_xlim(0, budget_reach(results))
    axes.set_ylim(0, 1)
    axes.tick_params(labelsize=7)
    axes.grid(color="#e6e9ec", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=6.5, frameon=False)
    return figure


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
    dataset = kind_curve(validate(dataset))
    run = run_info(dataset)
    if not 0 <= item < dataset.sizes["item"]:
        raise InvalidInputError("item", f"is {item}", f"Pass a place from 0 to {dataset.sizes['item'] - 1}")
    budgets = dataset["budget"].values
    place = len(budgets) // 2 if budget is None else int(np.searchsorted(budgets, budget * (1 - 1e-12)))
    if place >= len(budgets):
        raise InvalidInputError("budget", f"{budget} is beyond the largest one", f"Pass at most {budgets[-1]}")
    chosen = run.bound_names[-1] if bound is None else bound
    if not has_target(dataset, target) or chosen not in run.bound_names:
        raise InvalidInputError("target, bound", f"({target!r}, {chosen!r}) is not in the result", "Pass what it holds")
    view, classes = item_view(dataset, item), len(run.class_names)
    panel = panel_of(run.task)
    outputs, space = panel.outputs(view), panel.inputs(view)
    if outputs is None or space is None:
        raise InvalidInputError("dataset", "has more than three spatial axes", "Such items have no picture")
    one = dataset.isel(item=item, budget=place).sel(target=target, bound=chosen)
    largest = float(view.radius[np.isfinite(view.radius)].max(initial=0.0))
    nowhere, abstains = np.zeros_like(view.ignored), view.prediction == ABSTAIN
    panels: list[tuple[str, np.ndarray]] = []
    if view.image is not None:
        panels.append(("input", input_picture(view.image, space, run.input_bounds)))
    if view.label is not None:
        panels.append(("labels", class_picture(view.label, view.ignored, outputs, classes)))
    panels.append(("prediction", class_picture(view.prediction, nowhere, outputs, classes)))
    panels.append(
        (
            "radius, each alone" if run.described else "certified radius",
            radius_picture(view.radius, abstains, view.ignored, outputs, largest),
        )
    )
    figure = _figure(size)
    aspect = "auto" if panel.strip and view.prediction.ndim == 1 else "equal"
    places = figure.subplots(1, len(panels) + 1)
    for axes, (title, picture) in zip(places, panels, strict=False):
        axes.imshow(picture, interpolation="nearest", aspect=aspect)
        _frame(axes, title)
    groups = space(view.input_group, -1)
    spent = np.where(groups >= 0, np.nan_to_num(one["attack"].values)[groups], np.nan)
    plan = places[-1].imshow(space.magnify(spent), cmap="Reds", vmin=0, interpolation="nearest", aspect=aspect)
    certified, total = one["certified"].item(), dataset["total"].isel(item=item).sel(target=target).item()
    share = f"{certified:g}/{total:g}" if counts_outputs(target) else percent(certified / total if total else None)
    _frame(places[-1], f"plan at ε = {budgets[place]:.3g}\n{share} certified")
    radii = ScalarMappable(Normalize(0, largest or 1.0), "viridis")
    for mappable, axes in ((radii, places[-2]), (plan, places[-1])):
        bar = figure.colorbar(mappable, ax=axes, orientation="horizontal", pad=0.04, shrink=0.9)
        bar.ax.tick_params(labelsize=6)
    patches = [
        Patch(facecolor=color, label=_plain(name))
        for name, color in zip(run.class_names, class_colors(classes), strict=True)
    ]
    if bool(abstains.any()):
        patches.append(Patch(facecolor="white", edgecolor="#333333", hatch="//////", linewidth=0.5, label="abstains"))
    figure.legend(handles=patches, loc="outside lower left", ncols=min(len(patches), 6), fontsize=6.5, frameon=False)
    return figure


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


def _frame(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=7)
    axes.set_xticks([])
    axes.set_yticks([])


def _plain(text: str) -> str:
    """Text that matplotlib must not read as a formula."""
    return text.replace("$", r"\$")
