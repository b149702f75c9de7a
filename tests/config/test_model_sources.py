"""A function named in a configuration is known by the file that it is defined in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localsmooth.config.models import CallableModelSection
from localsmooth.config.sampling import SamplingSection

FILE = """
import numpy as np
from dataclasses import dataclass


@dataclass
class Rule:
    threshold: float


class Labeller:
    def __init__(self):
        self.rule = Rule(0.5)

    def limit(self):
        return {limit}

    def __call__(self, batch):
        return self.labels(batch)

    def labels(self, batch):
        return (batch[:, 0] > self.limit()).astype(np.int64)


def predict(batch):
    return MODEL.labels(batch)


MODEL = Labeller()
"""


@pytest.mark.parametrize("name", ["predict", "MODEL"])
def test_helpers_in_the_same_file_count(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprints: list[str] = []
    for number, limit in enumerate(("0.5", "0.5", "0.6")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "labelling.py").write_text(FILE.format(limit=limit))
        monkeypatch.syspath_prepend(folder)
        sys.modules.pop("labelling", None)
        section = CallableModelSection(
            kind="callable", function=f"labelling:{name}", bounds=(0.0, 1.0), classes=2, output="labels"
        )
        fingerprints.append(section.build(SamplingSection(n_candidate=1, n_bound=1)).fingerprint())
    sys.modules.pop("labelling", None)
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]
