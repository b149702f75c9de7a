"""Runs keep what was asked of them: certifying again without saying anything gives the same curves."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localsmooth as ls
from localsmooth import ArrayTask, GridLayout, Run, SamplingPlan, Settings, Smoothing, certify, recertify, settings_of
from localsmooth.baselines import BASELINES, CentreSmoothing, Cohen, ReceptiveFields, SegCertify, SparseSmooth
from localsmooth.bounds import (
    SCORE_BOUNDS,
    Betting,
    CandidateWeights,
    CdfBand,
    FixedThresholdHolm,
    KFamilywise,
    PaperHolm,
    WeightedBonferroni,
)
from localsmooth.certificates import (
    SCORE_CERTIFICATES,
    VOTE_CERTIFICATES,
    ExactVotes,
    GaussianScores,
    GaussianVotes,
    RenyiVotes,
)
from localsmooth.collective import BOUNDS, Envelope, Exact
from localsmooth.execution import NoProgress
from localsmooth.pipeline.asked import described, restored, same_event
from localsmooth.tasks import (
    Agreement,
    Balanced,
    Foreground,
    OfClass,
    Ratio,
    RunRecordError,
    Weighted,
    load_record,
    save_record,
)
from localsmooth.tasks.arrays import THREATS, Flips, Kind, NormBall, PerPosition
from localsmooth.tasks.graphs import AttackLimits, GraphSettings
from localsmooth.tasks.points import PerPoint

from .models import threshold_model

IMAGES = np.zeros((1, 1, 4, 6), np.float32)
SMOOTHING = Smoothing(GridLayout((2, 3), 0.2, 0.4), SamplingPlan(20, 200))
ISOTROPIC = Smoothing(GridLayout((1, 1), 0.25, 0.25), SamplingPlan(20, 200))


def model() -> ls.Model:
    return threshold_model(np.linspace(-0.5, 0.5, 24).reshape(4, 6))


def scored(batch: np.ndarray) -> np.ndarray:
    positive = np.clip(0.5 + batch[:, 0] + np.linspace(-0.5, 0.5, 24).reshape(4, 6), 0, 1)
    return np.stack([1 - positive, positive], axis=1)


def again(
    tmp_path: Path, settings: Settings, smoothing: Smoothing = SMOOTHING, by: ls.Model | None = None, **run: Any
) -> Settings:
    """The settings of a run, after checking that they certify what it did, without a warning."""
    task = ArrayTask(model() if by is None else by, IMAGES)
    first = certify(task, smoothing, settings, run=Run(tmp_path, progress=NoProgress(), **run))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = recertify(tmp_path)
    assert second.drop_attrs().identical(first.drop_attrs())
    for name in ("threat", "assumptions", "promise", "alpha", "method"):
        assert second.attrs.get(name) == first.attrs.get(name), name
    return settings_of(tmp_path)


def test_the_threat_and_the_rest_come_back(tmp_path: Path) -> None:
    settings = Settings(
        0.1,
        [0.0, 0.05, 0.1],
        bounds={"mine": Exact(gap=1, time_limit=5.0), "envelope": Envelope()},
        simultaneous=KFamilywise(2),
        threat=PerPosition(most=2),
    )
    kept = again(tmp_path, settings)
    assert (kept.threat, kept.simultaneous, dict(kept.bounds)) == (
        PerPosition(2),
        KFamilywise(2),
        dict(settings.bounds),
    )
    assert recertify(tmp_path, threat=NormBall()).attrs["threat"] == "perturbation of l2 norm at most ε"


def test_scores_come_back(tmp_path: Path) -> None:
    settings = Settings(0.1, [0.0, 0.1], [GaussianVotes(), GaussianScores()], score_bound=CdfBand())
    by = ls.CallableModel(scored, name="scored", bounds=None, classes=2, output=ls.OutputKind.PROBABILITIES)
    kept = again(tmp_path, settings, by=by)
    assert [one.name for one in kept.certificates] == ["gaussian-votes", "gaussian-scores"]
    assert kept.score_bound == CdfBand()


def test_the_baseline_comes_back(tmp_path: Path) -> None:
    kept = again(tmp_path, Settings(0.1, [0.0, 0.1], method=SegCertify(0.8)), ISOTROPIC, name="theirs")
    assert kept.method == SegCertify(0.8)
    assert recertify(tmp_path).attrs["method"] == "theirs"
    assert recertify(tmp_path, method=Cohen()).attrs["method"] == "theirs (cohen)"


def test_targets_come_back(tmp_path: Path) -> None:
    targets = [Balanced(), Ratio(), Foreground(("class 1", 0)), OfClass("class 1"), OfClass(0), Agreement()]
    kept = again(tmp_path, Settings(0.1, [0.0, 0.1], targets=targets))
    assert kept.targets == tuple(targets)


def test_of_weights_of_ones_own_the_user_is_told(tmp_path: Path) -> None:
    settings = Settings(0.1, [0.1], targets=["ratio", Weighted(np.arange(24.0))])
    certify(ArrayTask(model(), IMAGES), SMOOTHING, settings, run=Run(tmp_path, progress=NoProgress()))
    with pytest.warns(UserWarning, match="targets: the run was certified with .*Weighted"):
        assert recertify(tmp_path)["target"].values.tolist() == ["ratio", "agreement"]


@dataclass(frozen=True)
class Corner(PerPosition):
    """A threat of the user's own, which nobody registered."""

    def words(self, noise: ls.noise.Noise, units: str) -> str:
        return "perturbation of a corner"


def test_of_a_class_of_the_users_own_the_user_is_told(tmp_path: Path) -> None:
    settings = Settings(0.1, [0.1], threat=Corner(2))
    certify(ArrayTask(model(), IMAGES), SMOOTHING, settings, run=Run(tmp_path, progress=NoProgress()))
    with pytest.warns(UserWarning, match=r"threat: .*test_asked\.Corner.* name the threat"):
        assert recertify(tmp_path).attrs["threat"] == "perturbation of l2 norm at most ε"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert recertify(tmp_path, threat=Corner(2)).attrs["threat"] == "perturbation of a corner"
        recertify(tmp_path, settings)


def test_a_class_that_is_registered_comes_back(tmp_path: Path) -> None:
    ls.register(type("Registered", (Corner,), {"name": "corner"}))
    try:
        kept = again(tmp_path, Settings(0.1, [0.1], threat=THREATS["corner"](2)))  # pyright: ignore[reportCallIssue]
        assert type(kept.threat) is THREATS["corner"]
    finally:
        THREATS.withdraw("corner")
    with pytest.warns(UserWarning, match="not known here"):
        settings_of(tmp_path)


def test_a_record_that_does_not_say_what_was_asked_is_refused_until_it_is_written_anew(tmp_path: Path) -> None:
    settings = Settings(0.1, [0.0, 0.1], bounds=["lp"])
    task, run = ArrayTask(model(), IMAGES), Run(tmp_path, progress=NoProgress())
    certify(task, SMOOTHING, settings, run=run)
    save_record(replace(load_record(tmp_path), settings={}), tmp_path)
    with pytest.raises(RunRecordError, match=r"do not say 'alpha'.*tallies are kept"):
        recertify(tmp_path)
    assert recertify(tmp_path, settings)["certified"].size
    certify(task, SMOOTHING, settings, run=run)
    assert settings_of(tmp_path).budgets == (0.0, 0.1)


EVERY = [
    *(Settings(0.01, [0.5], [made()]) for made in (*VOTE_CERTIFICATES.values(), *SCORE_CERTIFICATES.values())),
    Settings(0.01, [0.1 + 0.2, 1 / 3], [RenyiVotes((1.5, 7.0)), ExactVotes((0.5,), (), 3, 4, 5, 16)]),
    *(Settings(0.01, [0.5], bounds=[made()]) for made in BOUNDS.values()),
    Settings(0.01, [0.5], bounds={"name": Exact(2, None), "class": Envelope()}),
    *(
        Settings(0.01, [0.5], simultaneous=rule)
        for rule in (KFamilywise(3), CandidateWeights((0.6, 0.9)), FixedThresholdHolm(0.7), PaperHolm())
    ),
    *(Settings(0.01, [0.5], score_bound=made()) for made in SCORE_BOUNDS.values()),
    Settings(0.01, [0.5], score_bound=Betting()),
    *(Settings(0.01, [0.5], threat=one) for one in (NormBall(), *map(Flips, Kind), PerPosition(3), PerPoint())),
    *(
        Settings(0.01, [0.5], method=one)
        for one in (CentreSmoothing(0.1, 16, 0.4), Cohen(), ReceptiveFields(3), SegCertify(0.9), SparseSmooth(64))
    ),
    GraphSettings(0.02, [0, 3], [1], (RenyiVotes((2.0,)),), strictly_local=True, limits=AttackLimits(attacked_nodes=3)),
    GraphSettings(0.02, baseline=SparseSmooth(32)),
]


@pytest.mark.parametrize("settings", EVERY, ids=range(len(EVERY)))
def test_every_strategy_of_the_package_can_be_described(settings: Any, tmp_path: Path) -> None:
    """By the names of files, and every parameter with it."""
    certify(ArrayTask(model(), IMAGES), SMOOTHING, Settings(0.1, [0.1]), run=Run(tmp_path, progress=NoProgress()))
    content = json.loads(json.dumps(described(settings), allow_nan=False))
    assert set(content) == {field.name for field in fields(settings)}
    assert '"class"' not in json.dumps(content).replace('"class": {', "")
    task = "graphs" if isinstance(settings, GraphSettings) else "arrays"
    record = replace(load_record(tmp_path), task=task, settings=content)
    kept = restored(record)
    assert described(kept) == content
    for name in ("threat", "method", "simultaneous", "score_bound", "limits", "baseline", "alpha", "budgets"):
        value, known = getattr(kept, name, None), getattr(settings, name, None)
        assert type(value) is type(known)
        if not isinstance(known, ReceptiveFields):  # which compares by identity
            assert value == known, name


def test_all_that_files_can_name_is_covered() -> None:
    assert set(BASELINES) == {settings.method.name for settings in EVERY if getattr(settings, "method", None)}
    assert set(THREATS) >= {settings.threat.name for settings in EVERY if isinstance(settings, Settings)}


def test_what_holds_arrays_is_told_of(tmp_path: Path) -> None:
    weights = WeightedBonferroni(np.ones(24))
    settings = Settings(0.1, [0.1], simultaneous=weights)
    certify(ArrayTask(model(), IMAGES), SMOOTHING, settings, run=Run(tmp_path, progress=NoProgress()))
    with pytest.warns(UserWarning, match="simultaneous: .*WeightedBonferroni"):
        settings_of(tmp_path)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Settings(0.1, [0.1]), Settings(0.1, [0.1, 0.2]), True),
        (Settings(0.1, [0.1]), Settings(0.1, "auto"), True),
        (Settings(0.1, [0.1]), Settings(0.2, [0.1]), False),
        (Settings(0.1, [0.1]), Settings(0.1, [0.2], targets=["balanced"]), False),
        (Settings(0.1, [0.1]), Settings(0.1, [0.2], simultaneous=KFamilywise(2)), False),
        # What the event of a baseline is about is its own concern.
        (Settings(0.1, [0.1], method=Cohen()), Settings(0.1, [0.1], method=Cohen()), True),
        (Settings(0.1, [0.1], method=Cohen()), Settings(0.1, [0.2], method=Cohen()), False),
        (GraphSettings(0.1, range(2), range(3)), GraphSettings(0.1, range(4), "auto"), True),
        (GraphSettings(0.1, range(2)), GraphSettings(0.1, range(3), limits=AttackLimits(node_budget=1)), False),
        (
            GraphSettings(0.1, range(2), baseline=SparseSmooth()),
            GraphSettings(0.1, range(3), baseline=SparseSmooth()),
            False,
        ),
    ],
)
def test_budgets_alone_ask_for_what_follows_from_the_same_event(one: Any, other: Any, same: bool) -> None:
    kept = json.loads(json.dumps(described(other)))
    assert same_event(one, kept) == same
    assert kept == described(other)  # nothing is taken out of a record
