"""A self-contained page of sections, each with a figure and tables."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from localsmooth.report.tables import Table

__all__ = ["PageSection", "render_sections"]


@dataclass(frozen=True, eq=False)
class PageSection:
    """One section of a page.

    Parameters
    ----------
    title
        Heading.
    note
        A sentence below it.
    figure
        A picture, or None.
    verdict
        What the picture shows, in words.
    tables
        Tables below.
    """

    title: str
    note: str = ""
    figure: Figure | None = None
    verdict: str = ""
    tables: Sequence[Table] = field(default_factory=tuple)


def render_sections(title: str, notes: Sequence[str], sections: Sequence[PageSection]) -> str:
    """Make one HTML page that works offline.

    Parameters
    ----------
    title
        Heading of the page.
    notes
        What the numbers rest on.
    sections
        In their order.
    """
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=PackageLoader("localsmooth.report"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (files("localsmooth.report") / "templates" / "page.css").read_text("utf-8")
    shown = [
        {
            "title": section.title,
            "note": section.note,
            "figure": None if section.figure is None else _address(section.figure),
            "verdict": section.verdict,
            "tables": section.tables,
        }
        for section in sections
    ]
    template = environment.get_template("sections.html.j2")
    return template.render(title=title, notes=notes, sections=shown, style=Markup(style))


def _address(figure: Figure) -> str:
    """A figure as the address of an embedded picture."""
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
