"""What users need of the folder; each is imported on first use."""

from .cells import cell_layout, fit_centres, nearest_cells
from .task import PointTask
from .threat import PerPoint

__all__ = ["PerPoint", "PointTask", "cell_layout", "fit_centres", "nearest_cells"]
