"""The stored problems with known answers, and seeds of small random ones."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from localsmooth.collective import Caps, Integer, Problem, Rows
from localsmooth.collective.kernel.steps import Steps, step_functions
from localsmooth.testing.collective import SmallProblem

CASES = json.loads((Path(__file__).parents[1] / "data" / "collective.json").read_text())


def all_steps(eta: np.ndarray) -> Steps:
    """Count the targets of a single group."""
    return step_functions(eta, np.zeros(eta.size, dtype=np.int64), 1)[0]


def stored(case) -> Problem:
    threat = Rows(case["A"], case["c"]) & Caps(case["caps"])
    if case["integer"]:
        threat = threat & Integer()
    return Problem(case["weights"], case["eta"], case["group"], threat, case["targets"])


def random_problem(seed, **kind):
    """Return the arguments of a small problem as plain arrays, with ties, zeros and idle groups among them."""
    made = SmallProblem.random(seed, **kind)
    return {field.name: getattr(made, field.name) for field in fields(made)}


def build(case) -> Problem:
    return SmallProblem(**case).build()


seeds = st.integers(0, 2**32 - 1)
