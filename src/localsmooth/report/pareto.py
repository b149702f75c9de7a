"""Quality against average certifiable radius, over the settings of several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from localsmooth.errors import InvalidInputError
from localsmooth.metrics import OperatingPoint, front
from localsmooth.report.palette import method_color

__all__ = ["pareto_figure"]

_MARKERS = "osD^vP*X"


def pareto_figure(
    methods: Mapping[str, Sequence[OperatingPoint]],
    bounds: Sequence[str],
    quality: str,
    radius: str,
    size: tuple[float, float] = (3.4, 2.9),
) -> Figure:
    """One panel per collective bound, with every point of every method and the staircase of each method's front.

    Parameters
    ----------
    methods
        Points by the name of their method; colours follow their order.
    bounds
        Collective bounds to show.
    quality, radius
        Labels of the axes.
    size
        Width and height of a panel in inches.

    Raises
    ------
    InvalidInputError
        If there is no bound or no point.
    """
    if not bounds or not any(methods.values()):
        raise InvalidInputError("methods", "there is no point to show", "Pass at least one point and one bound")
    figure = Figure(figsize=(size[0] * len(bounds), size[1]), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(bounds), sharex=True, sharey=True, squeeze=False)[0]
    for axes, bound in zip(panels, bounds, strict=True):
        for index, (method, points) in enumerate(methods.items()):
            shown = [point for point in points if bound in point.radii]
            style = {"color": method_color(index), "label": method.replace("$", r"\$")}
            axes.plot(
                [point.quality for point in shown],
                [point.radii[bound] for point in shown],
                linestyle="none",
                marker=_MARKERS[index % len(_MARKERS)],
                markersize=4,
                **style,
            )
            best = front(shown, bound)
            # By falling quality: until the next point's quality is enough, only this point's radius is to be had.
            axes.step(
                [point.quality for point in best],
                [point.radii[bound] for point in best],
                where="post",
                color=method_color(index),
                linewidth=1,
                alpha=0.6,
            )
        axes.set_title(bound, fontsize=8)
        axes.set_xlabel(quality.replace("$", r"\$"), fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(color="#e6e9ec", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(radius.replace("$", r"\$"), fontsize=8)
    panels[0].set_ylim(bottom=0)
    panels[0].legend(fontsize=6.5, frameon=False)
    return figure
