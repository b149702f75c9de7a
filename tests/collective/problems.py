"""Random small problems for property tests, and the stored ones with known answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from localsmooth.collective import Caps, Integer, Problem, Rows
from localsmooth.collective.kernel.steps import Steps, step_functions

CASES = json.loads((Path(__file__).parents[1] / "data" / "collective.json").read_text())


def all_steps(eta: np.ndarray) -> Steps:
    """Count the targets of a single group."""
    return step_functions(eta, np.zeros(eta.size, dtype=np.int64), 1)[0]


def stored(case) -> Problem:
    threat = Rows(case["A"], case["c"]) & Caps(case["caps"])
    if case["integer"]:
        threat = threat & Integer()
    return Problem(case["weights"], case["eta"], case["group"], threat, case["targets"])


def random_problem(seed, integer=False, certificates=1, outputs=None, rows=1, groups=None, columns=None):
    """Return the arguments of a problem as plain arrays, with ties, zeros and idle groups among them."""
    r = np.random.default_rng(seed)
    groups = groups or int(r.integers(1, 4))
    columns = columns or int(r.integers(1, 4))
    outputs = int(r.integers(1, 8)) if outputs is None else outputs
    weights = r.choice([0.0, 0.5, 1.0, 2.0, 7.0], size=(certificates, groups, columns)) * r.uniform(0.5, 1.5)
    if r.random() < 0.5:
        weights = weights * r.uniform(0.5, 1.0, size=weights.shape)
    eta = np.round(r.gamma(1.5, 1.0, size=(certificates, outputs)), int(r.integers(0, 4)))
    A = np.ones((1, columns)) if rows == 1 else r.choice([0.0, 1.0, 2.0], size=(rows, columns)) + np.eye(rows, columns)
    c = r.uniform(0.1, 2.0, size=len(A))
    caps = [None if r.random() < 0.5 else float(r.uniform(0.1, 1.0)) for _ in range(columns)]
    if np.any(A.max(axis=0) == 0):
        A, c = np.concatenate([A, np.ones((1, columns))]), np.append(c, 1.0)
    if integer:
        A = np.ceil(A)
        c = r.integers(0, 5, size=len(A)).astype(float)
        caps = [int(r.integers(1, 4)) for _ in range(columns)]
    return {
        "weights": weights,
        "eta": eta,
        "group": r.integers(0, groups, size=outputs),
        "A": A,
        "c": c,
        "caps": caps,
        "integer": integer,
        "targets": np.arange(outputs),
    }


def build(case) -> Problem:
    threat = Rows(case["A"], case["c"]) & Caps(case["caps"])
    if case["integer"]:
        threat = threat & Integer()
    return Problem(case["weights"], case["eta"], case["group"], threat, case["targets"])


seeds = st.integers(0, 2**32 - 1)
