"""What every result offers by itself, as `result.localsmooth`, since results are data sets of xarray."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ResultAccessor"]


@xr.register_dataset_accessor("localsmooth")
class ResultAccessor:
    """A result's numbers in a notebook, and its curves and maps.

    Parameters
    ----------
    dataset
        What `certify` returned, or `load_result`.
    """

    # What draws stands above results in the house, and is loaded when something is drawn.

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def _repr_html_(self) -> str:
        """Show a small table in a notebook: certified counts at a few budgets, α, and warnings."""
        from localsmooth.report import result_html

        return result_html(self._dataset)

    def plot_curves(self, target: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the certified share against the budget; see `localsmooth.plot.curves`."""
        from localsmooth import plot

        return plot.curves(self._dataset, target, ax=ax)

    def plot_radius(self, item: int = 0, *, ax: Axes | None = None, colorbar: bool = True) -> Axes:
        """Draw the certified radius of each output on its own; see `localsmooth.plot.radius`."""
        from localsmooth import plot

        return plot.radius(self._dataset, item, ax=ax, colorbar=colorbar)
