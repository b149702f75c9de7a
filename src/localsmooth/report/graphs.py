"""What the page shows of results on graphs: a heat map over both budgets, and the graph laid out by cluster."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool

from localsmooth.certificates import ABSTAIN
from localsmooth.metrics import abstention_rate
from localsmooth.report.palette import radius_colors
from localsmooth.report.tables import percent
from localsmooth.results import item_view, run_info

__all__ = ["GraphCard", "HeatCell", "graph_cards", "share_colors"]

LEFT, TOP, WIDTH, HEIGHT = 48, 10, 470, 300
_PLACES = 4096
_COLORS = 33
_KINDS = ("additions", "deletions")


@dataclass(frozen=True)
class HeatCell:
    """One pair of budgets in the heat map: its numbers in the lists of budgets, and where it is drawn."""

    addition: int
    deletion: int
    x: float
    y: float
    width: float
    height: float
    color: str


@dataclass(frozen=True)
class GraphCard:
    """One method's view of one graph."""

    key: str
    method: str
    name: str
    shape: str
    abstention: str
    cells: list[HeatCell]
    x_ticks: list[tuple[float, int]]
    y_ticks: list[tuple[float, int]]
    data: dict[str, Any] = field(repr=False)
    left: int = LEFT
    top: int = TOP
    width: int = WIDTH
    height: int = HEIGHT


def share_colors() -> list[str]:
    """Colours of certified shares, from 0 to 1."""
    table = radius_colors()[np.linspace(0, 255, _COLORS).round().astype(int)]
    return ["#" + bytes(color).hex() for color in table]


def graph_cards(results: Mapping[str, xr.Dataset]) -> list[GraphCard]:
    """One card for each method whose result says how a graph is drawn, over both kinds of budget."""
    drawn = {method: dataset for method, dataset in results.items() if {"edge_ends", *_KINDS} <= set(dataset.variables)}
    return [_card(f"g{number}", method, dataset) for number, (method, dataset) in enumerate(drawn.items())]


def _card(key: str, method: str, dataset: xr.Dataset) -> GraphCard:
    view = item_view(dataset, 0)
    additions, deletions = (dataset[kind].values.astype(int).tolist() for kind in _KINDS)
    groups = int(view.input_group.max()) + 1
    shape = f"{view.prediction.size} nodes, {int(view.counted.sum())} of them certified, {groups} clusters"
    share = percent(abstention_rate(view.prediction, view.counted))
    x, y = _edges(len(deletions), WIDTH), _edges(len(additions), HEIGHT)
    colors = share_colors()
    target, bound = dataset["target"].values[0], dataset["bound"].values[-1]
    first = dataset["certified"].isel(item=0).sel(target=target, bound=bound).values
    total = dataset["total"].isel(item=0).sel(target=target).item() or 1
    cells = [
        HeatCell(
            a,
            d,
            LEFT + x[d],
            # No addition is at the bottom.
            TOP + HEIGHT - y[a + 1],
            x[d + 1] - x[d],
            y[a + 1] - y[a],
            colors[int(first[a, d] / total * (_COLORS - 1))],
        )
        for a in range(len(additions))
        for d in range(len(deletions))
    ]
    x_ticks = [(LEFT + (x[d] + x[d + 1]) / 2, deletions[d]) for d in _some(len(deletions))]
    y_ticks = [(TOP + HEIGHT - (y[a] + y[a + 1]) / 2, additions[a]) for a in _some(len(additions))]
    return GraphCard(
        key, method, view.name, shape, share, cells, x_ticks, y_ticks, _data(dataset, additions, deletions)
    )


def _edges(cells: int, length: int) -> list[float]:
    return [round(value, 3) for value in np.linspace(0, length, cells + 1).tolist()]


def _some(count: int, most: int = 11) -> list[int]:
    step = -(-count // most)
    return list(range(0, count, step))


def _data(dataset: xr.Dataset, additions: list[int], deletions: list[int]) -> dict[str, Any]:
    view = item_view(dataset, 0)
    item = dataset.isel(item=0)
    data: dict[str, Any] = {
        "additions": additions,
        "deletions": deletions,
        "total": {},
        "certified": {},
        "upper": {},
        "attack": {},
        "falls": {},
        "alone": _packed(item["alone"].values),
        "clusters": view.input_group.tolist(),
        "prediction": view.prediction.tolist(),
        "counted": view.counted.astype(int).tolist(),
        "label": None if view.label is None else view.label.tolist(),
        "clean": None if view.clean is None else view.clean.tolist(),
        "places": (item["node_place"].values * _PLACES).round().astype(int).ravel().tolist(),
        "scale": _PLACES,
        "edges": item["edge_ends"].values.ravel().tolist(),
        "abstains": ABSTAIN,
        "described": run_info(dataset).described,
    }
    for target in dataset["target"].values.tolist():
        chosen = item.sel(target=target)
        data["total"][target] = chosen["total"].item()
        for part in ("certified", "upper", "attack", "falls"):
            data[part][target] = {}
        for bound in dataset["bound"].values.tolist():
            one = chosen.sel(bound=bound)
            data["certified"][target][bound] = one["certified"].values.tolist()
            data["upper"][target][bound] = one["upper"].fillna(chosen["total"]).values.tolist()
            data["attack"][target][bound] = one["attack"].fillna(0.0).values.round(2).tolist()
            data["falls"][target][bound] = _packed(one["falls"].values)
    return data


def _packed(bits: Bool[np.ndarray, "additions deletions nodes"]) -> str:
    """One bit per node, each pair of budgets from a byte of its own on."""
    return base64.b64encode(np.packbits(bits, axis=-1).tobytes()).decode("ascii")
