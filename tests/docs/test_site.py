"""The site that `make docs` builds has every page and every room; the build itself checks what it shows."""

from __future__ import annotations

import ast
import re
from importlib import import_module

from tests.docs.pages import ROOT
from tests.seeding import seeded

NAVIGATION = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)


def rooms() -> list[str]:
    """`ROOMS` of the script that lays out the reference, which cannot be imported without mkdocs."""
    source = (ROOT / "scripts" / "site" / "pages.py").read_text(encoding="utf-8")
    return re.findall(r'"([\w.]+)"', source[source.index("\nROOMS = (") : source.index('"""Rooms of the package')])


def test_every_page_is_in_the_navigation() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert pages | {"index.md", "changes.md"} == {name for name in NAVIGATION if "/" not in name}


def test_every_room_of_the_public_face_is_in_the_reference() -> None:
    shown = [name.removeprefix("reference/").removesuffix(".md") for name in NAVIGATION if "/" in name]
    assert shown == ["localsmooth", *rooms()]
    stub = ast.parse((ROOT / "src" / "localsmooth" / "__init__.pyi").read_text(encoding="utf-8"))
    below = {
        alias.name
        for statement in stub.body
        if isinstance(statement, ast.ImportFrom) and statement.module is None
        for alias in statement.names
    }
    assert {name.replace("graphs", "tasks.graphs") for name in below} <= set(shown)
    with seeded(0):
        assert all(import_module(f"localsmooth.{room}").__all__ for room in rooms())
