"""What the page shows of a sequence: its words in colours where they are known, else a strip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localsmooth.report import Panel, Picturing, Plane
from localsmooth.results import ItemView

__all__ = ["PANEL", "TokenPanel"]


class TokenPanel(Panel):
    """Draws sequences of tokens."""

    called = "tokens"

    def outputs(self, view: ItemView) -> Picturing | None:
        """Arrange the tokens in a row, every one of them where they have words."""
        plane = super().outputs(view)
        return replace(plane, stride=(1, 1)) if isinstance(plane, Plane) and view.names is not None else plane

    def names(self, view: ItemView) -> Sequence[str] | None:
        """Return the words."""
        return None if view.names is None else view.names.tolist()


PANEL = TokenPanel()
"""See `localsmooth.tasks.folders`."""
