"""What the page calls the outputs of graphs; how it draws them says `localsmooth.report`."""

from __future__ import annotations

import numpy as np

from localsmooth.report import Panel, Places
from localsmooth.results import ItemView

__all__ = ["PANEL", "GraphPanel"]


class GraphPanel(Panel):
    """Names nodes and clusters."""

    called = "nodes"

    def places(self, view: ItemView) -> Places | None:
        """The clusters; None where they are of something else than the nodes."""
        if view.input_group.shape != view.prediction.shape:
            return None
        sizes = np.bincount(view.input_group.ravel())
        return Places(view.input_group, [f"cluster {place + 1} ({size} nodes)" for place, size in enumerate(sizes)])


PANEL = GraphPanel()
"""See `localsmooth.tasks.folders`."""
