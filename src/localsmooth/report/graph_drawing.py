"""A graph on the axes of matplotlib: where the page puts its nodes, in the colours of what each tolerates."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize

from localsmooth.certificates import ABSTAIN
from localsmooth.errors import InvalidInputError
from localsmooth.results import NO_GROUP, item_view, validate

__all__ = ["draw_graph", "flip_kinds", "tolerated_flips"]

_PALE, _DARK = "#c9ced4", "#57606a"
_WORDS = {"additions": "added bits", "deletions": "deleted bits"}


def flip_kinds(dataset: xr.Dataset) -> list[str]:
    """Kinds of flips of a graph's result that have a budget above 0; none for other results."""
    drawn = "edge_ends" in dataset.variables and set(_WORDS) <= set(dataset.dims)
    return [kind for kind in _WORDS if drawn and dataset.sizes[kind] > 1]


def tolerated_flips(dataset: xr.Dataset, kind: str) -> Float[np.ndarray, " nodes"]:
    """Largest budget of one kind of flips, the other being 0, that each node keeps its prediction against on its own.

    Parameters
    ----------
    dataset
        A result on a graph.
    kind
        "additions" or "deletions".

    Returns
    -------
    Float[np.ndarray, " nodes"]
        NaN for nodes that are not certified at all.
    """
    (other,) = set(_WORDS) - {kind}
    alone = dataset["alone"].isel(item=0).sel({other: 0}).transpose(kind, ...).values.astype(bool)
    kept = np.cumprod(alone, axis=0).sum(axis=0)
    return np.where(kept > 0, dataset[kind].values.astype(np.float64)[np.maximum(kept, 1) - 1], np.nan)


def draw_graph(axes: Axes, dataset: xr.Dataset, kind: str | None = None) -> ScalarMappable:
    """Draw the nodes and edges; nodes that abstain are hollow, those that are not certified small and grey.

    Parameters
    ----------
    axes
        Where to draw.
    dataset
        A result on a graph.
    kind
        Which flips colours are about; by default deletions where there are any.

    Returns
    -------
    ScalarMappable
        What a bar of colours needs.

    Raises
    ------
    InvalidInputError
        If the result is not about a graph, or has no budgets of that kind.
    """
    kinds = flip_kinds(validate(dataset))
    chosen = (kinds[-1] if kinds else "") if kind is None else kind
    if chosen not in kinds:
        named = f"no budget of {chosen} above 0" if chosen else "no graph, or no budget above 0"
        raise InvalidInputError("result", f"has {named}", f"Pass one of {', '.join(kinds) or 'a GraphTask'}")
    view, item = item_view(dataset, 0), dataset.isel(item=0)
    places, ends = item["node_place"].values, item["edge_ends"].values
    ends = ends[(ends != NO_GROUP).all(axis=1)]
    axes.add_collection(LineCollection(places[ends].tolist(), colors=_PALE, linewidths=0.3, zorder=1))
    most = float(dataset[chosen].values[-1])
    shown = ScalarMappable(Normalize(0, most), "viridis")
    tolerated, size = tolerated_flips(dataset, chosen), max(4.0, min(40.0, 4000.0 / len(places)))
    abstains = view.counted & ((view.prediction == ABSTAIN) | np.isnan(tolerated))
    for which, look in (
        (~view.counted, {"s": size / 4, "color": _PALE}),
        (abstains, {"s": size, "facecolors": "white", "edgecolors": _DARK, "linewidths": 0.6}),
    ):
        axes.scatter(*places[which].T, zorder=2, **look)
    keeps = view.counted & ~abstains
    axes.scatter(*places[keeps].T, s=size, c=shown.to_rgba(tolerated[keeps]), linewidths=0, zorder=3)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(1.02, -0.02)  # as on the page, from the top
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(f"{_WORDS[chosen]} that a node tolerates, each alone", fontsize=7)
    return shown
