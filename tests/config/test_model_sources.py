"""A function named in a configuration is known by the file that it is defined in, and faults by the file's keys."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localsmooth.config import parse_configuration
from localsmooth.config.faults import naming_keys_of, within
from localsmooth.config.models import CallableModelSection
from localsmooth.config.packaged_models import HuggingFaceModelSection
from localsmooth.config.sampling import SamplingSection
from localsmooth.errors import InvalidInputError

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


def values(**model: object) -> dict[str, object]:
    return {
        "model": {"kind": "callable", "function": "math:sqrt", "bounds": [0.0, 1.0], **model},
        "data": {"kind": "digit-scenes"},
        "layout": {"cells": [1, 1]},
        "noise": {"distribution": "gaussian", "sigma_min": 0.1, "sigma_max": 0.3},
        "sampling": {"n_candidate": 4, "n_bound": 8},
        "certificate": {"alpha": 0.5, "budgets": [0.0]},
    }


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ({}, "model.classes"),
        ({"classes": 2, "output": "labels", "upsample": True}, "model.upsample"),
        ({"classes": 2, "class_axis": 0}, "model.class_axis"),
    ],
)
def test_faults_of_what_is_made_name_keys_of_the_file(model: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInputError) as told:
        parse_configuration(values(**model)).build_model()
    assert told.value.field == field


def test_arguments_are_called_by_the_keys_that_give_them() -> None:
    section = HuggingFaceModelSection(kind="huggingface", path="owner/none")
    for argument, key in (("source", "model.path"), ("pickled", "model.pickled"), ("module", "model: module")):
        with pytest.raises(InvalidInputError, match=f"^{key}: it is wrong. Mend it$"), within("model", section):
            raise InvalidInputError(argument, "it is wrong", "Mend it")
    with pytest.raises(InvalidInputError, match=r"^model\.path: "), within("model", section):
        raise InvalidInputError("model.path", "it is wrong", "Mend it")


@pytest.mark.parametrize(
    ("argument", "key"),
    [
        ("n_bound", "run.toml: sampling.n_bound"),
        ("items", "items"),  # of the data, or for calibration
        ("levels", "levels"),  # the file has sigma_min
        ("of", "run.toml: certificate.targets"),
        ("simultaneous", "run.toml: certificate.many_outputs"),
        ("layout.levels", "run.toml: layout.levels"),
        ("model: module", "run.toml: model: module"),
        ("calibration", "run.toml: calibration"),
        ("bounds", "bounds"),  # of the model, or of the certificate
        ("workers", "workers"),  # the command line may say so
        ("item", "item"),
    ],
)
def test_errors_of_a_run_name_file_and_key_where_one_can_be_meant(argument: str, key: str) -> None:
    configuration = parse_configuration(values() | {"calibration": {"kind": "digit-scenes", "split": "validation"}})
    with pytest.raises(InvalidInputError) as told, naming_keys_of(configuration, Path("run.toml")):
        raise InvalidInputError(argument, "it is wrong", "Mend it")
    assert told.value.field == key
    with pytest.raises(InvalidInputError) as told, naming_keys_of(configuration):
        raise InvalidInputError(argument, "it is wrong", "Mend it")
    assert told.value.field == key.removeprefix("run.toml: ")


def test_faults_of_items_name_the_section_that_has_them() -> None:
    made = values(classes=10) | {"calibration": {"kind": "digit-scenes", "split": "validation", "items": [-1]}}
    with pytest.raises(InvalidInputError, match=r"^calibration: index: -1 is negative"):
        parse_configuration(made).task()
    with pytest.raises(InvalidInputError, match=r"^data: index: -1 is negative"):
        parse_configuration(made | {"data": {"kind": "digit-scenes", "items": [-1]}}).task()
