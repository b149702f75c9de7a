"""The manual of the solver: its code runs, and its file is a problem."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from localsmooth.collective import Exact, problem_from, solve

MANUAL = (Path(__file__).parents[2] / "docs" / "solving.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the manual's blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", MANUAL, flags=re.DOTALL)


def test_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks, one after another in one namespace; two problems by hand."""
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(block, "docs/solving.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3
    # .4² pays for η = .5 of the only output of its class (.125), and for nothing else beside it: recalls of 1 and 0.
    assert float(printed[1]) == 0.5
    # ε² = .25 pays for η = 1 through column 0 (.25) or for η = .5 through column 1 (.125), and not for both.
    assert names["answer"].certified == names["answer"].upper == 3
    assert all(answer.verified is not None for answer in names["curve"])
    # Without a budget, everything stands.
    assert names["curve"].certified[0] == 4
    assert solve(names["both"], Exact()).certified[0] == 5
    # Nothing spent: 2 of 3 with label 0 are right, none is added; the only one with label 1 is right, and one is added.
    assert names["overlap"].iou[:, 0].tolist() == [2 / 3, 0.5]


def test_file_is_a_problem() -> None:
    """The JSON example is read and has three budgets."""
    (text,) = blocks("json")
    assert len(solve(problem_from(json.loads(text)))) == 3
