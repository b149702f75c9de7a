"""How the page shows point clouds: as scatter plots."""

from __future__ import annotations

from localsmooth.report import Panel, Picturing, Places, choose_plane
from localsmooth.results import ItemView
from localsmooth.tasks.points.scatter import scatter

__all__ = ["PANEL", "PointPanel"]


class PointPanel(Panel):
    """Draws outputs and inputs where the points are."""

    called = "points"

    def outputs(self, view: ItemView) -> Picturing | None:
        """The scatter plot; a strip where nobody knows where the points are."""
        return choose_plane(view.prediction.shape) if view.image is None else scatter(view.image)

    def inputs(self, view: ItemView) -> Picturing | None:
        """The same as for outputs."""
        return choose_plane(view.input_group.shape) if view.image is None else scatter(view.image)

    def places(self, view: ItemView) -> Places:
        """The groups of points that share a distribution."""
        count = int(view.output_group.max()) + 1
        names = [f"group {group + 1} of {count}" for group in range(count)]
        return Places(view.output_group, names)


PANEL = PointPanel()
