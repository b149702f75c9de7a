"""Geometry of the curves on the page: the certified share of each target against the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from localsmooth.report.palette import method_color
from localsmooth.report.summary import budget_label, curve, has_target, method_label, shown_targets
from localsmooth.results import run_info, target_title

__all__ = ["Chart", "Series", "band", "budget_reach", "charts", "dashes", "drawn_chart", "staircase"]

LEFT, TOP, WIDTH, HEIGHT = 52, 14, 470, 270
_DASHES = ("", "9 4", "2 4", "9 3 2 3", "4 2")


@dataclass(frozen=True, eq=False)
class Series:
    """One curve: a staircase, because between two budgets only what holds at the larger one is proven."""

    label: str
    color: str
    dash: str
    budgets: list[float]
    values: list[float]
    path: str
    band: str = ""
    """What lies between the curve and another, to be filled."""


@dataclass(frozen=True, eq=False)
class Chart:
    """One diagram with its curves and ticks (position and text) in the coordinates of the drawing."""

    target: str
    title: str
    x_label: str
    series: list[Series]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    x_max: float
    left: int = LEFT
    top: int = TOP
    width: int = WIDTH
    height: int = HEIGHT

    def data(self) -> dict[str, Any]:
        """What the page's script needs to read values off the curves."""
        keys = ("label", "color", "budgets", "values")
        series = [{key: getattr(one, key) for key in keys} for one in self.series]
        return {"target": self.target, "xMax": self.x_max, "series": series}


def dashes(dataset: xr.Dataset) -> dict[str, str]:
    """Dash pattern of each bound of a data set; the strongest, which comes last, is solid."""
    names = dataset["bound"].values.tolist()
    return {name: _DASHES[min(rank, len(_DASHES) - 1)] for rank, name in enumerate(reversed(names))}


def charts(results: Mapping[str, xr.Dataset], kind: str = "") -> list[Chart]:
    """The diagrams of all targets, each with every bound of every method; `kind` tells what the budget buys."""
    run = run_info(next(iter(results.values())))
    limit = budget_reach(results)
    label = budget_label(run, "budget")
    made: list[Chart] = []
    for target in shown_targets(results):
        series = [
            Series(
                label=f"{method_label(method, dataset)} · {bound}",
                color=method_color(index),
                dash=dash,
                budgets=dataset["budget"].values.tolist(),
                values=[round(value, 6) for value in curve(dataset, target, bound).tolist()],
                path=staircase(dataset["budget"].values, curve(dataset, target, bound), limit),
            )
            for index, (method, dataset) in enumerate(results.items())
            if has_target(dataset, target)
            for bound, dash in reversed(dashes(dataset).items())
        ]
        title = target_title(target)
        made.append(drawn_chart(target, f"{title}, {kind}" if kind else title, label, series, limit))
    return made


def drawn_chart(target: str, title: str, label: str, series: list[Series], limit: float) -> Chart:
    """A diagram with ticks from 0 to a limit, and from 0 to 100 %."""
    x_ticks = [(LEFT + WIDTH * tick / limit, f"{tick:.6g}") for tick in _ticks(limit)]
    y_ticks = [(TOP + HEIGHT * (1 - share / 100), f"{share} %") for share in (0, 20, 40, 60, 80, 100)]
    return Chart(target, title, label, series, x_ticks, y_ticks, limit)


def staircase(budgets: Float[np.ndarray, "budgets"], values: Float[np.ndarray, "budgets"], limit: float) -> str:
    """The path of a curve, of which only what holds at the larger one is known between two budgets."""
    corners = _corners(budgets, values, limit)
    if not corners:
        return ""
    # Between ε_n and ε_{n+1} the larger budget's value is what holds: first down, then right.
    steps = "".join(f"V{b:.2f}H{a:.2f}" for a, b in corners[1:])
    return f"M{corners[0][0]:.2f} {corners[0][1]:.2f}{steps}"


def band(
    budgets: Float[np.ndarray, "budgets"],
    low: Float[np.ndarray, "budgets"],
    high: Float[np.ndarray, "budgets"],
    limit: float,
) -> str:
    """The path around what lies between two curves."""
    path, upper = staircase(budgets, low, limit), _corners(budgets, high, limit)
    if not path:
        return ""
    back = "".join(f"V{b:.2f}H{before:.2f}" for (_, b), (before, _) in zip(upper[:0:-1], upper[-2::-1], strict=True))
    return f"{path}{back}V{upper[0][1]:.2f}Z"


def _corners(
    budgets: Float[np.ndarray, "budgets"], values: Float[np.ndarray, "budgets"], limit: float
) -> list[tuple[float, float]]:
    """Where the budgets up to a limit and their values are drawn."""
    shown = int(np.count_nonzero(budgets <= limit * (1 + 1e-9)))
    x = LEFT + WIDTH * np.minimum(budgets[:shown], limit) / limit
    y = TOP + HEIGHT * (1 - values[:shown])
    return list(zip(x.tolist(), y.tolist(), strict=True))


def budget_reach(results: Mapping[str, xr.Dataset]) -> float:
    """End of the budget axis: a little beyond the last budget at which anything is certified."""
    largest = max(float(dataset["budget"].values[-1]) for dataset in results.values())
    ends: list[float] = []
    for dataset in results.values():
        alive = (dataset["certified"] > 0).any(("item", "target", "bound")).values
        ends.extend(dataset["budget"].values[alive].tolist())
    last = max(ends, default=0.0)
    return min(largest, 1.1 * last if last > 0 else largest) or 1.0


def _ticks(limit: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10(limit / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if limit / (factor * step) <= 7)
    return [index * step for index in range(int(limit / step + 1e-9) + 1)]
