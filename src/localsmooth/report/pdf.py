"""The page as sheets of paper, for an appendix: the same words, numbers and figures in a PDF file."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from functools import partial

import matplotlib
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from localsmooth.disk import expanded, write_atomically
from localsmooth.report.answers import answers
from localsmooth.report.drawing import ItemDrawing, draw_curves, plain
from localsmooth.report.figures import LANE, compose_graph, compose_item, item_maps
from localsmooth.report.fonts import lettered, letters_of
from localsmooth.report.graph_drawing import flip_kinds
from localsmooth.report.nothing import reach_of_result, why_nothing
from localsmooth.report.overlap import overlap_curves, overlaps_of
from localsmooth.report.overlap_drawing import draw_overlaps
from localsmooth.report.paper import A4, Paper, wrapped
from localsmooth.report.promise import BOUND_WORDS, OWN_BOUND, described, foundations, promises_of, tiles
from localsmooth.report.summary import (
    curves_by_kind,
    has_target,
    headline_budget,
    headline_rule,
    headline_target,
    shown_targets,
)
from localsmooth.report.tables import (
    certificate_table,
    class_table,
    lost_classes,
    prediction_table,
    run_table,
    smoothing_table,
)
from localsmooth.report.together import shown_together
from localsmooth.report.work import uneven_work
from localsmooth.results import RATIO, by_method, item_view, run_info

__all__ = ["sheets", "write_pdf"]

_ON_A_SHEET = 6
_HEIGHT = 2.2
_FONT_TYPE = 42  # TrueType, whose letters can be searched for and copied


def write_pdf(
    results: Mapping[str, xr.Dataset] | xr.Dataset,
    path: str | os.PathLike[str],
    title: str = "Collective robustness certificate",
    max_items: int = 12,
    overlaps: Mapping[str, xr.Dataset] | None = None,
) -> None:
    """Write a PDF file of A4 sheets: what `write_report` shows, without what moves.

    Parameters
    ----------
    results
        Results by the name of their method, the one to feature first.
    path
        File to write.
    title
        Heading of the first sheet.
    max_items
        How many items are shown with pictures; the numbers are over all of them.
    overlaps
        Certified IoU and Dice of some of the methods, by their names.

    Raises
    ------
    InvalidInputError
        As `render_report`, and for a path that is none.
    OutputError
        If the file cannot be written.

    Warns
    -----
    UserWarning
        If names have letters that no installed font has.
    """
    results, path = by_method(results), expanded(path)  # what is no path is refused before anything is drawn
    letters = letters_of([*results.values(), *(overlaps or {}).values()], title, *results)
    content = io.BytesIO()
    # No date: the same results make the same file.
    with (
        lettered(letters),
        matplotlib.rc_context({"pdf.fonttype": _FONT_TYPE}),
        PdfPages(content, metadata={"CreationDate": None}) as file,
    ):
        for figure in sheets(results, title, max_items, overlaps):
            file.savefig(figure)
    write_atomically(path, content.getvalue())


def sheets(
    results: Mapping[str, xr.Dataset] | xr.Dataset,
    title: str,
    max_items: int,
    overlaps: Mapping[str, xr.Dataset] | None = None,
) -> list[Figure]:
    """Draw the sheets; arguments and errors as for `write_pdf`."""
    results = shown_together(results, max_items)
    by_kind = curves_by_kind(results)
    paper = Paper()
    _first_screen(paper, results, next(iter(by_kind.values())), title)
    numbers = Paper()
    _numbers(numbers, results, by_kind, overlaps or {})
    return [*paper.sheets, *_curves(by_kind, overlaps or {}), *numbers.sheets, *_items(results, max_items)]


def _first_screen(paper: Paper, results: Mapping[str, xr.Dataset], main: Mapping[str, xr.Dataset], title: str) -> None:
    """Write what is promised, in plain words and in full."""
    runs = {method: run_info(dataset) for method, dataset in results.items()}
    paper.text(title, 16.0, bold=True)
    for tile in tiles(main):
        paper.text(f"{tile.method}: {tile.number}", 13.0, bold=True, gap=1.0)
        paper.text(tile.text)
    paper.text(headline_rule(*main.values()), 8.0, quiet=True)
    if (sentence := uneven_work(results)) is not None:
        paper.text(sentence, bold=True)
    for method, sentences in lost_classes(results).items():
        paper.text(f"{_of(method, results)}{' '.join(sentences)}", bold=True)
    paper.entries(
        [
            (
                answer.question,
                [
                    ("" if len(methods) == len(results) else f"{', '.join(methods)}: ") + " ".join(sentences)
                    for methods, sentences in answer.texts.items()
                ],
            )
            for answer in answers(main)
        ]
    )
    for text, methods in promises_of(runs).items():
        whose = "" if len(methods) == len(results) else f" of {', '.join(methods)}"
        paper.text(f"The promise{whose}", 11.0, bold=True, gap=2.0)
        paper.text(text)
    for method, dataset in results.items():
        if sentences := [*why_nothing(dataset), *filter(None, [reach_of_result(dataset)])]:
            paper.text(f"{_of(method, results)}{' '.join(sentences)}", quiet=True)
    paper.text("What it rests on", 11.0, bold=True, gap=2.0)
    for methods, sentences in foundations(runs).items():
        whose = "" if len(methods) == len(results) else f"{', '.join(methods)}: "
        for sentence in sentences:
            paper.text(f"• {whose}{sentence}", 8.0, gap=2.0)


def _numbers(
    paper: Paper,
    results: Mapping[str, xr.Dataset],
    by_kind: Mapping[str, Mapping[str, xr.Dataset]],
    overlaps: Mapping[str, xr.Dataset],
) -> None:
    """Write the tables."""
    runs = {method: run_info(dataset) for method, dataset in results.items()}
    paper.text("Numbers", 13.0, bold=True)
    for kind, alone in by_kind.items():
        if len(next(iter(runs.values())).budgets) > 1:
            paper.text(f"{kind.capitalize()} only", bold=True)
        paper.table(certificate_table(alone))
    for name in dict.fromkeys(name for run in runs.values() for name in run.bound_names):
        paper.text(f"{name} {BOUND_WORDS.get(name, OWN_BOUND)}.", 7.0, quiet=True, gap=2.0)
    paper.text("")
    paper.table(prediction_table(results))
    if (classes := class_table(results)) is not None:
        paper.table(classes)
    if (panel := overlaps_of(overlaps, runs)) is not None:
        paper.text("How much of the IoU is certified", 13.0, bold=True)
        for text, methods in panel.promises.items():
            paper.text(f"The promise of {', '.join(methods)}. {text}")
        for title, table in panel.tables:
            paper.text(title, bold=True)
            paper.table(table)
    paper.text("Runs", 13.0, bold=True)
    if (smoothing := smoothing_table(results)) is not None:
        paper.table(smoothing)
    paper.table(run_table(results))


def _curves(by_kind: Mapping[str, Mapping[str, xr.Dataset]], overlaps: Mapping[str, xr.Dataset]) -> list[Figure]:
    """Draw the curves of all targets that every method has, and of the IoU, six on a sheet."""
    wanted: list[tuple[str, Callable[[Axes], None]]] = [
        (f"{kind} only" if len(by_kind) > 1 else "", partial(draw_curves, results=alone, target=target))
        for kind, alone in by_kind.items()
        for target in shown_targets(alone)
        if all(has_target(dataset, target) for dataset in alone.values())
    ]
    if overlaps:
        kinds = overlap_curves(next(iter(overlaps.values())))
        title = f"{next(iter(kinds))} only" if len(kinds) > 1 else ""
        wanted.append((title, partial(draw_overlaps, overlaps=overlaps)))
    made: list[Figure] = []
    for start in range(0, len(wanted), _ON_A_SHEET):
        figure = _sheet()
        places = figure.subplots(3, 2, squeeze=False).ravel().tolist()
        some = wanted[start : start + _ON_A_SHEET]
        for axes, (title, draw) in zip(places, some, strict=False):
            draw(axes)
            axes.set_title(title, fontsize=8)
        for axes in places[len(some) :]:
            axes.set_visible(False)
        made.append(figure)
    return made


def _items(results: Mapping[str, xr.Dataset], max_items: int) -> list[Figure]:
    """Draw the panels of the first items of each method below each other; of what has no picture, none."""
    drawings = [
        (method, drawing)
        for method, dataset in results.items()
        if "edge_ends" not in dataset
        for item in range(min(max_items, dataset.sizes["item"]))
        if (drawing := ItemDrawing.found(dataset, item)) is not None
    ]
    main = next(iter(curves_by_kind(results).values()))
    budget, target = headline_budget(*main.values()), headline_target(*main.values())
    words = described({method: run_info(dataset) for method, dataset in results.items()}, "outputs")
    made = [_graph(method, dataset) for method, dataset in results.items() if flip_kinds(dataset)]
    waiting: list[tuple[str, ItemDrawing, float]] = []

    def flush() -> None:
        if not waiting:
            return
        figure, rest = _sheet(), A4[1] - 1 - sum(height for *_, height in waiting)
        heights = [*(height for *_, height in waiting), max(rest, 0.01)]
        for part, (method, drawing, _) in zip(
            figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False).ravel(), waiting, strict=False
        ):
            # Budgets of the others may end before that of the headline.
            reached = min(budget, float(drawing.dataset["budget"].values[-1]))
            compose_item(part, drawing, reached, target if has_target(drawing.dataset, target) else RATIO, None)
            part.suptitle(plain(f"{drawing.view.name}, {method}"), fontsize=8, fontweight="bold")
        if words:
            figure.text(0.06, 0.03, "\n".join(wrapped(words, 0.88 * 72 * A4[0], 7.0)), fontsize=7, parse_math=False)
        made.append(figure)
        waiting.clear()

    for method, drawing in drawings:
        height = LANE * len(item_maps(drawing, None, target, None)) + 0.6 if drawing.line else _HEIGHT
        if sum(each for *_, each in waiting) + height > A4[1] - 1:
            flush()
        waiting.append((method, drawing, height))
    flush()
    return made


def _graph(method: str, dataset: xr.Dataset) -> Figure:
    """Draw a graph in the upper part of a sheet."""
    figure = _sheet()
    part, rest = figure.subfigures(2, 1, squeeze=False).ravel().tolist()
    compose_graph(part, dataset)
    part.suptitle(plain(f"{item_view(dataset, 0).name}, {method}"), fontsize=8, fontweight="bold")
    words = (
        "Hollow nodes abstain; small grey ones are not certified, such as those that trained. What a node tolerates on "
        "its own is no count: one attack is shared by all."
    )
    lines = wrapped(words, 0.88 * 72 * A4[0], 7.0)
    rest.text(0.0, 0.98, "\n".join(lines), fontsize=7, va="top", parse_math=False)
    return figure


def _sheet() -> Figure:
    figure = Figure(figsize=A4, layout=ConstrainedLayoutEngine(rect=(0.06, 0.05, 0.88, 0.9)))
    FigureCanvasAgg(figure)
    return figure


def _of(method: str, results: Mapping[str, xr.Dataset]) -> str:
    return f"{method}: " if len(results) > 1 else ""
