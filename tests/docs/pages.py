"""Code blocks of the documentation's pages."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["PAGES", "ROOT", "blocks", "page", "run", "sections"]

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "experiments").rglob("*.md"))
)


def page(name: str) -> str:
    """Text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """Text below each heading of the second order."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def run(code: str, where: str, names: dict[str, object]) -> None:
    """Execute code of a page."""
    exec(compile(code, where, "exec"), names)
