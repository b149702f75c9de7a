"""Arguments of another kind are refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localsmooth as ls
from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.layout import Grid
from localsmooth.tasks.arrays import PerPosition
from localsmooth.tasks.points import PerPoint
from localsmooth.tasks.tokens import WindowLayout


@pytest.mark.parametrize("value", [True, False])
def test_truth_is_no_number(value: bool) -> None:
    with pytest.raises(InvalidInputError, match=r"sigma: got a bool\. Pass a int or float"):
        require_kind("sigma", value, int, float)
    require_kind("clamp", value, bool)
    require_kind("anything", value, object)


def test_classes_are_no_objects() -> None:
    with pytest.raises(InvalidInputError, match="got the class int"):
        require_kind("sigma", int, int)


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("n_candidate", lambda truth: ls.SamplingPlan(truth, 10)),
        ("n_bound", lambda truth: ls.SamplingPlan(10, truth)),
        ("seed", lambda truth: ls.SamplingPlan(10, 10, seed=truth)),
        ("chunk_size", lambda truth: ls.SamplingPlan(10, 10, chunk_size=truth)),
        ("passes", lambda truth: ls.Smoothing.for_passes(ls.GridLayout((2, 2), 0.1, 0.2), truth)),
        ("budgets", lambda truth: ls.Settings(0.1, [truth])),
        ("budgets", lambda truth: ls.Settings(0.1, np.array([truth]))),
        ("cells", lambda truth: Grid((truth, 2))),
        ("cells", lambda truth: ls.GridLayout((truth, 2), 0.1, 0.2)),
        ("windows", lambda truth: WindowLayout(truth, 0.1, 0.2)),
        ("clusters", lambda truth: ls.graphs.ClusterLayout(truth, (0.1, 0.1), (0.5, 0.5))),
        ("most", PerPosition),
        ("most", PerPoint),
        ("batch_size", lambda truth: ls.SamplingOptions(batch_size=truth)),
        ("workers", lambda truth: ls.ThreadExecutor(truth)),
        ("pad_multiple", lambda truth: ls.Preprocessing(pad_multiple=truth)),
    ],
)
def test_constructors_take_no_truth_for_a_number(field: str, make: Callable[[Any], object], truth: bool) -> None:
    with pytest.raises(InvalidInputError) as refused:
        make(truth)
    assert refused.value.field == field


WRONG = """
import torch
import localsmooth as ls

network = torch.nn.Conv2d(1, 2, 1).eval()
for make in (
    lambda: ls.GridLayout(3, 0.1, 0.2),  # cells
    lambda: ls.GridLayout((2.5, 2), 0.1, 0.2),  # cells
    lambda: ls.GridLayout((), 0.1, 0.2),  # cells
    lambda: ls.GridLayout((2, 2), "0.1", 0.2),  # minimum
    lambda: ls.GridLayout((2, 2), True, 0.2),  # minimum
    lambda: ls.GridLayout((2, 2), (0.1, 0.1), (0.2, False)),  # maximum
    lambda: ls.TorchModel(network, bounds=1.0, classes=2),  # bounds
    lambda: ls.TorchModel(network, bounds=(0, 1, 2), classes=2),  # bounds
    lambda: ls.TorchModel(network, bounds=(0.0, True), classes=2),  # bounds
    lambda: ls.TorchModel(network, bounds=None, classes=2.0),  # classes
    lambda: ls.TorchModel(network, bounds=None, classes=True),  # classes
    lambda: ls.TorchModel(torch.nn.Conv2d, bounds=None, classes=2),  # module
    lambda: ls.TorchModel("network", bounds=None, classes=2),  # module
):
    try:
        print("taken", make())
    except ls.InvalidInputError as error:
        print(error.field)
"""


def test_what_no_annotation_allows_is_refused_by_name() -> None:
    """In a process of its own, where annotations are not checked."""
    environment = {**os.environ, "PYTHONPATH": str(Path(ls.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", WRONG], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.stdout.split() == re.findall(r"# (\w+)\n", WRONG), done.stderr
