"""Curves and maps of a result on the axes of matplotlib, without any global state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.patches import Patch

from localsmooth.certificates import ABSTAIN
from localsmooth.errors import InvalidInputError
from localsmooth.report.charts import budget_reach, dashes
from localsmooth.report.palette import class_colors, method_color
from localsmooth.report.panel import panel_of
from localsmooth.report.pictures import class_picture, input_picture, radius_picture
from localsmooth.report.plane import Picturing
from localsmooth.report.summary import budget_label, curve, curves_by_kind, has_target, inline_title, method_label
from localsmooth.report.tables import percent
from localsmooth.report.waveform import draws_waveform, envelope
from localsmooth.results import ItemView, RunInfo, counts_outputs, item_view, kind_curve, run_info, validate

__all__ = ["ItemDrawing", "budget_axes", "draw_curves", "plain"]

_SMALL = 7
_COLUMNS = 1000  # of a waveform: more make files large and show nothing


def draw_curves(axes: Axes, results: Mapping[str, xr.Dataset], target: str) -> None:
    """Draw every bound of every method against the budget; of several kinds, against the last (see `kind_curve`).

    Parameters
    ----------
    axes
        Where to draw.
    results
        Results by the name of their method.
    target
        Name of a target that all of them have.

    Raises
    ------
    InvalidInputError
        If there is no result, or one lacks the target.
    """
    if not results:
        raise InvalidInputError("results", "is empty", "Pass at least one result, by the name of its method")
    results = next(iter(curves_by_kind({method: validate(one) for method, one in results.items()}).values()))
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
                label=plain(f"{method_label(method, dataset)}, {bound}"),
            )
    budget_axes(axes, run_info(next(iter(results.values()))), "budget", budget_reach(results))
    axes.set_ylabel(plain(inline_title(target)), fontsize=8)


def budget_axes(axes: Axes, run: RunInfo, kind: str, limit: float) -> None:
    """Make axes of shares against the budget, from 0 to a limit; curves are drawn before.

    Parameters
    ----------
    axes
        Where to draw.
    run, kind
        What the budget is.
    limit
        Its largest value.
    """
    axes.set_xlabel(plain(budget_label(run, kind)), fontsize=8)
    axes.set_xlim(0, limit)
    axes.set_ylim(0, 1)
    axes.tick_params(labelsize=_SMALL)
    axes.grid(color="#e6e9ec", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=6.5, frameon=False)


@dataclass(frozen=True, eq=False)
class ItemDrawing:
    """Maps of one item of a result.

    Parameters
    ----------
    dataset
        A result with the single dimension `budget`.
    index
        Place of the item.
    view
        The item.
    run
        What is said of its run.
    outputs, space
        How its outputs and its inputs are arranged.
    """

    dataset: xr.Dataset
    index: int
    view: ItemView
    run: RunInfo
    outputs: Picturing
    space: Picturing

    @classmethod
    def of(cls, dataset: xr.Dataset, item: int | str) -> ItemDrawing:
        """Look at one item of a result, by its place or name.

        Raises
        ------
        InvalidInputError
            If the data set is no result, there is no such item, or it has no picture.
        """
        dataset = kind_curve(validate(dataset))
        if isinstance(item, str):
            item = _place_of(item, [str(name) for name in dataset["item"].values])
        if not 0 <= item < dataset.sizes["item"]:
            raise InvalidInputError("item", f"is {item}", f"Pass a place from 0 to {dataset.sizes['item'] - 1}")
        view, run = item_view(dataset, item), run_info(dataset)
        panel = panel_of(run.task)
        outputs, space = panel.outputs(view), panel.inputs(view)
        if outputs is None or space is None:
            raise InvalidInputError("dataset", "has more than three spatial axes", "Such items have no picture")
        return cls(dataset, item, view, run, outputs, space)

    @classmethod
    def found(cls, dataset: xr.Dataset, item: int) -> ItemDrawing | None:
        """Look at one item of a result; None where it has no picture."""
        view, panel = item_view(dataset, item), panel_of(run_info(dataset).task)
        return None if panel.outputs(view) is None or panel.inputs(view) is None else cls.of(dataset, item)

    @property
    def line(self) -> bool:
        """Whether outputs are a sequence, whose maps belong below each other."""
        return self.outputs.line

    @cached_property
    def abstains(self) -> np.ndarray:
        """Outputs that abstain."""
        return self.view.prediction == ABSTAIN

    def draw_input(self, axes: Axes) -> None:
        """Draw the input; of a sequence of a few channels its values.

        Raises
        ------
        InvalidInputError
            If it was not kept.
        """
        if self.view.image is None:
            raise InvalidInputError("result", "holds no inputs", "Draw something else of it")
        if draws_waveform(self.view, self.space, self.run.norm):
            length = self.view.image[0].size
            places = np.linspace(0, length, min(length, _COLUMNS))
            for signal in self.view.image:
                low, high = envelope(signal.ravel().astype(np.float64), len(places))
                axes.fill_between(places, low, high, linewidth=0.6, edgecolor="face")
            axes.set_xlim(0, length)
            _frame(axes, "input")
        else:
            picture = input_picture(self.view.image, self.space, self.run.input_bounds)
            self._show(axes, picture, self.space, "input")

    def draw_labels(self, axes: Axes) -> None:
        """Draw the label map.

        Raises
        ------
        InvalidInputError
            If the item has no labels.
        """
        if self.view.label is None:
            raise InvalidInputError("item", f"{self.view.name} has no labels", "Draw something else of it")
        picture = class_picture(self.view.label, self.view.ignored, self.outputs, len(self.run.class_names))
        self._show(axes, picture, self.outputs, "labels")

    def draw_prediction(self, axes: Axes) -> None:
        """Draw the predicted classes, abstentions hatched."""
        nowhere = np.zeros_like(self.view.ignored)
        picture = class_picture(self.view.prediction, nowhere, self.outputs, len(self.run.class_names))
        self._show(axes, picture, self.outputs, "prediction")

    def draw_radius(self, axes: Axes) -> ScalarMappable:
        """Draw the radius of each output on its own, abstentions hatched; what a colour bar needs is returned."""
        finite = self.view.radius[np.isfinite(self.view.radius)]
        largest = float(finite.max(initial=0.0))
        picture = radius_picture(self.view.radius, self.abstains, self.view.ignored, self.outputs, largest)
        self._show(axes, picture, self.outputs, "radius, each alone" if self.run.described else "certified radius")
        return ScalarMappable(Normalize(0, largest or 1.0), "viridis")

    def draw_plan(self, axes: Axes, budget: float | None, target: str, bound: str | None) -> AxesImage:
        """Draw what the adversary's best plan spends in each input group.

        Parameters
        ----------
        axes
            Where to draw.
        budget
            ε; the next larger one of the data set is used. Its middle one by default.
        target, bound
            Which plan; the last bound by default.

        Raises
        ------
        InvalidInputError
            If there is no such budget, target or bound.
        """
        budgets = self.dataset["budget"].values
        place = len(budgets) // 2 if budget is None else int(np.searchsorted(budgets, budget * (1 - 1e-12)))
        if place >= len(budgets):
            raise InvalidInputError("budget", f"{budget} is beyond the largest one", f"Pass at most {budgets[-1]}")
        chosen = self.run.bound_names[-1] if bound is None else bound
        if not has_target(self.dataset, target) or chosen not in self.run.bound_names:
            raise InvalidInputError(
                "target, bound", f"({target!r}, {chosen!r}) is not in the result", "Pass what it holds"
            )
        one = self.dataset.isel(item=self.index, budget=place).sel(target=target, bound=chosen)
        groups = self.space(self.view.input_group, -1)
        spent = np.where(groups >= 0, np.nan_to_num(one["attack"].values)[groups], np.nan)
        certified, total = one["certified"].item(), one["total"].item()
        share = f"{certified:g}/{total:g}" if counts_outputs(target) else percent(certified / total if total else None)
        shown = axes.imshow(
            self.space.magnify(spent), cmap="Reds", vmin=0, interpolation="nearest", aspect=_aspect(self.space)
        )
        _frame(axes, f"plan at ε = {budgets[place]:.3g}\n{share} certified")
        return shown

    def class_patches(self) -> list[Patch]:
        """Make what a legend shows of the classes, and of abstentions where there are any."""
        names = self.run.class_names
        patches = [
            Patch(facecolor=color, label=plain(name))
            for name, color in zip(names, class_colors(len(names)), strict=True)
        ]
        if bool(self.abstains.any()):
            patches.append(
                Patch(facecolor="white", edgecolor="#333333", hatch="//////", linewidth=0.5, label="abstains")
            )
        return patches

    def _show(self, axes: Axes, picture: np.ndarray, plane: Picturing, title: str) -> None:
        axes.imshow(picture, interpolation="nearest", aspect=_aspect(plane))
        _frame(axes, title)


def plain(text: str) -> str:
    """Text that matplotlib must not read as a formula."""
    return text.replace("$", r"\$")


def _place_of(item: str, names: Sequence[str]) -> int:
    if item not in names:
        raise InvalidInputError("item", f"{item!r} is none", f"Pass one of {', '.join(names)}, or a place")
    return names.index(item)


def _aspect(plane: Picturing) -> Literal["auto", "equal"]:
    return "auto" if plane.line else "equal"


def _frame(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=_SMALL)
    axes.set_xticks([])
    axes.set_yticks([])
