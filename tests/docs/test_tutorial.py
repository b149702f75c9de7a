"""The tutorial: its code runs, prints what the page shows, and comes before any definition."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import blocks, page, run, sections
from tests.seeding import seeded

TUTORIAL = page("docs/tutorial.md")


def test_the_page_shows_what_its_code_prints(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    with seeded(0):
        for code in blocks(TUTORIAL, "python"):
            run(code, "docs/tutorial.md", names)
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    shown = [line.rstrip() for text in blocks(TUTORIAL, "text") for line in text.splitlines()]
    assert printed == shown


def test_the_numbers_of_the_text_are_those_of_the_table() -> None:
    """So many labels change at most as the envelope does not certify at ε = .75."""
    (line,) = [line for line in TUTORIAL.splitlines() if line.startswith("envelope")]
    certified = int(line.split()[3])
    assert f"at most {288 - certified} of the 288 labels" in TUTORIAL


def test_the_example_is_short_and_the_words_are_explained() -> None:
    words = sections(TUTORIAL)["The words"]
    example = TUTORIAL[: TUTORIAL.index("## The words")]
    prose = re.sub(r"^```.*?^```", "", example, flags=re.DOTALL | re.MULTILINE)
    assert len(prose.split()) <= 320
    defined = re.findall(r"^\* \*\*(.*?)\*\*", words, flags=re.MULTILINE)
    assert defined == ["Output group", "Input group", "Level", "Budget", "Certified count", "Abstain", "Target"]
