"""One self-contained HTML page for the results of one or several methods."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from localsmooth.disk import expanded, write_atomically
from localsmooth.report.answers import answers
from localsmooth.report.cards import cards, largest_radius
from localsmooth.report.charts import charts
from localsmooth.report.graphs import GraphCard, graph_cards, share_colors
from localsmooth.report.nothing import reach_of_result, why_nothing
from localsmooth.report.overlap import overlaps_of
from localsmooth.report.palette import class_colors, method_color
from localsmooth.report.panel import panel_of
from localsmooth.report.pictures import png, scale_picture
from localsmooth.report.promise import BOUND_WORDS, OWN_BOUND, described, foundations, promises_of, tiles
from localsmooth.report.summary import curves_by_kind, headline_budget, headline_rule, shown_targets
from localsmooth.report.tables import (
    certificate_table,
    class_table,
    configuration_text,
    lost_classes,
    prediction_table,
    run_table,
    smoothing_table,
)
from localsmooth.report.together import shown_together
from localsmooth.report.work import uneven_work
from localsmooth.results import (
    NO_LABEL,
    counts_outputs,
    marks_wrong,
    run_info,
    target_title,
)

__all__ = ["render_report", "write_report"]


def write_report(
    results: Mapping[str, xr.Dataset] | xr.Dataset,
    path: str | os.PathLike[str],
    title: str = "Collective robustness certificate",
    max_items: int = 12,
    overlaps: Mapping[str, xr.Dataset] | None = None,
) -> None:
    """Write the page to a file; see `render_report`.

    Raises
    ------
    InvalidInputError
        If there is no result, a data set is not a valid result, or the results cannot be compared.
    OutputError
        If the file cannot be written.
    """
    path = expanded(path)  # what is no path is refused before anything is drawn
    page = render_report(results, title, max_items, overlaps)
    write_atomically(path, page.encode("utf-8", errors="replace"))


def render_report(
    results: Mapping[str, xr.Dataset] | xr.Dataset,
    title: str = "Collective robustness certificate",
    max_items: int = 12,
    overlaps: Mapping[str, xr.Dataset] | None = None,
) -> str:
    """Make one HTML page that works offline: curves, pictures of each item, tables and the promise in words.

    Parameters
    ----------
    results
        Results by the name of their method, the one to feature first. Items of the same name are shown together.
    title
        Heading of the page.
    max_items
        How many items are shown with pictures; the numbers are over all of them.
    overlaps
        Certified IoU and Dice (`localsmooth.certified_overlap`) of some of the methods, by their names.

    Raises
    ------
    InvalidInputError
        If there is no result, a data set is not a valid result, the results differ in norm, units, classes or kinds
        of budget, or overlaps are of other samples than the result of their method.
    """
    results = shown_together(results, max_items)
    runs = {method: run_info(dataset) for method, dataset in results.items()}
    run = next(iter(runs.values()))
    promises = promises_of(runs)
    panel = overlaps_of(overlaps or {}, runs)
    graphs = graph_cards(results)
    shown = [] if graphs else cards(results, max_items, panel_of(run.task))
    curves = curves_by_kind(results)
    said = {kind: f"{kind} only" if len(run.budgets) > 1 else "" for kind in curves}
    diagrams = [chart for kind, alone in curves.items() for chart in charts(alone, said[kind])]
    script, style = _template("page.js"), _template("page.css")
    if graphs:
        script, style = script + _template("graph.js"), style + _template("graph.css")
    targets = shown_targets(results)
    labelled = any(bool((dataset["label"] != NO_LABEL).any()) for dataset in results.values())
    data: dict[str, Any] = {
        "charts": [chart.data() for chart in (*diagrams, *(panel.charts if panel else ()))],
        "counts": [target for target in targets if counts_outputs(target)],
        "marks": [target for target in targets if marks_wrong(target, labelled)],
        "cards": {key: value for card in shown for key, value in card.data.items()},
    }
    if graphs:
        data["graphs"] = {graph.key: graph.data for graph in graphs}
        data["shareColors"], data["classNames"] = share_colors(), list(run.class_names)
    main = next(iter(curves.values()))
    first = next(iter(main.values()))
    budgets, headline = first["budget"].values.tolist(), headline_budget(*main.values())
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=PackageLoader("localsmooth.report"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        title=title,
        run=run,
        runs=runs,
        promises=promises,
        foundations=foundations(runs),
        tiles=tiles(main),
        headline_rule=headline_rule(*main.values()),
        uneven=uneven_work(results),
        answers=answers(main),
        remarks={method: [*why_nothing(d), *filter(None, [reach_of_result(d)])] for method, d in results.items()},
        smoothing=smoothing_table(results),
        bound_words={name: BOUND_WORDS.get(name, OWN_BOUND) for one in runs.values() for name in one.bound_names},
        charts=diagrams,
        overlaps=panel,
        cards=shown,
        described=described(runs, "nodes" if graphs else "outputs"),
        graphs=graphs,
        graph_start=_start(graphs, headline),
        share_colors=share_colors(),
        items=first.sizes["item"],
        classes=list(zip(run.class_names, class_colors(len(run.class_names)), strict=True)),
        method_colors={method: method_color(index) for index, method in enumerate(results)},
        largest_radius=largest_radius(results),
        scale=png(scale_picture()),
        budgets=budgets,
        start=min(int(np.searchsorted(budgets, headline)), len(budgets) - 1),
        targets={target: target_title(target) for target in targets},
        wrong="wrong" if labelled else "other than without noise",
        lost=lost_classes(results),
        classwise=class_table(results),
        bounds=list(reversed(run.bound_names)),
        predictions=prediction_table(results),
        certificates=[(said[kind].capitalize(), certificate_table(alone)) for kind, alone in curves.items()],
        facts=run_table(results),
        configurations={method: configuration_text(one) for method, one in runs.items()},
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        data=Markup(_script_json(data)),
    )


def _template(name: str) -> str:
    return (files("localsmooth.report") / "templates" / name).read_text("utf-8")


def _start(graphs: list[GraphCard], budget: float) -> int:
    """Where the slider for deletions starts."""
    deletions = graphs[0].data["deletions"] if graphs else [0]
    return next((place for place, value in enumerate(deletions) if value >= budget), 0)


def _script_json(data: dict[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
