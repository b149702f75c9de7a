"""How the page shows point clouds: as scatter plots."""

from __future__ import annotations

from localsmooth.report import Panel, Picturing, choose_plane
from localsmooth.results import ItemView
from localsmooth.tasks.points.scatter import scatter

__all__ = ["PANEL", "PointPanel"]


class PointPanel(Panel):
    """Draws outputs and inputs where the points are."""

    strip = False

    def outputs(self, view: ItemView) -> Picturing | None:
        """The scatter plot; a strip where nobody knows where the points are."""
        return choose_plane(view.prediction.shape) if view.image is None else scatter(view.image)

    def inputs(self, view: ItemView) -> Picturing | None:
        """The same as for outputs."""
        return choose_plane(view.input_group.shape) if view.image is None else scatter(view.image)

    def size(self, view: ItemView) -> str:
        """The number of points."""
        return f"{view.prediction.size} points"


PANEL = PointPanel()
