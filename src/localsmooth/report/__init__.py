"""Show a result: a self-contained HTML page, and figures for publications. Nothing is computed here but pictures."""

from localsmooth.report.figures import curves_figure, item_figure, save_figure
from localsmooth.report.html import render_report, write_report

__all__ = ["curves_figure", "item_figure", "render_report", "save_figure", "write_report"]
