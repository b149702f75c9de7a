"""Text and tables that flow over sheets of paper, drawn by matplotlib without any global state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextToPath

from localsmooth.report.tables import Table

__all__ = ["A4", "Paper", "wrapped"]

A4 = (8.27, 11.69)
"""Width and height of a sheet in inches."""
_POINTS = 72
_MARGIN = 50.0
_LEADING = 1.35
_GAP = 8.0
_INK, _QUIET, _RULE = "#1b1f24", "#57606a", "#d5d9de"
_SMALL = 6.5


class Paper:
    """Sheets of A4 that are filled from top to bottom.

    Attributes
    ----------
    sheets
        Those that were begun so far.
    """

    def __init__(self) -> None:
        self.sheets: list[Figure] = []
        self._y = 0.0

    @property
    def width(self) -> float:
        """Width between the margins, in points."""
        return A4[0] * _POINTS - 2 * _MARGIN

    def sheet(self) -> Figure:
        """Begin a sheet, and fill it from its top on."""
        figure = Figure(figsize=A4)
        FigureCanvasAgg(figure)
        self.sheets.append(figure)
        self._y = A4[1] * _POINTS - _MARGIN
        return figure

    def text(self, words: str, size: float = 9.0, bold: bool = False, quiet: bool = False, gap: float = _GAP) -> None:
        """Write a paragraph.

        Parameters
        ----------
        words
            What it says.
        size
            Of the letters, in points.
        bold, quiet
            How it looks.
        gap
            Space below it, in points.
        """
        for line in wrapped(words, self.width, size, bold):
            self._reserve(size * _LEADING)
            self._y -= size * _LEADING
            self._write(_MARGIN, line, size, bold, quiet)
        self._y -= gap

    def entries(self, entries: Sequence[tuple[str, Sequence[str]]], size: float = 8.5) -> None:
        """Write paragraphs that stand beside their headings.

        Parameters
        ----------
        entries
            Headings with their paragraphs.
        size
            Of the letters, in points.
        """
        indent = max((_width(heading, size, True) for heading, _ in entries), default=0.0) + 2 * _GAP
        for heading, paragraphs in entries:
            lines = [line for words in paragraphs for line in wrapped(words, self.width - indent, size)]
            self._reserve(min(len(lines), 3) * size * _LEADING)
            for number, line in enumerate(lines):
                self._reserve(size * _LEADING)
                self._y -= size * _LEADING
                if not number:
                    self._write(_MARGIN, heading, size, True)
                self._write(_MARGIN + indent, line, size)
            self._y -= _GAP / 2
            self._rule()
        self._y -= _GAP

    def table(self, table: Table, size: float = _SMALL) -> None:
        """Write a table, and its note below it.

        Parameters
        ----------
        table
            Headings and rows.
        size
            Of the letters, in points.
        """
        widths = _column_widths(table, self.width, size)
        for number, row in enumerate([table.headings, *table.rows]):
            cells = [wrapped(cell, width, size, not number) for cell, width in zip(row, widths, strict=True)]
            height = max(len(lines) for lines in cells) * size * _LEADING
            self._reserve(height + _GAP)
            left = _MARGIN
            for column, (lines, width) in enumerate(zip(cells, widths, strict=True)):
                right = column >= table.text_columns
                for place, line in enumerate(lines):
                    x = left + (width - _width(line, size, not number) if right else 0.0)
                    self._write(x, line, size, not number, down=(place + 1) * size * _LEADING)
                left += width + _GAP
            self._y -= height + 3
            self._rule()
        self._y -= _GAP / 2
        if table.note:
            self.text(table.note, size, quiet=True)

    def _reserve(self, height: float) -> None:
        """Begin a sheet where there is no room for so much on the last one."""
        if not self.sheets or self._y - height < _MARGIN:
            self.sheet()

    def _rule(self) -> None:
        x = _MARGIN / (A4[0] * _POINTS)
        y = self._y / (A4[1] * _POINTS)
        self.sheets[-1].add_artist(Line2D([x, 1 - x], [y, y], color=_RULE, linewidth=0.5))

    def _write(
        self, x: float, line: str, size: float, bold: bool = False, quiet: bool = False, down: float = 0.0
    ) -> None:
        self.sheets[-1].text(
            x / (A4[0] * _POINTS),
            (self._y - down) / (A4[1] * _POINTS),
            line,
            fontsize=size,
            fontweight="bold" if bold else "normal",
            color=_QUIET if quiet else _INK,
            va="baseline",
            parse_math=False,
        )


def wrapped(words: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Break text into lines of a width in points; words that are wider are broken, too.

    Parameters
    ----------
    words
        The text.
    width
        In points.
    size
        Of the letters, in points.
    bold
        Whether they are bold.
    """
    lines = [""]
    for word in words.encode("utf-8", "replace").decode("utf-8").split():
        longer = f"{lines[-1]} {word}".strip()
        if _width(longer, size, bold) <= width:
            lines[-1] = longer
            continue
        lines += [""] * bool(lines[-1])
        for letter in word:
            if lines[-1] and _width(lines[-1] + letter, size, bold) > width:
                lines.append("")
            lines[-1] += letter
    return lines


def _column_widths(table: Table, width: float, size: float) -> list[float]:
    """Widths of the columns in points: what they need, or less for columns of words where that is too much."""
    rows = [table.headings, *table.rows]
    columns = range(len(table.headings))
    needed = [max(_width(row[column], size, True) for row in rows) for column in columns]
    room = width - _GAP * (len(needed) - 1)
    if sum(needed) <= room:
        return needed
    # Headings of numbers may be broken: their cells may not, as far as that is possible.
    cells = [max((_width(row[column], size) for row in table.rows), default=0.0) for column in columns]
    words = [max(_longest(row[column], size) for row in rows) for column in columns]
    least = [
        max(word, cell if at >= table.text_columns else 0.0)
        for at, (word, cell) in enumerate(zip(words, cells, strict=True))
    ]
    if sum(least) >= room:
        return [each * room / sum(least) for each in least]
    spare = (room - sum(least)) / (sum(needed) - sum(least))
    return [low + (high - low) * spare for low, high in zip(least, needed, strict=True)]


def _longest(text: str, size: float) -> float:
    return max((_width(word, size, True) for word in text.split()), default=0.0)


def _width(text: str, size: float, bold: bool = False) -> float:
    """Width of a line in points, in the fonts that texts are written in now."""
    return _measured(text, size, bold, tuple(matplotlib.rcParams["font.family"])) if text else 0.0


@lru_cache(maxsize=20_000)
def _measured(text: str, size: float, bold: bool, families: tuple[str, ...]) -> float:
    font = FontProperties(family=list(families), size=size, weight="bold" if bold else "normal")
    return float(_FONTS.get_text_width_height_descent(text, font, False)[0])


_FONTS = TextToPath()
