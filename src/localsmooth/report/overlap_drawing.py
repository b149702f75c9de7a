"""Curves of certified IoU on the axes of matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from localsmooth.errors import InvalidInputError
from localsmooth.report.drawing import budget_axes, plain
from localsmooth.report.overlap import overlap_curves, overlap_mean, overlap_reach
from localsmooth.report.palette import class_colors, method_color
from localsmooth.report.summary import method_label
from localsmooth.results import run_info

__all__ = ["draw_overlaps"]

_DASHES = ("-", "--", "-.", ":")


def draw_overlaps(axes: Axes, overlaps: Mapping[str, xr.Dataset], classes: Sequence[str] = ()) -> None:
    """Draw the certified IoU against the budget, up to what attacks leave, and as measured without a perturbation.

    Of several kinds of budget it is the last, the others being 0.

    Parameters
    ----------
    axes
        Where to draw.
    overlaps
        From `certified_overlap`, by the name of their method.
    classes
        Names of the classes; the mean over classes where there are none.

    Raises
    ------
    InvalidInputError
        If there is nothing to draw, or no such class.
    """
    if not overlaps:
        raise InvalidInputError("overlaps", "is empty", "Pass at least one, by the name of its method")
    kind = next(iter(overlap_curves(next(iter(overlaps.values())))))
    alone = {method: overlap_curves(dataset)[kind] for method, dataset in overlaps.items()}
    several = len(alone) * max(len(classes), 1) > 1
    for place, (method, dataset) in enumerate(alone.items()):
        known = dataset["class"].values.tolist()
        if missing := [name for name in classes if name not in known]:
            raise InvalidInputError("classes", f"{missing[0]!r} is none", f"Pass some of {', '.join(known)}")
        whose = method_label(method, dataset)
        for name in classes or [None]:
            color = method_color(place) if name is None else class_colors(len(known))[known.index(name)]
            words = whose if name is None else name if len(alone) == 1 else f"{whose}, {name}"
            _draw_one(axes, dataset, name, words, several, color, _DASHES[place % len(_DASHES)] if classes else "-")
    limit = max(overlap_reach(dataset) for dataset in alone.values())
    budget_axes(axes, run_info(next(iter(overlaps.values()))), kind, limit)
    axes.set_ylabel("certified IoU" if classes else "certified mean IoU", fontsize=8)


def _draw_one(
    axes: Axes, dataset: xr.Dataset, name: str | None, words: str, several: bool, color: str, dash: Any
) -> None:
    """Draw the IoU of one class, or the mean; what shades and dots mean is said where there is one curve."""
    budgets = dataset["budget"].values
    if name is None:
        measured = overlap_mean(dataset["candidate_iou"].mean("class", skipna=True))
        shares = (dataset[each] for each in ("mean_iou", "mean_iou_upper"))
    else:
        measured = overlap_mean(dataset["candidate_iou"].sel({"class": name}))
        shares = (dataset[each].sel({"class": name}) for each in ("iou", "iou_upper"))
    low, high = (np.nan_to_num(overlap_mean(share)) for share in shares)
    axes.step(budgets, low, where="pre", color=color, linewidth=1.2, linestyle=dash, label=plain(words))
    shade, dots = (None, None) if several else ("up to what attacks leave", "without a perturbation")
    axes.fill_between(budgets, low, high, step="pre", color=color, alpha=0.15, linewidth=0, label=shade)
    axes.axhline(float(measured), color=color, linewidth=0.8, linestyle=":", label=dots)
