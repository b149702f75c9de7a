"""What `make docs` does besides mkdocs: hooks that make a site of pages which are written to be read in the repository.

Pages keep the links that work in the repository. Here, the first page and the list of changes join the others, files
that pages link to become pages with their text, and the reference of the public interface is laid out room by room.
"""

from __future__ import annotations

import ast
import logging
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "localsmooth"
LANGUAGES = {".py": "python", ".toml": "toml"}
# What lies elsewhere in the repository and is read as a page, and its place in the site.
MOVED = {"README.md": "index.md", "CHANGELOG.md": "changes.md"}
ROOMS = (
    *("noise", "layout", "models", "datasets", "tasks", "tasks.graphs", "tasks.points", "tasks.tokens"),
    *("bounds", "certificates", "baselines", "collective", "sampling", "runs", "execution", "results"),
    *("report", "plot", "training", "tuning", "locality", "evidence", "testing"),
)
"""Rooms of the package that have a page of the reference, in the order of the navigation."""

IMPORTED_AS = {"localsmooth.tasks.graphs": "localsmooth.graphs"}

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r" *(```|~~~)")
MARKER = re.compile(r"( *)([*+-]|\d+[.)])( +)(?=\S)")

log = logging.getLogger("mkdocs.hooks.pages")
_texts: dict[str, str] = {}
"""What each page of the repository says in CommonMark, by its place in the site; filled and emptied within a build."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/."""
    for path, place in MOVED.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text("utf-8")))
    pending = [*(f"docs/{file.src_uri}" for file in files.documentation_pages()), *MOVED]
    seen = set(pending)
    for path in pending:  # which grows by the pages that pages link to
        if not path.endswith(".md") or not (ROOT / path).is_file():
            continue
        for _, target, _ in LINK.findall((ROOT / path).read_text("utf-8")):
            found = _in_repository(path, target)
            if found is None or found in seen or found.startswith("docs/"):
                continue
            seen.add(found)
            pending.append(found)
            text = (ROOT / found).read_text("utf-8")
            content = text if found.endswith(".md") else _listing(found, text)
            files.append(File.generated(config, _place(found), content=content))
    for room in ("", *ROOMS):
        files.append(File.generated(config, f"reference/{room or 'localsmooth'}.md", content=_reference(room)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to their places in the site, and indent lists as Python-Markdown wants them."""
    here = page.file.src_uri
    path = _path(here)
    if page.parent is None:
        page.meta["hide"] = ["navigation"]  # there would be nothing but the page itself
    if path is None:
        page.meta["search"] = {"exclude": here.startswith("files/")}
        return markdown

    def moved(link: re.Match[str]) -> str:
        target = link[2]
        found = _in_repository(path, target)
        if found is None:
            return link[0]
        _, mark, anchor = target.partition("#")
        return f"{link[1]}{posixpath.relpath(_place(found), posixpath.dirname(here) or '.')}{mark}{anchor}{link[3]}"

    _texts[here] = _words(MarkdownIt("commonmark").enable("table").render(markdown))
    return indented(LINK.sub(moved, markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Warn of a page that does not say what it says in the repository, and of a reference that leaves out a name."""
    here = page.file.src_uri
    meant, shown = _texts.pop(here, None), _words(html)
    if meant is not None and meant != shown:
        same = len(posixpath.commonprefix([meant, shown]))
        where = slice(max(0, same - 60), same + 80)
        log.warning("%s: rendered as …%r… in place of …%r…", here, shown[where], meant[where])
    room = re.fullmatch(r"reference/(.+)\.md", here)
    if room is not None:
        whole = _dotted(room[1])
        for name in public("" if whole == "localsmooth" else room[1]):
            if f'id="{whole}.{name}"' in html or f'id="{whole}.{name}.{name}"' in html:
                continue
            log.warning("%s: %s is left out, as whatever has no docstring is", here, name)
    return html


def on_post_build(config: MkDocsConfig) -> None:
    """Warn of whatever a browser would fetch from elsewhere."""
    for file in Path(config.site_dir).rglob("*"):
        if file.suffix == ".html":
            loaded = _Loads()
            loaded.feed(file.read_text("utf-8"))
            for address in loaded.elsewhere:
                log.warning("%s loads %s", file.relative_to(config.site_dir), address)
        elif file.suffix == ".css":
            for address in re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^)\"']+)", file.read_text("utf-8")):
                log.warning("%s loads %s", file.relative_to(config.site_dir), address)


def indented(markdown: str) -> str:
    """Give what lies in list items the four spaces that Python-Markdown wants, and lists an empty line before them."""
    lines: list[str] = []
    columns: list[int] = []  # at which the text of the open items begins
    fence, blank, loose = False, True, False
    for line in markdown.splitlines():
        if not line.strip():
            lines.append("")
            blank, loose = True, True
            continue
        column = len(line) - len(line.lstrip())
        opens = FENCE.match(line) is not None
        marker = None if fence else MARKER.match(line)
        goes_on = not blank and marker is None and not opens
        depth = len(columns)
        while not fence and not goes_on and columns and column < columns[-1]:
            columns.pop()
        held = columns[-1] if columns else 0
        if marker is not None and column - held < 4:
            if not blank and (loose or len(columns) == depth):
                lines.append("")  # CommonMark lets a list interrupt a paragraph
            lines.append("    " * len(columns) + f"{marker[2]:<4}" + line[marker.end() :])
            columns.append(marker.end())
            loose = False
        else:
            lines.append("    " * len(columns) + line[min(held, column) :])
        fence, blank = fence != opens, False
    return "\n".join(lines) + "\n"


def public(room: str) -> list[str]:
    """What the face of a room, or of the package, lists in `__all__`; rooms below it have pages of their own."""
    base = PACKAGE.joinpath(*room.split("."))
    faces = [base / "__init__.pyi", base / "__init__.py", base.with_suffix(".py")]
    tree = ast.parse(next(face for face in faces if face.is_file()).read_text("utf-8"))
    below = {
        alias.name
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom) and statement.module is None
        for alias in statement.names
    }
    (names,) = (
        ast.literal_eval(statement.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"
    )
    return [name for name in names if name not in below and not name.startswith("_")]


def _dotted(room: str) -> str:
    return room if room == "localsmooth" else f"localsmooth.{room}"


def _reference(room: str) -> str:
    """Page of the reference, for mkdocstrings."""
    whole = _dotted(room or "localsmooth")
    alone = [name for name in public(room) if _named_like_its_module(room, name)]
    members = "".join(f"        - {name}\n" for name in public(room) if name not in alone)
    page = f"# {IMPORTED_AS.get(whole, whole)}\n\n::: {whole}\n    options:\n      members:\n{members}"
    options = "    options:\n      show_root_heading: true\n      show_root_toc_entry: true\n"
    return page + "".join(f"\n::: {whole}.{name}.{name}\n{options}" for name in alone)


def _named_like_its_module(room: str, name: str) -> bool:
    """Whether griffe takes a name for the module that defines it."""
    return PACKAGE.joinpath(*room.split("."), f"{name}.py").is_file()


def _listing(path: str, text: str) -> str:
    """Page with the text of a file."""
    return f"# {path}\n\n````{LANGUAGES.get(Path(path).suffix, 'text')}\n{text.rstrip()}\n````\n"


def _place(path: str) -> str:
    """Where a file of the repository lies in the site."""
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}" if path.endswith(".md") else f"files/{path}.md"


def _path(place: str) -> str | None:
    """The file of the repository that a page shows as Markdown; None of listings and the reference."""
    for path, moved in MOVED.items():
        if moved == place:
            return path
    path = place.removeprefix("files/") if place.startswith("files/") else f"docs/{place}"
    return path if (ROOT / path).is_file() else None


def _in_repository(path: str, target: str) -> str | None:
    """The file that a link leads to, seen from the repository; None of anchors, addresses and what is not there."""
    file = target.partition("#")[0]
    if not file or re.match(r"\w+:", target):
        return None
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
    return found if (ROOT / found).is_file() else None


class _Words(HTMLParser):
    """The text of a page, without white space and marks of headings, and the number of its cells, items and blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"li", "td", "th", "pre", "h1", "h2", "h3", "h4", "ul", "ol"}:
            self.parts.append(f"<{tag}>")

    def handle_data(self, data: str) -> None:
        self.parts.append(data.removesuffix("¶"))


def _words(html: str) -> str:
    parser = _Words()
    parser.feed(html)
    return re.sub(r"\s+", "", "".join(parser.parts))


class _Loads(HTMLParser):
    """Addresses elsewhere that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        loaded: Any = values.get("href") if tag == "link" and values.get("rel") != "canonical" else values.get("src")
        if loaded and re.match(r"(https?:)?//", loaded):
            self.elsewhere.append(loaded)
