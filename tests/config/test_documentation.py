"""The page about the configuration is the one that the schema makes."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.seeding import seeded

ROOT = Path(__file__).parents[2]


def test_page_is_current() -> None:
    with seeded(0):  # packages that are imported on the way may seed what they like
        made = runpy.run_path(str(ROOT / "scripts" / "document_configuration.py"))["document"]()
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == made, "run python scripts/document_configuration.py"
    for line in made.splitlines():
        assert not line.endswith("|  |"), f"a key without a meaning: {line}"
