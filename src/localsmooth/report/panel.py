"""How the items of each kind of input are drawn."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from localsmooth.report.places import Places, choose_places
from localsmooth.report.plane import Picturing, choose_plane
from localsmooth.results import ItemView

__all__ = ["Panel", "panel_of"]


class Panel:
    """Draws items as what they are: here spatial arrays. A kind of input that looks otherwise has a subclass.

    Attributes
    ----------
    called
        What outputs are called.
    """

    called: str = "outputs"

    def outputs(self, view: ItemView) -> Picturing | None:
        """How an item's outputs are arranged; None where they have no picture."""
        return choose_plane(view.prediction.shape)

    def inputs(self, view: ItemView) -> Picturing | None:
        """How the positions of an item's input are arranged; None where they have no picture."""
        return choose_plane(view.input_group.shape)

    def names(self, view: ItemView) -> Sequence[str] | None:
        """What each output is called, to be shown as text in place of a picture; None where it has no name."""
        del view
        return None

    def places(self, view: ItemView) -> Places | None:
        """Parts of an item's outputs that a reader can find, to say which falls first; None where there are none."""
        return choose_places(view.prediction.shape)

    def size(self, view: ItemView) -> str:
        """How large an item is, in words."""
        return f"{' × '.join(str(side) for side in view.prediction.shape)} {self.called}"


def panel_of(task: str) -> Panel:
    """Return the panel of a kind of input: `PANEL` in the folder of its task, or the one for arrays.

    Parameters
    ----------
    task
        Name of the kind, as a result says it.
    """
    # Which folders there are says the registry; it is light, and a result may name a kind that is not installed.
    from localsmooth.tasks import TASKS

    if task not in TASKS:
        return Panel()
    try:
        module = importlib.import_module(f"{TASKS[task]}.panel")
    except ModuleNotFoundError:
        return Panel()
    return module.PANEL
