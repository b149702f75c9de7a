"""Heat maps of measured locality and of the levels that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from localsmooth.errors import InvalidInputError
from localsmooth.report.sections import PageSection, render_sections
from localsmooth.report.tables import Table

__all__ = ["levels_figure", "locality_figure", "render_locality"]

_NUMBERED = 16  # larger matrices have too little room for numbers


def locality_figure(
    levels: Float[np.ndarray, "levels"], agreement: Float[np.ndarray, "levels output_groups input_groups"], symbol: str
) -> Figure:
    """One heat map per noise level: vote agreement of each output group with noise in one input group alone.

    Parameters
    ----------
    levels
        The levels.
    agreement
        Shares of votes that are the clean prediction.
    symbol
        Sign of the noise level, such as "σ".

    Raises
    ------
    InvalidInputError
        If there is no level.
    """
    if not levels.size:
        raise InvalidInputError("levels", "are empty", "Pass at least one")
    columns = min(3, len(levels))
    rows = -(-len(levels) // columns)
    figure = Figure(figsize=(2.6 * columns + 0.6, 2.4 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    lowest = float(min(agreement.min(), 0.999))
    shown = None
    for axes, level, matrix in zip(panels, levels, agreement, strict=False):
        shown = axes.imshow(matrix, cmap="viridis", vmin=lowest, vmax=1.0, interpolation="nearest")
        _frame(axes, f"{symbol} = {level:.3g}")
    for axes in panels[len(levels) :]:
        axes.set_visible(False)
    assert shown is not None
    bar = figure.colorbar(shown, ax=list(panels), shrink=0.8)
    bar.set_label("vote agreement", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def levels_figure(matrices: Mapping[str, Float[np.ndarray, "output_groups input_groups"]], symbol: str) -> Figure:
    """Level matrices side by side, on one scale.

    Parameters
    ----------
    matrices
        Matrices by name.
    symbol
        Sign of the noise level.

    Raises
    ------
    InvalidInputError
        If there is no matrix.
    """
    if not matrices:
        raise InvalidInputError("matrices", "are empty", "Pass at least one")
    figure = Figure(figsize=(3.6 * len(matrices), 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    finite = np.concatenate([matrix[np.isfinite(matrix)].ravel() for matrix in matrices.values()])
    largest = float(finite.max(initial=0.0)) or 1.0
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    shown = None
    for axes, (name, matrix) in zip(panels, matrices.items(), strict=True):
        shown = axes.imshow(matrix, cmap="magma", vmin=0.0, vmax=largest, interpolation="nearest")
        _frame(axes, name)
        if len(matrix) <= _NUMBERED:
            for (row, column), level in np.ndenumerate(matrix):
                color = "white" if level < 0.6 * largest else "black"
                axes.text(column, row, f"{level:.2g}", ha="center", va="center", fontsize=4.5, color=color)
    assert shown is not None
    bar = figure.colorbar(shown, ax=list(panels), shrink=0.8)
    bar.set_label(symbol, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _frame(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=8)
    axes.set_xlabel("input group", fontsize=7)
    axes.set_ylabel("output group", fontsize=7)
    axes.tick_params(labelsize=6)


def render_locality(
    title: str,
    notes: Sequence[str],
    levels: Float[np.ndarray, "levels"],
    agreement: Float[np.ndarray, "levels output_groups input_groups"],
    matrices: Mapping[str, Float[np.ndarray, "output_groups input_groups"]],
    table: Table,
    symbol: str,
) -> str:
    """The page of `localsmooth locality`.

    Parameters
    ----------
    title, notes
        Heading, and what the numbers rest on.
    levels, agreement, symbol
        As in `locality_figure`.
    matrices
        Level matrices to show.
    table
        How these matrices compare.
    """
    sections = [
        PageSection(
            "How much noise in one input group disturbs each output group",
            "The rest of the input is clean. A row is an output group, a column the input group with noise.",
            locality_figure(levels, agreement, symbol),
        ),
        PageSection("Levels that disturb equally little", figure=levels_figure(matrices, symbol), tables=[table]),
    ]
    return render_sections(title, notes, sections)
