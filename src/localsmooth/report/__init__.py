"""Show a result: a self-contained HTML page, and figures for publications. Nothing is computed here but pictures."""

from localsmooth.report.drawing import ItemDrawing, draw_curves
from localsmooth.report.figures import curves_figure, graph_figure, item_figure, overlap_figure, save_figure
from localsmooth.report.fonts import lettered, letters_of
from localsmooth.report.graph_drawing import draw_graph, flip_kinds
from localsmooth.report.html import render_report, write_report
from localsmooth.report.locality import levels_figure, locality_figure, render_locality
from localsmooth.report.notebook import result_html
from localsmooth.report.nothing import reach_of_result, why_nothing
from localsmooth.report.overlap import overlap_table
from localsmooth.report.overlap_drawing import draw_overlaps
from localsmooth.report.panel import Panel
from localsmooth.report.pdf import write_pdf
from localsmooth.report.places import Places, choose_places
from localsmooth.report.plane import Picturing, Plane, choose_plane
from localsmooth.report.promise import bound_samples, ended, foundations
from localsmooth.report.summary import (
    TAIL_NOTE,
    acr_text,
    average_radius,
    curve,
    curves_by_kind,
    has_target,
    headline_target,
    inline_title,
    prediction_numbers,
    shown_targets,
    table_budgets,
    value_at,
)
from localsmooth.report.sweep import Sides, SweepPage, points_table, render_sweep, verdict
from localsmooth.report.tables import Table, percent
from localsmooth.report.work import alike, budget_scale, uneven_work, work_text

__all__ = [
    "TAIL_NOTE",
    "ItemDrawing",
    "Panel",
    "Picturing",
    "Places",
    "Plane",
    "Sides",
    "SweepPage",
    "Table",
    "acr_text",
    "alike",
    "average_radius",
    "bound_samples",
    "budget_scale",
    "choose_places",
    "choose_plane",
    "curve",
    "curves_by_kind",
    "curves_figure",
    "draw_curves",
    "draw_graph",
    "draw_overlaps",
    "ended",
    "flip_kinds",
    "foundations",
    "graph_figure",
    "has_target",
    "headline_target",
    "inline_title",
    "item_figure",
    "lettered",
    "letters_of",
    "levels_figure",
    "locality_figure",
    "overlap_figure",
    "overlap_table",
    "percent",
    "points_table",
    "prediction_numbers",
    "reach_of_result",
    "render_locality",
    "render_report",
    "render_sweep",
    "result_html",
    "save_figure",
    "shown_targets",
    "table_budgets",
    "uneven_work",
    "value_at",
    "verdict",
    "why_nothing",
    "work_text",
    "write_pdf",
    "write_report",
]
